//! Real test runners and linters in tests: found where `scripts/test` installed them, at pinned versions.
//!
//! On a machine without them, these tests are skipped and say so; with `VERDONE_NO_SKIP` set, as in CI, they fail.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// Set by `scripts/test`: where they are.
const VARIABLE: &str = "VERDONE_RUNNERS";
/// If set, skipping a test is a failure.
const NO_SKIP: &str = "VERDONE_NO_SKIP";
/// What a JavaScript project has in `node_modules`; everything else is found from there.
const PACKAGES: [&str; 5] = [".bin", "jest", "mocha", "typescript", "vitest"];

/// Folders with the programs of all runners.
#[derive(Debug, Clone)]
pub struct Runners {
    folder: PathBuf,
    /// The programs of the Rust toolchain itself: a rustup proxy would look for its settings in the private home.
    rust: PathBuf,
}

impl Runners {
    /// The runners, or `None` after printing that the test is skipped.
    #[track_caller]
    pub fn or_skip() -> Option<Self> {
        match find() {
            Ok(runners) => Some(runners),
            Err(reason) => {
                let test = std::thread::current().name().unwrap_or("a test").to_owned();
                assert!(std::env::var_os(NO_SKIP).is_none(), "{test} would be skipped: {reason}");
                // Not `eprintln`, which the harness hides when a test passes.
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
                None
            }
        }
    }

    /// Adds them to a sandbox's PATH, after its own programs and before those of the host.
    pub fn add_to(&self, sandbox: &mut Sandbox) {
        let own = [sandbox.root().join("bin"), self.folder.join("venv/bin"), self.folder.join("npm/node_modules/.bin")];
        let host = std::env::var_os("PATH").unwrap_or_default();
        let folders = own.into_iter().chain([self.rust.clone()]).chain(std::env::split_paths(&host));
        sandbox.set("PATH", std::env::join_paths(folders).expect("folders of a PATH can be joined again"));
        sandbox.set("CARGO_NET_OFFLINE", "true");
    }

    /// Creates a `node_modules` in a project, with links to the packages.
    pub fn link_packages(&self, project: &Path) {
        let modules = project.join("node_modules");
        fs::create_dir_all(&modules).expect("the project is writable");
        for package in PACKAGES {
            let target = self.folder.join("npm/node_modules").join(package);
            symlink(target, modules.join(package)).expect("a fresh folder takes links");
        }
    }
}

fn find() -> Result<Runners, String> {
    let folder = match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => default_folder()?,
    };
    // The pins are copied last: without them, the folder is incomplete.
    for part in ["requirements.txt", "venv/bin/pytest", "npm/node_modules/.bin/jest"] {
        if !folder.join(part).exists() {
            let place = folder.display();
            return Err(format!("test runners are not in {place}: `./scripts/test runners` puts them there, or says why not"));
        }
    }
    Ok(Runners { folder, rust: toolchain()? })
}

fn default_folder() -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or(home);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/lies/runners/package.json");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let package: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let version = package["version"].as_str().ok_or("package.json has no version")?;
    Ok(cache.ok_or("no cache folder is known")?.join("verdone").join(format!("runners-{version}")))
}

fn toolchain() -> Result<PathBuf, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().map_err(|error| format!("rustc: {error}"))?;
    let folder = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("bin");
    if folder.join("cargo").exists() { Ok(folder) } else { Err(format!("no cargo in {}", folder.display())) }
}
