//! `verdone workspace`: a shell in an agent's workspace, and leftover folders.

use std::fs;

use serde_json::Value;
use verdone_testkit::{PATIENCE, Running, Sandbox, Signal};

use crate::commands::stage::{project, start, transcript, verdone};

fn shell(sandbox: &Sandbox, arguments: &[&str], script: &str) -> verdone_testkit::Output {
    verdone(sandbox, &[&["workspace", "shell"], arguments, &["--", "sh", "-c", script]].concat())
}

/// A shell that runs until it is killed or `tmp/go` exists.
fn waiting_shell(sandbox: &Sandbox) -> Running {
    let shared = sandbox.root().join("tmp");
    sandbox.write(".verdone/config.toml", format!("[workspace]\nwritable = [\"{}\"]\n", shared.display()));
    let script = "echo inside; while [ ! -e ../tmp/go ]; do sleep 0.02; done";
    let running = start(sandbox, &["workspace", "shell", "--", "sh", "-c", script]);
    running.wait_for("inside", PATIENCE);
    running
}

fn listed(sandbox: &Sandbox) -> Vec<Value> {
    let output = verdone(sandbox, &["workspace", "list", "--json"]);
    output.assert_code(0);
    serde_json::from_str::<Value>(&output.stdout).unwrap().as_array().unwrap().clone()
}

#[test]
fn a_command_runs_where_an_agent_would_and_nothing_that_it_writes_stays() {
    let sandbox = project();
    fs::create_dir(sandbox.home().join(".ssh")).unwrap();
    fs::write(sandbox.home().join(".ssh/id"), "key\n").unwrap();
    sandbox.write("notes.txt", "not committed\n");
    let script = "pwd; cat README.md; ls notes.txt 2>/dev/null; ls -A ~/.ssh; git log --format=%s; \
                  echo agent > README.md; echo x > new.txt; echo x > ~/.profile; git commit --quiet --all --message theirs; exit 7";
    for arguments in [&[][..], &["--checks"]] {
        let output = shell(&sandbox, arguments, script);
        output.assert_code(7);
        assert_eq!(output.stdout, format!("{}\n# A project\ninitial\n", sandbox.work().display()), "{arguments:?}");
        assert_eq!(output.stderr, "", "{arguments:?}");
        assert_eq!(sandbox.git(["status", "--porcelain"]), "?? notes.txt");
        assert_eq!(sandbox.git(["log", "--all", "--format=%s"]), "initial");
        assert!(!sandbox.home().join(".profile").exists());
        assert_eq!(listed(&sandbox), Vec::<Value>::new(), "the workspace is gone with its shell");
    }
}

#[test]
fn checks_have_no_login_of_the_agents() {
    let mut sandbox = project();
    sandbox.set("ANTHROPIC_API_KEY", "secret");
    sandbox.set("GITHUB_TOKEN", "secret");
    let script = "echo ${ANTHROPIC_API_KEY-none} ${GITHUB_TOKEN-none}";
    assert_eq!(shell(&sandbox, &[], script).stdout, "secret none\n");
    assert_eq!(shell(&sandbox, &["--checks"], script).stdout, "none none\n");
}

#[test]
fn a_cold_start_has_dependencies_and_no_build_output_whatever_the_machine_can_do() {
    for fault in ["none", "overlay", "unshare"] {
        let mut sandbox = project();
        sandbox.write(".gitignore", "target/\nnode_modules/\n");
        sandbox.git(["add", ".gitignore"]);
        sandbox.git(["commit", "--quiet", "--message", "rules"]);
        sandbox.write("target/old", "built\n");
        sandbox.write("node_modules/lib", "lib\n");
        sandbox.set("VERDONE_LAUNCH_FAIL", fault);
        for (arguments, seen) in
            [(&["--checks", "--cold"][..], "node_modules/lib\n"), (&["--checks"], "target/old\nnode_modules/lib\n")]
        {
            let output =
                shell(&sandbox, arguments, "ls target/old 2>/dev/null; ls node_modules/lib; mkdir -p target; touch target/new");
            assert_eq!(output.stdout, seen, "{fault} {arguments:?}\n{}", output.stderr);
        }
        assert!(!sandbox.work().join("target/new").exists());
    }
}

#[test]
fn the_folder_of_a_hidden_check_is_empty_for_an_agent_and_for_other_checks() {
    let sandbox = project();
    fs::create_dir(sandbox.home().join("hidden")).unwrap();
    fs::write(sandbox.home().join("hidden/test"), "secret\n").unwrap();
    let gate = "[[gate]]\nname = \"exam\"\ncommand = \"true\"\nhidden = \"~/hidden\"\n";
    sandbox.write(".verdone/config.toml", gate);
    for arguments in [&[][..], &["--checks"]] {
        let output = shell(&sandbox, arguments, "ls -A ~/hidden; cat ~/hidden/test; echo $VERDONE_HIDDEN");
        assert_eq!(output.stdout, "\n", "{arguments:?}\n{}", output.stderr);
    }
}

