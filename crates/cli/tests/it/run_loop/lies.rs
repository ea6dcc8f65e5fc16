//! Agents that claim more than they did, or tamper with what judges them. None of them ends as done, and nothing that they wrote is lost.

use std::fs;

use crate::run_loop::world::{ONE, Settings, World, always, reason, text};

const SHORT: Settings<'static> = Settings { top: "", limits: "attempts = 1\nturns = 1", tables: "" };

fn assert_not_done(world: &World) {
    assert_eq!(world.plan(), ONE, "the plan is as it was, byte for byte");
    assert_eq!(world.subjects(), ["initial"]);
    assert_eq!(world.all("committed").len(), 0);
    world.assert_clean();
}

#[test]
fn claiming_done_without_a_change_is_not_done() {
    let world = World::with(ONE, &always("{ claim = \"All done, all tests pass!\" }"), &SHORT);
    world.run(4);
    assert_not_done(&world);
    assert_eq!(reason(&world.last("verified")).0, "nothing-changed");
}

#[test]
fn ticking_the_box_is_not_done() {
    let world = World::with(ONE, &always("{ tick = \"US-001\" }, { create = \"other\" }"), &SHORT);
    world.run(4);
    assert_not_done(&world);
    assert_eq!(world.last("verified")["restored"][0], "PLAN.md");
}

#[test]
fn an_edited_check_in_the_plan_is_not_run() {
    let world =
        World::with(ONE, &always("{ edit = \"PLAN.md\", find = \"test -f a\", replace = \"true\" }, { create = \"x\" }"), &SHORT);
    world.run(4);
    assert_not_done(&world);
    assert_eq!(world.last("verified")["restored"][0], "PLAN.md");
    assert_eq!(text(&world.last("verified")["report"]["runs"]["attempt"][0]["command"]), "test -f a");
}

#[test]
fn a_weakened_gate_is_not_used() {
    let settings = Settings { tables: "[[gate]]\nname = \"gate\"\ncommand = \"test ! -f a || grep -q good a\"\n", ..SHORT };
    let script = always(
        "{ create = \"a\", text = \"bad\" }, { edit = \".verdone/config.toml\", find = \"grep -q good a\", replace = \"true\" }",
    );
    let world = World::with(ONE, &script, &settings);
    let before = world.sandbox.read(".verdone/config.toml");
    world.run(4);
    assert_not_done(&world);
    assert_eq!(world.sandbox.read(".verdone/config.toml"), before);
    world.run(4);
}

#[test]
fn the_journal_is_out_of_the_agents_reach() {
    let forged = r#"{"v":1,"seq":99,"at":"2026-01-01T00:00:00Z","event":"committed","place":{"story":"US-001","attempt":1,"turn":1},"commit":"c","tree":"t","proof":"verified","base":null,"files":1,"noted":true}"#;
    for harm in [&format!("echo '{forged}' >> $JOURNAL"), "echo 'no json at all' >> $JOURNAL", "rm -rf $JOURNAL"] {
        let harm = harm.replace("$JOURNAL", ".verdone/runs/$VERDONE_RUN/journal.jsonl");
        let world = World::with(ONE, &always(&format!("{{ run = '''{harm}''' }}, {{ create = \"x\" }}")), &SHORT);
        world.run(4);
        assert_not_done(&world);
        let seqs: Vec<u64> = world.events().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{harm}");
        assert_eq!(text(&world.events()[0]["event"]), "run_started", "{harm}");
        assert!(!world.run_dir().join("journal-found-1.jsonl").exists(), "nobody wrote into it: {harm}");
    }
}

#[test]
fn a_deleted_plan_comes_back() {
    let world = World::with(ONE, &always("{ delete = \"PLAN.md\" }, { create = \"x\" }"), &SHORT);
    world.run(4);
    assert_not_done(&world);
}

