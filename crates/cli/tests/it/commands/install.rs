//! `verdone install`, `uninstall`, and what `doctor` reports about installed hooks. HOME is in the sandbox.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;
use verdone_testkit::{Output, PATIENCE, Sandbox, Tmux};

use crate::commands::stage::{BINARY, compare, project, repository, verdone};

const LOCAL: &str = ".claude/settings.local.json";
const SETTINGS: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n        ]\n    }\n}\n";

/// Runs the commands one after the other and compares the outputs with the file of that name; replaces the program's path, which differs
/// between machines.
#[track_caller]
fn transcript(name: &str, sandbox: &Sandbox, commands: &[&[&str]]) -> Vec<Output> {
    let mut outputs: Vec<Output> = commands.iter().map(|arguments| verdone(sandbox, arguments)).collect();
    for output in &mut outputs {
        output.stdout = output.stdout.replace(BINARY, "[VERDONE]");
    }
    compare(name, sandbox, &outputs);
    outputs
}

/// A repository that Verdone guards.
fn guarded() -> Sandbox {
    let sandbox = repository();
    fs::create_dir(sandbox.path(".verdone")).unwrap();
    sandbox
}

#[test]
fn without_a_project_folder_nothing_is_installed_and_with_it_a_forced_push_is_denied() {
    let sandbox = repository();
    let refused = verdone(&sandbox, &["install", "--yes"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("hint: verdone init, then verdone install"), "{}", refused.stderr);
    assert!(!sandbox.path(".claude").exists());
    fs::create_dir(sandbox.path(".verdone")).unwrap();
    verdone(&sandbox, &["install", "--yes"]).assert_code(0);
    let input = serde_json::json!({
        "session_id": "s1", "transcript_path": "/dev/null", "cwd": sandbox.work(), "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": { "command": "git push --force" }, "tool_use_id": "t1",
    });
    sandbox.write("input.json", input.to_string());
    let answer = sandbox.run("sh", ["-c", &format!("'{BINARY}' hook < input.json")]);
    assert!(answer.stdout.contains("\"permissionDecision\":\"deny\""), "{}", answer.stdout);
}

fn assert_codes(outputs: &[Output], codes: &[i32]) {
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), codes);
}

#[test]
fn what_is_installed_into_nothing_is_removed_with_its_folder() {
    let sandbox = guarded();
    let first: [&[&str]; 3] = [&["install", "--dry-run"], &["install", "--yes"], &["install", "--yes"]];
    assert_codes(&transcript("install", &sandbox, &first), &[0, 0, 0]);
    assert!(sandbox.read(LOCAL).contains(BINARY));
    let then: [&[&str]; 2] = [&["uninstall", "--yes"], &["uninstall", "--yes"]];
    assert_codes(&transcript("uninstall", &sandbox, &then), &[0, 0]);
    assert!(!sandbox.path(".claude").exists());
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = guarded();
    verdone(&sandbox, &["install", "--dry-run"]).assert_code(0);
    assert!(!sandbox.path(".claude").exists());
}

#[test]
fn settings_of_the_user_come_back_byte_for_byte() {
    let sandbox = guarded();
    sandbox.write(".claude/settings.json", SETTINGS);
    fs::set_permissions(sandbox.path(".claude/settings.json"), fs::Permissions::from_mode(0o600)).unwrap();
    transcript("install-beside-hooks", &sandbox, &[&["install", "--project", "--yes"]])[0].assert_code(0);
    let with: Value = serde_json::from_str(&sandbox.read(".claude/settings.json")).unwrap();
    assert_eq!(with["hooks"]["Stop"].as_array().map(Vec::len), Some(2));
    verdone(&sandbox, &["uninstall", "--project", "--yes"]).assert_code(0);
    assert_eq!(sandbox.read(".claude/settings.json"), SETTINGS);
    let mode = fs::metadata(sandbox.path(".claude/settings.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_users_own_file_is_in_the_home_and_a_link_stays_one() {
    let sandbox = Sandbox::new();
    let (folder, real) = (sandbox.home().join(".claude"), sandbox.root().join("dotfiles.json"));
    fs::create_dir(&folder).unwrap();
    fs::write(&real, "{}").unwrap();
    symlink(&real, folder.join("settings.json")).unwrap();
    let output = verdone(&sandbox, &["install", "--user", "--yes", "--json"]);
    output.assert_code(0);
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&told["scope"], &told["changes"], &told["written"]), (&"user".into(), &true.into(), &true.into()));
    assert_eq!(told["file"], folder.join("settings.json").to_str().unwrap());
    assert!(fs::read_to_string(&real).unwrap().contains("\"PreToolUse\""));
    assert!(fs::symlink_metadata(folder.join("settings.json")).unwrap().is_symlink());
    verdone(&sandbox, &["uninstall", "--user", "--yes"]).assert_code(0);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}");
}

