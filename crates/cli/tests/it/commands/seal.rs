//! A machine that refuses a part of a workspace: `doctor` names it, a run completes without it and says so, and `[seal] required` refuses.
//! Each is tested as root and as an unprivileged user.

use std::fs;
use std::path::Path;

use serde_json::Value;
use verdone_testkit::{Sandbox, repeat_unprivileged};

use crate::commands::stage::{BINARY, run_subjects, verdone};

/// Tests where it can write and what it can see, and does its work.
const AGENT: &str = "#!/bin/sh
echo hello > greeting.txt
echo changed > node_modules/dependency
echo outside > \"$OUTSIDE\" 2> /dev/null
echo \"works in $(pwd)\"
echo \"keys: $(ls -A \"$HOME/.ssh\")\"
echo 'Done.'
";

/// The expectations for a machine without some part.
struct Refused {
    /// The step at which the launcher fails.
    fault: &'static str,
    /// What `doctor` says: the step, the error and the solution.
    doctor: [&'static str; 3],
    /// How the journal and the start of the run name the missing part.
    missing: &'static str,
    /// Whether agents still have a private view.
    view: bool,
    /// Whether the part belongs to the seal.
    seal: bool,
}

#[test]
fn without_namespaces_a_run_works_in_a_clone() {
    check(&Refused {
        fault: "unshare",
        doctor: ["no private view: cannot create namespaces", "(os error 1)", "allow"],
        missing: "no private view of the file system: cannot create namespaces: Operation not permitted",
        view: false,
        seal: true,
    });
}

#[test]
fn without_user_ids_of_its_own_a_run_works_in_a_clone() {
    check(&Refused {
        fault: "idmap",
        doctor: ["no private view: cannot map user ids", "(os error 1)", "allow"],
        missing: "no private view of the file system: cannot map user ids",
        view: false,
        seal: true,
    });
}

#[test]
fn without_mounts_a_run_works_in_a_clone() {
    check(&Refused {
        fault: "mount",
        doctor: ["no private view: cannot mount anything in the new namespace", "(os error 13)", "allow"],
        missing: "no private view of the file system: cannot mount anything in the new namespace: Permission denied",
        view: false,
        seal: true,
    });
}

#[test]
fn without_overlays_a_run_works_with_copies() {
    check(&Refused {
        fault: "overlay",
        doctor: ["no copy-on-write folders: cannot mount copy-on-write folder", "(os error 22)", "XDG_STATE_HOME"],
        missing: "no copy-on-write, so dependency folders are copied: cannot mount copy-on-write folder: Invalid argument",
        view: true,
        seal: false,
    });
}

#[test]
fn without_a_proc_of_its_own_a_run_shows_the_processes_outside() {
    check(&Refused {
        fault: "proc",
        doctor: ["no private /proc: cannot mount /proc", "(os error 1)", "unmasked"],
        missing: "processes outside are listed in /proc: cannot mount /proc: Operation not permitted",
        view: true,
        seal: true,
    });
}

#[test]
fn without_a_network_of_its_own_a_run_completes_and_an_offline_seal_is_incomplete() {
    as_everybody(|| {
        let sandbox = world("network", "");
        completes(&sandbox);
        assert_eq!(started(&sandbox)["seal"]["level"], "view");
        assert!(started(&sandbox)["seal"].get("missing").is_none(), "nobody asked for it: {}", started(&sandbox));

        let offline = world("network", "[seal]\ncheck_network = \"off\"\n");
        completes(&offline);
        let missing = started(&offline)["seal"]["missing"][0].as_str().unwrap().to_owned();
        assert!(missing.starts_with("the network cannot be cut off: cannot create a network namespace"), "{missing}");

        let required = world("network", "[seal]\ncheck_network = \"off\"\nrequired = true\n");
        let refused = verdone(&required, &["run"]);
        refused.assert_code(2);
        assert!(refused.stderr.contains("cannot create a network namespace: No space left on device"), "{}", refused.stderr);
    });
}

fn check(refused: &Refused) {
    as_everybody(|| {
        let sandbox = world(refused.fault, "");
        let doctor = verdone(&sandbox, &["doctor"]);
        doctor.assert_code(0);
        for part in refused.doctor {
            assert!(doctor.stdout.contains(part), "no {part:?} in\n{}", doctor.stdout);
        }
        assert!(doctor.stdout.contains("hint: "), "{}", doctor.stdout);

        let output = completes(&sandbox);
        let seal = started(&sandbox)["seal"].clone();
        let landlock = doctor.stdout.contains("Landlock refuses writes elsewhere");
        let level = match (refused.view, landlock) {
            (true, _) => "view",
            (false, true) => "landlock",
            (false, false) => "unsealed",
        };
        assert_eq!(seal["level"], level, "{seal}");
        let missing: Vec<&str> = seal["missing"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        assert!(missing[0].starts_with(refused.missing), "{missing:?}");
        let start = output.split("Baseline").next().unwrap();
        assert_eq!(start.matches(refused.missing).count(), 1, "said once at the start of the run:\n{start}");

        let outside = sandbox.root().join("outside");
        assert!(level == "unsealed" || !outside.exists(), "the agent wrote outside of its workspace");
        let checkout = sandbox.work().display().to_string();
        let place = output.lines().find_map(|line| line.split_once("works in ")).unwrap().1.to_owned();
        if refused.view {
            assert_eq!(place, checkout, "the workspace is seen at the project's own path");
            assert!(output.contains("│ keys: \n") || output.contains("│ keys:\n"), "credentials are hidden:\n{output}");
        } else {
            assert!(!place.starts_with(&checkout), "{place}");
            assert!(missing.iter().any(|text| text.contains("credentials") || text.contains("no Landlock")), "{missing:?}");
        }

        let required = world(refused.fault, "[seal]\nrequired = true\n");
        if !refused.seal {
            completes(&required);
            return;
        }
        let output = verdone(&required, &["run"]);
        output.assert_code(2);
        assert!(output.stderr.starts_with("error: this machine cannot seal a workspace: "), "{}", output.stderr);
        for hint in [refused.doctor[2], "hint: or allow weaker confinement: [seal] required = false", "hint: verdone doctor"] {
            assert!(output.stderr.contains(hint), "no {hint:?} in\n{}", output.stderr);
        }
        assert_eq!(verdone(&required, &["status"]).code, 2, "no run was started");
        assert_eq!(required.git(["for-each-ref", "refs/heads/verdone"]), "");
        let doctor = verdone(&required, &["doctor"]);
        doctor.assert_code(2);
        assert!(doctor.stdout.contains("[seal] required = true"), "{}", doctor.stdout);
    });
}

/// Runs the plan and returns the output. Asserts that the story is committed and the user's files are unchanged.
#[track_caller]
fn completes(sandbox: &Sandbox) -> String {
    let output = verdone(sandbox, &["run"]);
    output.assert_code(0);
    assert_eq!(run_subjects(sandbox), "feat(US-001): Write a greeting\ninitial");
    assert_eq!(sandbox.git(["status", "--porcelain"]), "");
    assert_eq!(sandbox.read("node_modules/dependency"), "installed\n", "the user's own folder is unchanged");
    assert!(!sandbox.path("greeting.txt").exists());
    assert_eq!(verdone(sandbox, &["workspace", "list"]).stdout, "No workspaces.\n");
    output.stdout
}

/// The first event of the only run.
fn started(sandbox: &Sandbox) -> Value {
    let log = verdone(sandbox, &["log", "--json"]).stdout;
    serde_json::from_str(log.lines().next().unwrap()).unwrap()
}

/// One story, a dependency folder that its gate needs, and a key in the home folder; the launcher fails at one step.
fn world(fault: &str, tables: &str) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("PLAN.md", "- [ ] US-001: Write a greeting\n  - Verification: `grep hello greeting.txt`\n");
    let gate = "[[gate]]\nname = \"dependency\"\ncommand = \"test -s node_modules/dependency\"\n";
    sandbox.write(".verdone/config.toml", format!("[agent.command]\nrun = \"try-agent\"\n{gate}{tables}"));
    sandbox.add_script("try-agent", AGENT);
    sandbox.write(".gitignore", "node_modules/\n");
    sandbox.write("node_modules/dependency", "installed\n");
    fs::create_dir(sandbox.home().join(".ssh")).unwrap();
    fs::write(sandbox.home().join(".ssh/id"), "key\n").unwrap();
    sandbox.set("VERDONE_LAUNCH_FAIL", fault);
    sandbox.set("OUTSIDE", sandbox.root().join("outside"));
    sandbox.repo();
    sandbox
}

/// Runs the test as the current user and, if that is root, once more as an unprivileged user.
fn as_everybody(test: impl Fn()) {
    test();
    repeat_unprivileged(Path::new(BINARY));
}
