//! Agents that tamper with git or the judge's files instead of working on the story, also through code that checks and git hooks run.

use crate::run_loop::world::{ONE, Settings, TWO, World, always, reason};

const SHORT: Settings<'static> = Settings { top: "", limits: "attempts = 1\nturns = 1", tables: "" };

#[test]
fn a_file_that_the_agent_hides_from_its_own_git_is_committed_as_it_was_verified() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let plan = ONE.replace("test -f a", "grep -q good a");
        let script =
            always(&format!("{{ run = 'echo good > a && git update-index {flag} a' }}, {{ create = \"x\", text = \"x\" }}"));
        let world = World::folder(&script, &SHORT);
        world.sandbox.write("PLAN.md", &plan);
        world.sandbox.write("a", "bad\n");
        world.sandbox.repo();
        world.run(0);
        assert_eq!(world.git(&["show", "HEAD:a"]), "good", "{flag}");
        assert_eq!(world.sandbox.read("a"), "good\n", "{flag}");
        assert_eq!(world.git(&["ls-files", "-v", "a"]), "H a", "{flag}");
        world.assert_clean();
    }
}

#[test]
fn code_that_a_check_runs_cannot_tick_boxes() {
    let plan = TWO.replace("test -f a", "sh a");
    let script = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"sh .verdone/tick.sh\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ claim = \"done\" }]\n";
    let world = World::folder(script, &SHORT);
    world.sandbox.write(".verdone/tick.sh", r"sed -i 's/\[ ]/[x]/' PLAN.md");
    world.sandbox.write("PLAN.md", &plan);
    world.sandbox.repo();
    world.run(4);
    assert_eq!(world.subjects().len(), 2, "US-001 is committed");
    assert_eq!(world.plan(), plan.replacen("[ ]", "[x]", 1), "and only its box is ticked");
    assert_eq!(world.git(&["show", "HEAD:PLAN.md"]), world.plan().trim_end());
}

#[test]
fn hooks_and_settings_that_an_agent_gives_git_are_not_used() {
    let world = World::folder(&always("{ create = \"a\" }, { run = 'sh .verdone/tamper.sh' }"), &SHORT);
    let tamper = "mkdir -p .git/hooks\nprintf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-commit\nchmod +x .git/hooks/post-commit\n\
                  git config core.hooksPath .git/hooks\n";
    world.sandbox.write(".verdone/tamper.sh", tamper);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.repo();
    world.run(0);
    assert!(!world.sandbox.path("ran").exists());
    assert!(!world.git(&["config", "--list", "--local"]).contains("hookspath"));
    assert!(!world.has(".git/hooks/post-commit"));
}

#[test]
fn a_box_that_a_git_hook_ticks_stays_open() {
    let world =
        World::new(TWO, "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\" }]\n[[turn]]\nsteps = [{ claim = \"done\" }]\n");
    world.hook("pre-commit", r"sed -i 's/\[ ]/[x]/' PLAN.md; git add PLAN.md");
    world.run(4);
    assert_eq!(world.plan(), TWO.replacen("[ ]", "[x]", 1));
    world.assert_clean();
}

#[test]
fn what_the_red_check_wrote_is_not_the_agents_work() {
    let plan = ONE.replace("test -f a", "grep -q two a || { echo two > a; false; }");
    let world = World::folder(&always("{ claim = \"done\" }"), &SHORT);
    world.sandbox.write("PLAN.md", &plan);
    world.sandbox.write("a", "one\n");
    world.sandbox.repo();
    world.run(4);
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(reason(&world.last("verified")).0, "nothing-changed");
    assert_eq!(world.sandbox.read("a"), "one\n");
}

#[test]
fn pipes_in_the_place_of_files_do_not_stop_the_run() {
    let settings = Settings { limits: "attempts = 1\nturns = 2", ..SHORT };
    let script = always("{ run = 'rm -f .verdone/guardrails.md; mkfifo .verdone/guardrails.md; exit 0' }, { create = \"x\" }");
    let world = World::with(ONE, &script, &settings);
    world.run(4);
    assert_eq!(world.all("turn_ended").len(), 2);
}

#[test]
fn a_file_too_large_to_commit_fails_the_attempt_and_the_rest_is_kept() {
    let world = World::with(ONE, &always("{ create = \"a\" }, { run = 'truncate -s 101M big' }"), &SHORT);
    world.sandbox.add_tool("truncate");
    world.run(4);
    assert!(reason(&world.last("verified")).1.contains("too large"));
    assert_eq!(world.git(&["show", &format!("{}:a", world.kept())]), "");
    world.assert_clean();
}

#[test]
fn a_run_that_an_agent_made_up_is_no_run() {
    let forge =
        "{ run = 'mkdir -p .verdone/runs/99991231-000000-0000 && echo {} > .verdone/runs/99991231-000000-0000/journal.jsonl' }";
    let world = World::with(ONE, &always(&format!("{forge}, {{ create = \"a\" }}")), &SHORT);
    world.run(0);
    assert!(!world.sandbox.path(".verdone/runs/99991231-000000-0000").exists());
    assert_eq!(world.all("run_started").len(), 1);
    world.assert_clean();
}
