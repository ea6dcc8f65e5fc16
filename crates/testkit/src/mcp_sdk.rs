//! The official MCP SDK in tests: found where `scripts/test` installed it, at a pinned version.
//!
//! On a machine without it, these tests are skipped and say so; with `VERDONE_NO_SKIP` set, as in CI, they fail.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Set by `scripts/test`: where it is.
const VARIABLE: &str = "VERDONE_MCP_SDK";
/// If set, skipping a test is a failure.
const NO_SKIP: &str = "VERDONE_NO_SKIP";
const PACKAGE: &str = "@modelcontextprotocol/sdk";

#[derive(Debug, Clone)]
pub struct McpSdk {
    folder: PathBuf,
}

impl McpSdk {
    /// The SDK, or `None` after printing that the test is skipped.
    #[track_caller]
    pub fn or_skip() -> Option<Self> {
        match find() {
            Ok(folder) => Some(Self { folder }),
            Err(reason) => {
                let test = std::thread::current().name().unwrap_or("a test").to_owned();
                assert!(std::env::var_os(NO_SKIP).is_none(), "{test} would be skipped: {reason}");
                // Not `eprintln`, which the harness hides when a test passes.
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
                None
            }
        }
    }

    /// The folder with its `node_modules`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The script of the tests' client.
    pub fn client(&self) -> PathBuf {
        manifest_folder().join("client.mjs")
    }
}

fn manifest_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/mcp/sdk")
}

fn find() -> Result<PathBuf, String> {
    let folder = match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => default_folder()?,
    };
    if folder.join("node_modules").join(PACKAGE).join("package.json").exists() {
        return Ok(folder);
    }
    Err(format!("the MCP SDK is not in {}: `./scripts/test sdk` puts it there, or says why not", folder.display()))
}

fn default_folder() -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or(home);
    let manifest = manifest_folder().join("package.json");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let package: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let version = package["dependencies"][PACKAGE].as_str().ok_or("package.json pins no SDK")?;
    Ok(cache.ok_or("no cache folder is known")?.join("verdone").join(format!("mcp-sdk-{version}")))
}
