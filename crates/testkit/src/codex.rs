//! The real Codex in tests: found where `scripts/test` installed it, and configured to talk only to our model server.
//!
//! It gets a private home, a key that opens nothing, and our server as its proxy, so that an attempt to reach another address is refused
//! and recorded. On a machine without the client, these tests are skipped and say so; with `VERDONE_NO_SKIP` set, as in CI, they fail.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client_permit::ClientPermit;
use crate::model_server::ModelServer;
use crate::sandbox::Sandbox;

/// Set by `scripts/test`: where the client is.
const VARIABLE: &str = "VERDONE_CODEX";
/// If set, skipping a test is a failure.
const NO_SKIP: &str = "VERDONE_NO_SKIP";
const KEY: &str = "sk-this-key-opens-nothing-0000000000";

/// The client, and the right to start it: while this value exists, it counts as one of the few that run at once.
#[derive(Debug)]
pub struct Codex {
    binary: PathBuf,
    _permit: ClientPermit,
}

impl Codex {
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

    /// Makes this client and this server the only ones that a sandbox knows. Processes of the program under test inherit this.
    pub fn configure(&self, sandbox: &mut Sandbox, server: &ModelServer) {
        sandbox.add_program("codex", &self.binary);
        sandbox.set("SCRIPTED_API_KEY", KEY);
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            sandbox.set(name, server.url());
        }
        sandbox.set("NO_PROXY", "127.0.0.1");
        let config = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\n[analytics]\nenabled = false\n\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n\
             env_key = \"SCRIPTED_API_KEY\"\nsupports_websockets = false\nrequest_max_retries = 1\nstream_max_retries = 1\n",
            server.url()
        );
        let folder = sandbox.home().join(".codex");
        fs::create_dir_all(&folder).expect("the private home is writable");
        fs::write(folder.join("config.toml"), config).expect("the private home is writable");
    }
}

fn find() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() { Ok(path) } else { Err(format!("{VARIABLE} names {}, which is no program", path.display())) };
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or(home);
    let folder = cache.ok_or("no cache folder is known")?.join("verdone").join(format!("codex-{}", pinned_version()?));
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let platforms = entries(folder.join("node_modules/@openai")).flat_map(|package| entries(package.join("vendor")));
    platforms
        .map(|platform| platform.join("bin/codex"))
        .find(|program| program.is_file())
        .ok_or_else(|| format!("Codex is not in {}: `./scripts/test codex` puts it there, or says why not", folder.display()))
}

fn pinned_version() -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/codex/client/package.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let package: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    package["dependencies"]["@openai/codex"].as_str().map(str::to_owned).ok_or("package.json pins no client".to_owned())
}
