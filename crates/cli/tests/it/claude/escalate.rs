//! Another model for the last attempt at a story.

use serde_json::Value;
use verdone_testkit::model_server::{Script, Turn};

use crate::claude::guarded::{done, events_named};
use crate::claude::world::World;

const PLAN: &str = "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a`\n\n\
                    ### US-002: Write b\n\n- [ ] Write the file b\n  - Verification: `test -f b`\n";

#[test]
fn the_last_attempt_at_a_story_uses_the_stronger_model_and_the_others_the_usual_one() {
    let config = "[agent]\nname = \"claude\"\n[agent.claude]\nmodel = \"claude-sonnet-4-5\"\nescalate = \"claude-opus-5-5\"\n\
                  [limits]\nattempts = 2\nturns = 1\n";
    let first = [Turn::say("It is hard."), Turn::write("a", "one\n"), Turn::say("Done.")];
    let script = Script::new().on("US-001", first).on("US-002", [Turn::write("b", "two\n"), Turn::say("Done.")]);
    let Some(world) = World::with(&[(".verdone/config.toml", config), ("PLAN.md", PLAN)], script) else { return };
    let output = done(&world);
    let models: Vec<String> = world.model.turns().iter().map(|request| request.model().to_owned()).collect();
    let (usual, strong) = ("claude-sonnet-4-5", "claude-opus-5-5");
    // The story that failed once comes after the untouched one.
    assert_eq!(models, [usual, usual, usual, strong, strong], "{}", world.model.overview());
    assert!(output.stdout.contains("the last attempt at US-001 uses claude-opus-5-5"), "{}", output.transcript());
    let journal = world.journal();
    let fresh: Vec<&Value> = events_named(&journal, "turn_ended").iter().map(|turn| &turn["session"]["fresh"]).collect();
    assert_eq!(fresh, ["there is no session yet", "the last attempt was not committed", "another model continues"]);
}