#[test]
fn a_hidden_check_that_could_not_be_hidden_is_refused() {
    let mut sandbox = project();
    let configure = |sandbox: &Sandbox, folder: &str| {
        let gate = format!("[[gate]]\nname = \"exam\"\ncommand = \"true\"\nhidden = \"{folder}\"\n");
        sandbox.write(".verdone/config.toml", gate);
    };
    let inside = sandbox.work().join("exam");
    fs::create_dir(&inside).unwrap();
    for (folder, why) in [(inside.to_str().unwrap(), "inside the repository"), ("~/absent", "does not exist")] {
        configure(&sandbox, folder);
        let refused = shell(&sandbox, &["--checks"], "true");
        refused.assert_code(2);
        let said = format!("error: the hidden folder of gate \"exam\", {folder}, cannot be used: it ");
        assert!(refused.stderr.starts_with(&said) && refused.stderr.contains(why), "{}", refused.stderr);
    }
    fs::create_dir(sandbox.home().join("hidden")).unwrap();
    configure(&sandbox, "~/hidden");
    sandbox.set("VERDONE_LAUNCH_FAIL", "unshare");
    let refused = shell(&sandbox, &[], "true");
    refused.assert_code(2);
    let said = "error: gate \"exam\" has hidden checks, which only a private view can hide from agents; this machine has none: ";
    assert!(refused.stderr.starts_with(said) && refused.stderr.contains("verdone doctor"), "{}", refused.stderr);
}

#[test]
fn the_exit_code_says_how_the_command_ended() {
    let sandbox = project();
    shell(&sandbox, &[], "true").assert_code(0);
    shell(&sandbox, &[], "kill -TERM $$").assert_code(143);
    let missing = verdone(&sandbox, &["workspace", "shell", "--", "no-such-program"]);
    missing.assert_code(1);
    assert!(missing.stderr.contains("cannot execute no-such-program: No such file or directory"), "{}", missing.stderr);
}

#[test]
fn the_users_own_shell_is_started_without_a_command() {
    let mut sandbox = project();
    sandbox.add_script("own-shell", "#!/bin/sh\necho mine in \"$PWD\"\nexit 3\n");
    sandbox.set("SHELL", sandbox.root().join("bin/own-shell"));
    let output = verdone(&sandbox, &["workspace", "shell"]);
    output.assert_code(3);
    assert_eq!(output.stdout, format!("mine in {}\n", sandbox.work().display()));
}

#[test]
fn a_repository_without_a_commit_has_nothing_to_show() {
    let sandbox = Sandbox::new();
    sandbox.git(["init", "--quiet"]);
    let output = shell(&sandbox, &[], "true");
    output.assert_code(2);
    assert!(output.stderr.starts_with("error: the repository has no commit yet\nhint: "), "{}", output.stderr);
}

#[test]
fn a_workspace_in_use_is_listed_and_not_removed() {
    let sandbox = project();
    let running = waiting_shell(&sandbox);
    let all = listed(&sandbox);
    let [one] = &all[..] else { panic!("{all:?}") };
    let name = one["name"].as_str().unwrap();
    assert_eq!((&one["in_use"], &one["project"]), (&true.into(), &sandbox.work().display().to_string().into()));
    assert_eq!(one["pid"], running.pid());
    assert!(one["bytes"].as_u64().unwrap() > 0);
    let text = verdone(&sandbox, &["workspace", "list"]).stdout;
    assert!(text.starts_with(&format!("{name}  in use by process {}, ", running.pid())), "{text}");

    let refused = verdone(&sandbox, &["workspace", "remove", name]);
    refused.assert_code(4);
    let said = format!("error: the workspace {name} is in use by process {}\nhint: ", running.pid());
    assert!(refused.stderr.starts_with(&said), "{}", refused.stderr);
    let all = verdone(&sandbox, &["workspace", "remove", "--all"]);
    assert_eq!((all.code, all.stdout.as_str()), (0, "Removed 0 workspaces.\n"));
    assert_eq!(listed(&sandbox).len(), 1);

    fs::write(sandbox.root().join("tmp/go"), "").unwrap();
    running.wait(PATIENCE).assert_code(0);
    assert_eq!(verdone(&sandbox, &["workspace", "list"]).stdout, "No workspaces.\n");
}

#[test]
fn what_a_killed_process_left_is_listed_and_removed() {
    for by_name in [true, false] {
        let sandbox = project();
        let running = waiting_shell(&sandbox);
        running.signal(Signal::KILL);
        running.wait(PATIENCE).assert_code(-9);
        sandbox.assert_no_survivors(PATIENCE);
        let name = listed(&sandbox)[0]["name"].as_str().unwrap().to_owned();
        assert_eq!((&listed(&sandbox)[0]["in_use"], &listed(&sandbox)[0]["pid"]), (&false.into(), &Value::Null));
        assert!(verdone(&sandbox, &["workspace", "list"]).stdout.starts_with(&format!("{name}  left behind, ")));
        let argument = if by_name { name.as_str() } else { "--all" };
        let removed = verdone(&sandbox, &["workspace", "remove", argument]);
        assert_eq!((removed.code, removed.stdout.as_str()), (0, "Removed 1 workspace.\n"));
        let state = sandbox.home().join(".local/state/verdone");
        for folder in ["workspaces", "trash"] {
            assert_eq!(fs::read_dir(state.join(folder)).unwrap().count(), 0, "{folder}");
        }
    }
}

#[test]
fn a_workspace_that_does_not_exist_is_not_removed() {
    let sandbox = project();
    let commands: [&[&str]; 4] = [
        &["workspace", "list"],
        &["workspace", "remove", "../../home"],
        &["workspace", "remove"],
        &["workspace", "remove", "x", "--all"],
    ];
    let outputs = transcript("workspace", &sandbox, &commands);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [0, 2, 2, 2]);
    assert!(sandbox.home().is_dir());
}
