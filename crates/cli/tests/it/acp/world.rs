//! A project, a scripted model and a real client.

use std::fs;
use std::path::Path;

use serde_json::Value;
use verdone_testkit::model_server::{ModelServer, Script};
use verdone_testkit::{AcpClient, AcpName, Output, Sandbox};

use crate::claude::world::{settings, verdone};

const SETTINGS: &str = ".verdone/config.toml";

/// Fields drop in order: first the processes, then the model, then the place in the queue for clients.
pub(crate) struct AcpWorld {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: ModelServer,
    _client: AcpClient,
}

impl AcpWorld {
    /// A repository with this plan. `None` if the client is missing, which has already been reported.
    pub(crate) fn new(name: AcpName, plan: &str, more_settings: &str, script: Script) -> Option<Self> {
        let client = AcpClient::or_skip(name)?;
        let model = ModelServer::start(script);
        let mut sandbox = Sandbox::new();
        client.configure(&mut sandbox, &model);
        sandbox.write(SETTINGS, settings(&format!("{}{more_settings}", client.settings()), &sandbox));
        sandbox.write("PLAN.md", plan);
        sandbox.repo();
        Some(Self { sandbox, model, _client: client })
    }

    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(verdone(), arguments)
    }

    /// The guard's records of denied calls, of all runs.
    pub(crate) fn denials(&self) -> Vec<Value> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let sessions =
            entries(&self.sandbox.path(".verdone/runs")).flat_map(|run| entries(&run.join("sessions")).collect::<Vec<_>>());
        let texts: Vec<String> = sessions.filter_map(|session| fs::read_to_string(session.join("events.jsonl")).ok()).collect();
        let records = texts.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|record| record["record"] == "decided" && record["verdict"] == "deny").collect()
    }

    /// The events with this name in the journal of the latest run.
    #[track_caller]
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        let output = self.verdone(&["log", "--json"]);
        output.assert_code(0);
        let lines = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|event| event["event"] == name || event["type"] == name).collect()
    }
}
