//! Refused commits, and history that an agent changes in its workspace.

use super::{SHORT, add_commit};
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, World, always};

/// Asserts that the run is blocked: exit code 4, the work is kept, and the checkout is unchanged.
#[track_caller]
fn assert_blocked(world: &World, said: &str) {
    let output = world.run(4);
    assert_eq!(world.finish(), "blocked", "{}", output.stdout);
    assert!(output.stdout.contains(said), "{}", output.stdout);
    assert_eq!(world.git(&["show", &format!("{}:a", world.kept())]), "one");
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.plan(), ONE);
    world.assert_clean();
}

#[test]
fn a_signing_program_that_fails_blocks_the_story() {
    let world = World::new(ONE, HONEST);
    let program = world.sandbox.add_script("signer", "#!/bin/sh\necho no-secret-key >&2\nexit 2\n");
    world.git(&["config", "commit.gpgSign", "true"]);
    world.git(&["config", "gpg.program", program.to_str().unwrap()]);
    assert_blocked(&world, "gpg failed to sign the data: no-secret-key");
}

#[test]
fn a_signing_program_that_waits_for_a_terminal_is_ended_at_the_deadline() {
    let settings = Settings { tables: "[commit]\ntimeout = \"1s\"", ..Settings::default() };
    let world = World::with(ONE, HONEST, &settings);
    let program = world.sandbox.add_script(
        "signer",
        "#!/bin/sh\nif (: < /dev/tty) 2> /dev/null; then echo has-a-terminal >&2; exit 3; fi\nexec sleep 60\n",
    );
    world.git(&["config", "commit.gpgSign", "true"]);
    world.git(&["config", "gpg.program", program.to_str().unwrap()]);
    assert_blocked(&world, "no answer within 1 s");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_pre_commit_hook_that_hangs_is_ended_at_the_deadline() {
    let settings = Settings { tables: "[commit]\ntimeout = \"1s\"", ..Settings::default() };
    let world = World::with(ONE, HONEST, &settings);
    world.hook("pre-commit", "echo still-linting; sleep 60");
    assert_blocked(&world, "did not finish within 1 s");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_commit_msg_hook_may_rewrite_the_message_and_the_evidence_stays() {
    let world = World::new(ONE, HONEST);
    world.hook("commit-msg", "echo 'PROJ-7 all new' > \"$1\"");
    world.run(0);
    assert_eq!(world.subjects(), ["PROJ-7 all new", "initial"]);
    assert!(world.git(&["notes", "--ref=verdone", "show", "HEAD"]).contains("\"proof\": \"verified\""));
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.subjects(), ["revert: US-001", "PROJ-7 all new", "initial"]);
}

#[test]
fn history_that_an_agent_moves_in_its_workspace_changes_nothing_but_its_files() {
    for (name, steps) in [
        ("reset", "{ run = \"git reset --quiet --hard HEAD~1\" }, { create = \"a\" }"),
        ("amend", "{ create = \"a\" }, { amend = \"rewritten\" }"),
        ("rebase", "{ run = \"git rebase --quiet --force-rebase --root\" }, { create = \"a\" }"),
        ("switch", "{ create = \"a\" }, { switch = \"elsewhere\" }"),
        ("delete", "{ create = \"a\" }, { run = \"git checkout --quiet --detach; git branch --quiet -D main\" }"),
        ("unborn", "{ create = \"a\" }, { run = \"git update-ref -d HEAD\" }"),
        ("orphan", "{ run = \"git checkout --quiet --orphan new\" }, { create = \"a\" }"),
        ("commits", "{ create = \"a\" }, { commit = \"one\" }, { create = \"b\" }, { commit = \"two\" }"),
        ("without a repository", "{ create = \"a\" }, { run = \"rm -rf .git/refs .git/HEAD .git/config .git/index\" }"),
    ] {
        let world = World::with(ONE, &always(steps), &SHORT);
        add_commit(&world, "second", "2\n");
        let base = world.head();
        world.run(0);
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "second", "initial"], "{name}");
        assert_eq!(world.git(&["rev-parse", "main^"]), base, "{name}");
        assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main", "{name}");
        let branches = world.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        assert_eq!(branches.lines().filter(|branch| !branch.starts_with("verdone/")).collect::<Vec<_>>(), ["main"], "{name}");
        assert_eq!(world.has("second"), name != "reset", "{name}: the files count, and a hard reset deletes one");
        world.assert_clean();
    }
}

#[test]
fn an_edit_and_a_staged_file_of_the_users_survive() {
    for (script, code) in [(always("{ create = \"x\" }"), 4), (HONEST.to_owned(), 0)] {
        let world = World::with(ONE, &script, &SHORT);
        world.sandbox.write("README.md", "edited by the user\n");
        world.sandbox.write("staged", "staged by the user\n");
        world.git(&["add", "staged"]);
        let output = world.run(code);
        assert!(output.stdout.contains("2 uncommitted files are not part of the run: README.md, staged"), "{}", output.stdout);
        assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\nA  staged");
        assert_eq!(world.sandbox.read("README.md"), "edited by the user\n");
        assert_eq!(world.git(&["show", ":staged"]), "staged by the user");
        assert_eq!(world.has("a"), code == 0, "landed beside them");
    }
}
