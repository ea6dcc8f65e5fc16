//! Rules of the repository that readers rely on but no compiler checks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

mod file_length;
mod imports;
mod names;
mod wording;

use verdone_testkit::golden::split_block;

const DEMO: &str = "cargo run --release -- demo";
const TEST: &str = "./scripts/test";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The lines of a script that are commands.
fn commands(script: &str) -> Vec<&str> {
    script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// All files of the worktree that git does not ignore.
fn files() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git can be started");
    assert!(output.status.success(), "these tests need the git repository");
    let text = String::from_utf8(output.stdout).expect("our file names are UTF-8");
    text.split_terminator('\0').filter(|path| root().join(path).is_file()).map(str::to_owned).collect()
}

fn files_ending(extension: &str) -> Vec<String> {
    files().into_iter().filter(|path| Path::new(path).extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn the_readme_has_exactly_two_commands_to_set_up() {
    let readme = read("README.md");
    let shell_blocks: Vec<_> =
        readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default().trim()).collect();
    assert_eq!(shell_blocks, [DEMO, TEST]);
}

#[test]
fn ci_runs_the_readmes_commands_and_nothing_cleverer() {
    let ci = read(".ci/run");
    let expected =
        ["set -euo pipefail", r#"cd "$(dirname "${BASH_SOURCE[0]}")/..""#, "export VERDONE_NO_SKIP=1", "exec ./scripts/test"];
    assert_eq!(commands(&ci), expected);
    let script = read("scripts/test");
    assert!(commands(&script).contains(&DEMO), "scripts/test runs the README's first command as it stands there");
}

#[test]
fn a_bare_cargo_run_means_the_program() {
    assert!(read("Cargo.toml").contains(r#"default-members = ["crates/cli"]"#));
}

#[test]
fn the_readme_fits_one_screen_besides_the_demo() {
    let readme = read("README.md");
    let (before, _, after) = split_block(&readme, "demo").expect("the README has a demo block");
    let lines = before.lines().count() + after.lines().count();
    assert!(lines <= 65, "{lines} lines");
}

#[test]
fn links_between_documents_lead_somewhere() {
    for page in files_ending("md").iter().filter(|path| !path.contains("/tests/") && !path.contains("fixtures/")) {
        let text = read(page);
        let directory = Path::new(page).parent().expect("a file has a directory");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            // Directories of generated documents may be empty in a sparse checkout; files must exist.
            if target.is_empty() || target.contains("://") || target.ends_with('/') {
                continue;
            }
            assert!(root().join(directory).join(target).exists(), "{page} links to {target}, which is not there");
        }
    }
}

#[test]
fn scripts_can_be_executed() {
    for path in files() {
        let bytes = fs::read(root().join(&path)).unwrap_or_default();
        if !bytes.starts_with(b"#!/") || path.contains("fixtures/") {
            continue;
        }
        let mode = fs::metadata(root().join(&path)).expect("a listed file exists").permissions().mode();
        // Templates are made executable when they are written out.
        assert!(mode & 0o111 != 0 || path.starts_with("crates/"), "{path} has a shebang and is not executable");
    }
}

#[test]
fn every_crate_obeys_the_workspaces_lints_and_licence() {
    for path in files().iter().filter(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml")) {
        let manifest = read(path);
        for line in ["[lints]\nworkspace = true", "license.workspace = true", "rust-version.workspace = true"] {
            assert!(manifest.contains(line), "{path} lacks {line:?}");
        }
    }
}

#[test]
fn the_test_kit_is_for_tests_only() {
    for path in files().iter().filter(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml")) {
        let manifest = read(path);
        let before_tests = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        assert!(!before_tests.contains("verdone-testkit.workspace"), "{path} depends on the test kit outside tests");
    }
    let kit = read("crates/testkit/Cargo.toml");
    assert!(!kit.contains("verdone-core") && !kit.contains("verdone-runtime"), "the test kit depends on the program");
}

#[test]
fn core_and_runtime_name_no_async_runtime() {
    for path in ["crates/core/Cargo.toml", "crates/runtime/Cargo.toml"] {
        let manifest = read(path);
        for name in ["tokio", "async-std", "smol", "futures"] {
            assert!(!manifest.contains(name), "{path} names {name}");
        }
    }
}

#[test]
fn modules_are_named_for_what_they_hold() {
    for path in files_ending("rs") {
        let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy();
        let vague = ["mod", "util", "utils", "helper", "helpers", "manager", "common", "misc"];
        assert!(!vague.contains(&name.as_ref()), "{path}");
    }
}

#[test]
fn the_code_map_names_every_module_and_no_other() {
    let map = read("ARCHITECTURE.md");
    for layer in ["core", "runtime", "report", "cli", "testkit"] {
        let heading = format!("### `crates/{layer}`");
        let section = map.split(&heading).nth(1).and_then(|rest| rest.split("\n##").next()).expect("the map has the crate");
        let source = format!("crates/{layer}/src/");
        let modules: Vec<String> = files_ending("rs")
            .iter()
            .filter_map(|path| path.strip_prefix(&source))
            .filter(|file| !file.contains('/') && *file != "lib.rs")
            .map(str::to_owned)
            .collect();
        for file in &modules {
            assert!(section.contains(&format!("`{file}`")), "{source}{file} is not in the code map of ARCHITECTURE.md");
        }
        for named in section.split('`').filter(|word| word.ends_with(".rs")) {
            assert!(modules.iter().any(|file| file == named), "the code map names {source}{named}, which is not there");
        }
    }
}

#[test]
fn the_client_of_the_tests_is_pinned_by_its_digests_and_names_no_registry() {
    let folder = "crates/cli/tests/it/claude/client";
    let lock = read(&format!("{folder}/package-lock.json"));
    // npm writes it into a lock file, and would then use that host instead of the configured registry.
    assert!(!lock.contains("\"resolved\"") && !lock.contains("://"), "the lock file names a host: remove its `resolved` lines");
    let version = "2.1.325";
    assert!(read(&format!("{folder}/package.json")).contains(&format!("\"@anthropic-ai/claude-code\": \"{version}\"")));
    let named = version.replace('.', ", ");
    assert!(read("crates/core/src/agent/claude/launch.rs").contains(&format!("TESTED_CLIENT: Version = Version({named});")));
    let packages = lock.matches("\"node_modules/").count();
    assert!(packages > 1 && lock.matches("\"integrity\": \"sha512-").count() == packages);
    assert_eq!(lock.matches(&format!("\"version\": \"{version}\"")).count(), packages);
}

#[test]
fn the_mcp_sdk_of_the_tests_is_pinned_and_names_no_registry() {
    let folder = "crates/cli/tests/it/mcp/sdk";
    let lock = read(&format!("{folder}/package-lock.json"));
    assert!(!lock.contains("\"resolved\"") && !lock.contains("://"), "the lock file names a host: remove its `resolved` lines");
    assert!(read(&format!("{folder}/package.json")).contains("\"@modelcontextprotocol/sdk\": \"1.32.2\""));
    let packages = lock.matches("\"node_modules/").count();
    assert!(packages > 50 && lock.matches("\"integrity\": \"sha512-").count() == packages);
}

#[test]
fn the_test_runners_are_pinned_and_name_no_registry() {
    let folder = "crates/cli/tests/it/lies/runners";
    let lock = read(&format!("{folder}/package-lock.json"));
    assert!(!lock.contains("\"resolved\"") && !lock.contains("://"), "the lock file names a host: remove its `resolved` lines");
    let packages = lock.matches("\"node_modules/").count();
    assert!(packages > 100 && lock.matches("\"integrity\": \"sha512-").count() == packages);
    for line in commands(&read(&format!("{folder}/requirements.txt"))) {
        assert!(line.contains("==") && !line.contains("://"), "{line} is not pinned");
    }
}

#[test]
fn no_test_is_ignored() {
    // Split in two parts so that this file does not match itself.
    let marker = concat!("#[", "ignore");
    for path in files_ending("rs") {
        assert!(!read(&path).contains(marker), "{path} has an ignored test");
    }
}

#[test]
fn every_guarantee_names_tests_that_are_there() {
    let sources: Vec<String> = files_ending("rs").iter().map(|path| read(path)).collect();
    let page = ["docs/guarantees.md", "docs/security.md"].map(read).concat();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| What you can"));
    let mut seen = 0;
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test shows this: {row}");
        for name in names {
            let function = format!("fn {name}(");
            assert!(sources.iter().any(|source| source.contains(&function)), "no test is called {name}");
        }
        seen += 1;
    }
    assert!(seen > 30, "only {seen} guarantees were found: the search is broken");
}