#[test]
fn what_cannot_be_edited_is_refused_with_its_place_and_left_alone() {
    let sandbox = guarded();
    let mut outputs = vec![verdone(&sandbox, &["install"]), verdone(&sandbox, &["install", "--json"])];
    outputs.push(verdone(&sandbox, &["install", "--user", "--local"]));
    let commented = "{\n  // mine\n  \"model\": \"opus\"\n}\n";
    sandbox.write(LOCAL, commented);
    outputs.push(verdone(&sandbox, &["install", "--yes"]));
    outputs.push(verdone(&sandbox, &["uninstall", "--yes"]));
    outputs.push(verdone(&sandbox, &["doctor"]));
    assert_eq!(sandbox.read(LOCAL), commented);
    sandbox.write(LOCAL, "{\"hooks\": [\"\u{202e}\"]}");
    outputs.push(verdone(&sandbox, &["install", "--yes"]));
    fs::remove_file(sandbox.path(LOCAL)).unwrap();
    fs::create_dir(sandbox.path(LOCAL)).unwrap();
    outputs.push(verdone(&sandbox, &["install", "--yes"]));
    assert!(outputs.iter().all(|output| output.code == 2));
    for output in &mut outputs {
        output.stdout = output.stdout.replace(BINARY, "[VERDONE]");
    }
    // The complete change was compared above; here it would only distract.
    outputs[0].stdout = "[DIFF]\n".to_owned();
    compare("install-refused", &sandbox, &outputs);
}

#[test]
fn hooks_that_do_not_work_are_told_with_the_way_back() {
    let mut sandbox = guarded();
    sandbox.write(LOCAL, "{\"disableAllHooks\": true}\n");
    let mut outputs = vec![verdone(&sandbox, &["install", "--yes"]), verdone(&sandbox, &["uninstall", "--yes"])];
    sandbox.write(LOCAL, "{\"env\": {}}\n");
    sandbox.set("TMPDIR", "/nowhere");
    outputs.push(verdone(&sandbox, &["install", "--yes"]));
    let json = verdone(&sandbox, &["install", "--user", "--yes", "--json"]);
    json.assert_code(1);
    let told: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&told["written"], &told["trouble"]), (&true.into(), &"cannot create a folder to try it in".into()));
    outputs.push(verdone(&sandbox, &["uninstall", "--yes"]));
    assert_codes(&outputs, &[1, 0, 1, 0]);
    assert_eq!(sandbox.read(LOCAL), "{\"env\": {}}\n");
    for output in &mut outputs {
        output.stdout = output.stdout.split_inclusive('\n').filter(|line| !line.starts_with(['+', '-', ' ', '@'])).collect();
    }
    compare("install-does-not-work", &sandbox, &outputs);
}

#[test]
fn on_a_terminal_it_asks() {
    let sandbox = guarded();
    let terminal = Tmux::start(&sandbox, 80, 24, [BINARY, "install"]);
    terminal.wait_for("Write .claude/settings.local.json? [y/N]", PATIENCE);
    terminal.send_keys(&["n", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 4);
    assert!(!sandbox.path(LOCAL).exists());
}

#[test]
fn doctor_says_whether_installed_hooks_answer() {
    let sandbox = project();
    sandbox.git(["config", "core.excludesFile", &sandbox.root().join("ignored").to_string_lossy()]);
    fs::write(sandbox.root().join("ignored"), ".claude\n").unwrap();
    verdone(&sandbox, &["install", "--yes"]).assert_code(0);
    let real = sandbox.read(LOCAL);
    let fake = sandbox.add_script("verdone", "#!/bin/sh\ncat > /dev/null\n");
    let with_program = |program: &str| real.replace(BINARY, program);
    let mut outputs = Vec::new();
    let mut look = |text: &str, script: Option<&str>| {
        if let Some(script) = script {
            sandbox.add_script("verdone", script);
        }
        sandbox.write(LOCAL, text);
        let mut output = verdone(&sandbox, &["doctor"]);
        output.assert_code(0);
        let from = output.stdout.lines().position(|line| line.contains(" hooks ")).unwrap();
        output.stdout = output.stdout.split_inclusive('\n').skip(from).collect();
        outputs.push(output);
    };
    let text = with_program(&fake.to_string_lossy());
    look(&text, None);
    look(&text, Some("#!/bin/sh\ncat > /dev/null\necho '{\"systemMessage\": \"hello\"}'\n"));
    look(&text, Some("#!/bin/sh\necho talk\n"));
    look(&text, Some("#!/bin/sh\nexit 2\n"));
    look(&text.replacen("\"PreToolUse\"", "\"Elsewhere\"", 1), Some("#!/bin/sh\n"));
    look(&text.replacen('{', "{ \"disableAllHooks\": true,", 1), None);
    look(&with_program("/nowhere/verdone"), None);
    sandbox.write_script("verdone", "#!/bin/sh\ntouch started\n");
    look(&with_program(&sandbox.path("verdone").to_string_lossy()), None);
    assert!(!sandbox.path("started").exists(), "what a repository brings is not started");
    compare("doctor-hooks", &sandbox, &outputs);
}
