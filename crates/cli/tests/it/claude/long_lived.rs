//! The client as a long-lived process, as in a run.

use serde_json::json;
use verdone_testkit::model_server::{Fault, Kind, Script, Stall, Turn};

use crate::claude::world::{PATIENCE, World};

#[test]
fn one_process_takes_several_turns_and_keeps_what_was_said() {
    let script = Script::new()
        .on("First", [Turn::write("a.txt", "one\n"), Turn::say("First is done.")])
        .on("Second", [Turn::say("Second is done.")])
        .on("Third", [Turn::say("Third is done.")]);
    let Some(world) = World::new(script) else { return };
    let mut session = world.session();
    assert_eq!(session.ask("First")["result"], "First is done.");
    assert_eq!(session.ask("Second")["result"], "Second is done.");
    session.ask("/compact");
    assert_eq!(session.ask("Third")["result"], "Third is done.");
    let turns = world.model.turns();
    assert_eq!(turns.len(), 4, "{}", world.model.overview());
    assert_eq!(turns[2].prompts(), ["First", "Second"]);
    assert!(turns.iter().all(|turn| turn.session() == turns[0].session() && turn.session().is_some()));
    assert_eq!(world.model.requests_of(Kind::Compaction).len(), 1);
    assert!(!turns[3].prompts().contains(&"First".to_owned()), "the conversation was replaced by its summary");
    session.close().assert_code(0);
    world.assert_scripted();
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn an_answer_that_stalls_can_be_interrupted_and_the_process_goes_on() {
    let stalling = Turn::say("Never whole").fault(Fault::Stall(Stall::UntilReleased));
    let script = Script::new().on("Slow", [stalling]).on("Next", [Turn::say("Next is done.")]);
    let Some(world) = World::new(script) else { return };
    let mut session = world.session();
    session.send(&json!({ "type": "user", "message": { "role": "user", "content": "Slow" } }));
    world.model.wait_for_stall(PATIENCE);
    session.send(&json!({ "type": "control_request", "request_id": "c1", "request": { "subtype": "interrupt" } }));
    session.wait_for("the end of the turn", |events| events.iter().any(|event| event["type"] == "result"));
    assert_eq!(session.messages_of("result")[0]["terminal_reason"], "aborted_streaming");
    assert_eq!(session.ask("Next")["result"], "Next is done.");
    session.close().assert_code(0);
}
