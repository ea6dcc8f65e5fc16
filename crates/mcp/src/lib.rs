//! `verdone mcp`: Verdone's tools over the Model Context Protocol, on standard input and output.
//!
//! It only translates: [`Tools`] answers every call, so no decision is made here. This is the only crate with an async runtime,
//! because the SDK needs one. Each call runs on a blocking thread.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource as ListedResource,
    ResourceContents, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::stdio;
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value};
use verdone_core::base::finish::StopSignal;
use verdone_core::journal::agent_tools::{Answer, Call, Need, Query, Resource, ToolInfo, tools};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::session::tools::Tools;

/// How long checks that are still running may take to end after the client is gone.
const LAST_GRACE: Duration = Duration::from_secs(15);

/// Threads for calls, and for reading and writing. More calls at once wait.
const MOST_THREADS: usize = 16;

const IN_RUN: &str = "Verdone verifies work: call complete_story when a story is done, report_blocked when only the user can \
    answer a question, and request_merge instead of git push.";
const OUTSIDE: &str = "Verdone verifies work: read the plan, the lessons and the evidence, and verify the files as they are now.";

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot start the server: {0}")]
    Start(#[from] io::Error),
    #[error("the client did not speak MCP: {0}")]
    Handshake(String),
}

/// Serves until the client closes the connection.
pub fn serve(tools: Tools) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(MOST_THREADS).build()?;
    let served = runtime.block_on(async {
        let server = Server { tools: Arc::new(tools) };
        let running = server.serve(stdio()).await.map_err(|error| ServeError::Handshake(error.to_string()))?;
        // The client is gone, so the reason does not matter.
        let _ = running.waiting().await;
        Ok(())
    });
    runtime.shutdown_timeout(LAST_GRACE);
    served
}

struct Server {
    tools: Arc<Tools>,
}

/// Ends the checks of a call that was cancelled or whose client is gone.
struct StopWhenDropped(Signals);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.raise_first(StopSignal::Sigint);
    }
}

impl Server {
    async fn answer(&self, query: Query, context: &RequestContext<RoleServer>) -> Result<Answer, ErrorData> {
        let stop = StopWhenDropped(Signals::none());
        let (tools, signals) = (self.tools.clone(), stop.0.clone());
        let answering = tokio::task::spawn_blocking(move || tools.answer(&query, &signals));
        tokio::select! {
            answer = answering => answer.map_err(|error| ErrorData::internal_error(error.to_string(), None)),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let server = Implementation::new("verdone", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(if self.tools.are_in_run() {
            IN_RUN
        } else {
            OUTSIDE
        })
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools().into_iter().filter(|tool| self.tools.has(tool.need)).map(listed).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Errors are results, not failures of the protocol: clients show only results to the model.
        let answer = match Call::parse(&request.name, &request.arguments.unwrap_or_default()) {
            Ok(call) => self.answer(Query::Call(call), &context).await?,
            Err(refused) => refused,
        };
        Ok(result(answer).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = |resource: Resource| {
            ListedResource::new(resource.uri(), resource.name())
                .with_description(resource.description())
                .with_mime_type("text/markdown")
        };
        Ok(ListResourcesResult::with_all_items(Resource::ALL.map(listed).to_vec()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(resource) = Resource::from_uri(&request.uri) else {
            let known = Resource::ALL.map(Resource::uri).join(", ");
            return Err(ErrorData::resource_not_found(
                format!("unknown resource {}; known resources: {known}", request.uri),
                None,
            ));
        };
        let answer = self.answer(Query::Read(resource), &context).await?;
        match answer {
            Answer { is_error: false, body: Value::String(text) } => {
                Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
            }
            Answer { body, .. } => Err(ErrorData::internal_error(body.to_string(), None)),
        }
    }
}

fn listed(tool: ToolInfo) -> Tool {
    let schema: Map<String, Value> = match tool.schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let mut listed = Tool::new(tool.name, tool.description, schema);
    // `verify` starts programs, so clients should not run it beside other calls.
    let is_read_only = tool.need == Need::Nothing && tool.name != "verify";
    listed.annotations = Some(ToolAnnotations::new().read_only(is_read_only).destructive(false).open_world(false));
    listed
}

/// The text is the same JSON, for clients that do not show structured content.
fn result(answer: Answer) -> CallToolResult {
    let text = serde_json::to_string_pretty(&answer.body).unwrap_or_else(|_| answer.body.to_string());
    let mut result =
        if answer.is_error { CallToolResult::structured_error(answer.body) } else { CallToolResult::structured(answer.body) };
    result.content = vec![ContentBlock::text(text)];
    result
}
