//! Real clients that speak the Agent Client Protocol, in tests: found where `scripts/test` installed them, and configured to talk only to
//! our model server. They get a private home and a key that opens nothing.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::model_server::ModelServer;
use crate::sandbox::Sandbox;

/// If set, skipping a test is a failure.
const NO_SKIP: &str = "VERDONE_NO_SKIP";
/// Set for the tier that runs every client.
const ALL: &str = "VERDONE_ACP_CLIENTS";
const KEY: &str = "this-key-opens-nothing";

/// They take up to half a gigabyte and all cores while they start.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The clients that tests know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcpName {
    Gemini,
    Opencode,
    Copilot,
    Qwen,
}

impl AcpName {
    /// The name of the agent in settings, and of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Qwen => "qwen",
        }
    }

    /// Whether every test run has it. The others are only for the tier with all clients.
    fn is_usual(self) -> bool {
        self == Self::Gemini
    }
}

/// A client, and the right to start it.
#[derive(Debug)]
pub struct AcpClient {
    name: AcpName,
    binary: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl AcpClient {
    /// The client, or `None` after printing that the test is skipped. Waits while another one runs.
    #[track_caller]
    pub fn or_skip(name: AcpName) -> Option<Self> {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        if !name.is_usual() && std::env::var_os(ALL).is_none() {
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: only `./scripts/test clients` runs {}", name.name());
            return None;
        }
        match find(name) {
            Ok(binary) => Some(Self { name, binary, _turn: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner) }),
            Err(reason) => {
                assert!(std::env::var_os(NO_SKIP).is_none(), "{test} would be skipped: {reason}");
                // Not `eprintln`, which the harness hides when a test passes.
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
                None
            }
        }
    }

    /// Makes this client and this server the only ones that a sandbox knows.
    pub fn configure(&self, sandbox: &mut Sandbox, server: &ModelServer) {
        sandbox.add_program(self.name.name(), &self.binary);
        if let Some(node) = in_path("node") {
            sandbox.add_program("node", &node);
        }
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            sandbox.set(name, server.url());
        }
        sandbox.set("NO_PROXY", "127.0.0.1");
        match self.name {
            AcpName::Gemini => configure_gemini(sandbox, server),
            AcpName::Opencode => configure_opencode(sandbox, server),
            AcpName::Copilot => configure_copilot(sandbox, server),
            AcpName::Qwen => configure_qwen(sandbox, server),
        }
    }

    /// The lines of `.verdone/config.toml` that choose it.
    pub fn settings(&self) -> String {
        let name = self.name.name();
        let model = match self.name {
            // Its default asks the model which model to ask.
            AcpName::Gemini => "[agent.gemini]\nmodel = \"gemini-2.5-pro\"\n",
            AcpName::Opencode | AcpName::Copilot | AcpName::Qwen => "",
        };
        format!("[agent]\nname = \"{name}\"\n{model}")
    }
}

fn configure_gemini(sandbox: &mut Sandbox, server: &ModelServer) {
    sandbox.set("GEMINI_API_KEY", KEY);
    sandbox.set("GOOGLE_GEMINI_BASE_URL", server.url());
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "privacy": { "usageStatisticsEnabled": false },
    });
    write_settings(sandbox, ".gemini/settings.json", &settings);
}

fn configure_opencode(sandbox: &mut Sandbox, server: &ModelServer) {
    let config = json!({
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "provider": { "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": { "baseURL": format!("{}/v1", server.url()), "apiKey": KEY },
            "models": { "m1": { "name": "m1", "limit": { "context": 100_000, "output": 10_000 }, "cost": { "input": 1, "output": 2 } } },
        } },
    });
    sandbox.set("OPENCODE_CONFIG_CONTENT", config.to_string());
    for name in ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_DEFAULT_PLUGINS", "OPENCODE_DISABLE_LSP_DOWNLOAD"] {
        sandbox.set(name, "true");
    }
}

fn configure_copilot(sandbox: &mut Sandbox, server: &ModelServer) {
    for (name, value) in [
        ("COPILOT_OFFLINE", "true".to_owned()),
        ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", server.url())),
        ("COPILOT_PROVIDER_API_KEY", KEY.to_owned()),
        ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
        ("COPILOT_PROVIDER_WIRE_API", "completions".to_owned()),
        ("COPILOT_MODEL", "gpt-5".to_owned()),
    ] {
        sandbox.set(name, value);
    }
}

fn configure_qwen(sandbox: &mut Sandbox, server: &ModelServer) {
    sandbox.set("OPENAI_API_KEY", KEY);
    sandbox.set("OPENAI_BASE_URL", format!("{}/v1", server.url()));
    sandbox.set("OPENAI_MODEL", "qwen3-coder-plus");
    let settings = json!({
        "security": { "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": false } },
        "general": { "enableAutoUpdate": false, "disableAutoUpdate": true },
        "privacy": { "usageStatisticsEnabled": false },
        "memory": { "enabled": false },
    });
    write_settings(sandbox, ".qwen/settings.json", &settings);
}

fn write_settings(sandbox: &Sandbox, path: &str, settings: &Value) {
    let path = sandbox.home().join(path);
    fs::create_dir_all(path.parent().expect("the path has a folder")).expect("the private home is writable");
    fs::write(path, settings.to_string()).expect("the private home is writable");
}

fn find(name: AcpName) -> Result<PathBuf, String> {
    let variable = format!("VERDONE_{}", name.name().to_uppercase());
    match std::env::var_os(&variable).filter(|path| !path.is_empty()).map(PathBuf::from) {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(format!("{variable} names {}, which is no program", path.display())),
        None if name.is_usual() => {
            Err(format!("{variable} is not set: `./scripts/test acp test` installs the client and names it"))
        }
        None => Err(format!("{variable} is not set: `./scripts/test clients` installs the client and names it")),
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| Path::is_file(path))
}
