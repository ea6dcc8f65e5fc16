//! Commits that are refused, and history that an agent moves.

use super::{SHORT, add_commit};
use crate::world::{HONEST, ONE, Settings, World, always, text};

/// Blocked: exit code 4, the work kept, the tree as it was.
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
    assert_blocked(&world, "failed to write commit object");
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
    world.sandbox.assert_no_survivors(crate::world::PATIENCE);
}

#[test]
fn a_pre_commit_hook_that_hangs_is_ended_at_the_deadline() {
    let settings = Settings { tables: "[commit]\ntimeout = \"1s\"", ..Settings::default() };
    let world = World::with(ONE, HONEST, &settings);
    world.hook("pre-commit", "echo still-linting; sleep 60");
    assert_blocked(&world, "no answer within 1 s");
    world.sandbox.assert_no_survivors(crate::world::PATIENCE);
}

#[test]
fn a_commit_msg_hook_may_rewrite_the_message_and_the_evidence_stays() {
    let world = World::new(ONE, HONEST);
    world.hook("commit-msg", "echo 'PROJ-7 all new' > \"$1\"");
    world.run(0);
    assert_eq!(world.subjects(), ["PROJ-7 all new", "initial"]);
    assert!(world.git(&["notes", "--ref=verdone", "show", "HEAD"]).contains("\"verdict\": \"verified\""));
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.subjects(), ["initial"]);
}

#[test]
fn history_that_an_agent_moves_is_put_back_kept_and_fed_back() {
    for (name, steps, reason) in [
        ("reset", "{ run = \"git reset --quiet --hard HEAD~1\" }, { create = \"a\" }", "is no longer part of the branch"),
        ("amend", "{ create = \"a\" }, { amend = \"rewritten\" }", "is no longer part of the branch"),
        (
            "rebase",
            "{ run = \"GIT_COMMITTER_NAME=Agent git rebase --quiet --force-rebase --root\" }, { create = \"a\" }",
            "is no longer part of the branch",
        ),
        ("switch", "{ create = \"a\" }, { switch = \"elsewhere\" }", "HEAD went from main to elsewhere"),
        (
            "delete",
            "{ create = \"a\" }, { run = \"git checkout --quiet --detach; git branch --quiet -D main\" }",
            "HEAD went from main to a detached HEAD",
        ),
        ("unborn", "{ create = \"a\" }, { run = \"git update-ref -d HEAD\" }", "the branch was deleted"),
        ("orphan", "{ run = \"git checkout --quiet --orphan new\" }, { create = \"a\" }", "HEAD went from main to new"),
    ] {
        let script = format!("[[turn]]\nattempt = 1\nsteps = [{steps}]\n[[turn]]\nsteps = [{{ create = \"a\" }}]\n");
        let world = World::with(ONE, &script, &Settings { limits: "attempts = 2\nturns = 1", ..Settings::default() });
        add_commit(&world, "second", "");
        let base = world.head();
        let output = world.run(0);
        let rejected = &world.all("attempt_rejected")[0];
        assert_eq!(text(&rejected["rejection"]), "history_moved", "{name}");
        assert!(text(&rejected["reason"]).contains(reason), "{name}: {rejected}");
        assert!(output.stdout.contains("The branch was moved or rewritten: "), "{name}: {}", output.stdout);
        assert!(world.tree_files(&world.kept()).contains(&"a".to_owned()), "{name}: the work is kept");
        assert_eq!(world.git(&["rev-parse", "main^"]), base, "{name}: the second attempt is built on the old history");
        assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main", "{name}");
        assert_eq!(output.stdout.contains("commits made during the attempt"), ["amend", "rebase"].contains(&name), "{name}");
        assert!(world.prompt(2).contains(reason), "{name}: {}", world.prompt(2));
        world.assert_clean();
    }
}

#[test]
fn an_edit_and_a_staged_file_of_the_users_survive() {
    let world = World::with(ONE, &always("{ create = \"x\" }"), &SHORT);
    world.sandbox.write("README.md", "edited by the user\n");
    world.sandbox.write("staged", "staged by the user\n");
    world.git(&["add", "staged"]);
    world.run(2);
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\nA  staged");
    assert_eq!(world.sandbox.read("README.md"), "edited by the user\n");
    assert_eq!(world.git(&["show", ":staged"]), "staged by the user");
}