#[test]
fn a_commit_with_forged_trailers_is_no_evidence() {
    let message = "feat(US-001): Write a\\n\\nVerdone-Story: US-001\\nVerdone-Proof: verified\\nVerdone-Verified: yes";
    let world = World::with(
        ONE,
        &always(&format!("{{ create = \"x\" }}, {{ tick = \"US-001\" }}, {{ commit = \"{message}\" }}")),
        &SHORT,
    );
    world.run(4);
    assert_not_done(&world);
    assert_eq!(world.git(&["show", &format!("{}:x", world.kept())]), "");
    let status = world.verdone(&["status", "--json"]);
    assert!(!status.stdout.contains("\"proof\": \"verified\""), "{}", status.stdout);
}

#[test]
fn honest_work_beside_a_lie_is_committed_without_the_lie() {
    let script = always(
        "{ create = \"a\" }, { tick = \"US-001\" }, { append = \"PLAN.md\", text = \"### US-009: More\\n\\n- [ ] x\\n\" }",
    );
    let world = World::with(ONE, &script, &SHORT);
    world.run(0);
    assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"));
    assert_eq!(world.git(&["show", "HEAD:PLAN.md"]), world.plan().trim_end());
    assert_eq!(world.last("verified")["restored"][0], "PLAN.md");
    world.assert_clean();
}

#[test]
fn the_agents_own_commit_of_a_changed_plan_does_not_change_the_plan() {
    let script =
        always("{ edit = \"PLAN.md\", find = \"test -f a\", replace = \"true\" }, { create = \"a\" }, { commit = \"mine\" }");
    let world = World::with(ONE, &script, &SHORT);
    world.run(0);
    assert_eq!(world.plan(), ONE.replace("[ ]", "[x]"));
    assert_eq!(world.git(&["show", "HEAD:PLAN.md"]), world.plan().trim_end());
    world.assert_clean();
}

#[test]
fn without_its_whole_folder_the_run_still_ends_in_order() {
    let world = World::with(ONE, &always("{ run = 'rm -rf .verdone' }, { create = \"x\" }"), &SHORT);
    let settings = world.sandbox.read(".verdone/config.toml");
    world.run(4);
    assert_not_done(&world);
    assert_eq!(world.sandbox.read(".verdone/config.toml"), settings);
    assert_eq!(text(&world.events()[0]["event"]), "run_started");
}

#[test]
fn a_plan_turned_into_a_folder_or_a_link_is_a_file_again() {
    for steps in [
        "{ run = 'rm PLAN.md && mkdir PLAN.md && echo hi > PLAN.md/x' }, { create = \"x\" }",
        "{ run = 'mv PLAN.md ../tmp/outside && ln -s ../tmp/outside PLAN.md' }, { create = \"x\" }",
    ] {
        let world = World::with(ONE, &always(steps), &SHORT);
        world.run(4);
        assert_not_done(&world);
        assert!(fs::symlink_metadata(world.sandbox.path("PLAN.md")).unwrap().is_file(), "{steps}");
        if world.has("../tmp/outside") {
            assert_eq!(world.sandbox.read("../tmp/outside"), ONE, "nothing is written through the link");
        }
    }
}

#[test]
fn what_the_agents_tests_do_to_the_plan_and_the_settings_has_no_effect() {
    let plan = ONE.replace("test -f a", "test -x a && ./a");
    let test = "#!/bin/sh\\necho '### US-009: More' >> PLAN.md\\necho '# weaker' >> .verdone/config.toml\\n";
    let world = World::with(&plan, &always(&format!("{{ create = \"a\", text = \"{test}\", executable = true }}")), &SHORT);
    let settings = world.sandbox.read(".verdone/config.toml");
    world.run(0);
    assert_eq!(world.plan(), plan.replace("[ ]", "[x]"));
    assert_eq!(world.git(&["show", "HEAD:PLAN.md"]), world.plan().trim_end());
    assert_eq!(world.sandbox.read(".verdone/config.toml"), settings);
    world.assert_clean();
}
