//! The real Claude Code in tests: found where `scripts/test` installed it, and configured to talk only to our model server.
//!
//! It gets a private home, a key that opens nothing, and our server as its proxy, so that an attempt to reach another address is refused
//! and recorded. On a machine without the client, these tests are skipped and say so; with `VERDONE_NO_SKIP` set, as in CI, they fail.

mod session;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client_permit::ClientPermit;
use crate::model_server::ModelServer;
use crate::sandbox::Sandbox;

pub use session::ClaudeSession;

/// Set by `scripts/test`: where the client is.
const VARIABLE: &str = "VERDONE_CLAUDE";
/// If set, skipping a test is a failure.
const NO_SKIP: &str = "VERDONE_NO_SKIP";
const KEY: &str = "sk-ant-api03-this-key-opens-nothing-0000000000";

/// The client, and the right to start it: while this value exists, it counts as one of the few that run at once.
#[derive(Debug)]
pub struct Claude {
    binary: PathBuf,
    _permit: ClientPermit,
}

impl Claude {
    /// The client, or `None` after printing that the test is skipped. Waits while too many others run.
    #[track_caller]
    pub fn or_skip() -> Option<Self> {
        match find() {
            Ok(binary) => Some(Self { binary, _permit: ClientPermit::acquire() }),
            Err(reason) => {
                let test = std::thread::current().name().unwrap_or("a test").to_owned();
                assert!(std::env::var_os(NO_SKIP).is_none(), "{test} would be skipped: {reason}");
                // Not `eprintln`, which the harness hides when a test passes.
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
                None
            }
        }
    }

    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Makes this client and this server the only ones that a sandbox knows. Processes of the program under test inherit this.
    pub fn configure(&self, sandbox: &mut Sandbox, server: &ModelServer) {
        sandbox.add_program("claude", &self.binary);
        sandbox.set("ANTHROPIC_API_KEY", KEY);
        sandbox.set("ANTHROPIC_BASE_URL", server.url());
        for name in
            ["DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
        {
            sandbox.set(name, "1");
        }
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            sandbox.set(name, server.url());
        }
        sandbox.set("NO_PROXY", "127.0.0.1");
        // Answers to what the client asks on its first start.
        let approved = &KEY[KEY.len() - 20..];
        let mut answers = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": { "approved": [approved], "rejected": [] },
            "projects": {},
        });
        answers["projects"][sandbox.work().to_string_lossy().as_ref()] = json!({ "hasTrustDialogAccepted": true });
        fs::write(sandbox.home().join(".claude.json"), answers.to_string()).expect("the private home is writable");
    }

    /// Makes it a subscriber's client, which reads usage limits from headers. Its token opens nothing either.
    pub fn subscribe(sandbox: &mut Sandbox) {
        sandbox.set("ANTHROPIC_API_KEY", "");
        sandbox.set("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-this-token-opens-nothing");
    }

    /// Settings for `--settings` that call this program for each of the events, without a shell.
    pub fn hook_settings(events: &[&str], program: &Path, args: &[&str]) -> Value {
        let mut hooks = json!({});
        for event in events {
            let arguments: Vec<&str> = args.iter().copied().chain([*event]).collect();
            let handler =
                json!({ "type": "command", "command": program, "args": arguments, "timeout": 10, "onFailure": "block" });
            hooks[*event] = json!([{ "matcher": "", "hooks": [handler] }]);
        }
        json!({ "hooks": hooks })
    }
}

fn find() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return is_program(&path).ok_or_else(|| format!("{VARIABLE} names {}, which is no program", path.display()));
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or(home);
    let folder = cache.ok_or("no cache folder is known")?.join("verdone").join(format!("claude-code-{}", pinned_version()?));
    let packages = folder.join("node_modules/@anthropic-ai");
    let entries = fs::read_dir(&packages).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("claude-code-"))
        .find_map(|entry| is_program(&entry.path().join("claude").into_os_string()))
        .ok_or_else(|| {
            format!("Claude Code is not in {}: `./scripts/test client` puts it there, or says why not", folder.display())
        })
}

fn pinned_version() -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/claude/client/package.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let package: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    package["dependencies"]["@anthropic-ai/claude-code"]
        .as_str()
        .map(str::to_owned)
        .ok_or("package.json pins no client".to_owned())
}

fn is_program(path: &OsString) -> Option<PathBuf> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|_| PathBuf::from(path))
}
