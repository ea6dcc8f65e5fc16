//! A webhook gets its JSON, whatever the server does, and the run does not wait for it.

use verdone_testkit::{Output, Signal};

use crate::notify::server::{Answer, Server};
use crate::notify::world::{reviewed, wait_until};
use crate::run_loop::world::{HONEST, ONE, PATIENCE, Settings, TWO, VERDONE, World, always};

/// Part of every address.
const SECRET: &str = "xyzzy-plugh-0451";

fn webhook(server: &Server, more: &str) -> String {
    let port = server.port;
    format!("[notify]\n{more}\n[notify.webhook]\nurl = \"http://me:{SECRET}@127.0.0.1:{port}/hooks/{SECRET}?token={SECRET}\"\n")
}

fn project(plan: &str, script: &str, tables: &str) -> World {
    let world = World::with(plan, script, &Settings { tables, ..Settings::default() });
    world.sandbox.add_tool("curl");
    world
}

#[track_caller]
fn assert_no_secret(world: &World, output: &Output) {
    assert!(!output.transcript().contains(SECRET), "{}", output.transcript());
    for (path, bytes) in world.everything_kept() {
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{}", path.display());
    }
}

#[test]
fn the_end_of_a_run_is_posted_as_json_and_the_address_stays_secret() {
    let server = Server::start(&[Answer::Status(200)]);
    let world = project(TWO, HONEST, &webhook(&server, ""));
    let output = world.run(0);
    let received = server.received();
    assert_eq!(received.len(), 1, "{received:?}");
    let request = &received[0];
    assert_eq!(request.first_line, format!("POST /hooks/{SECRET}?token={SECRET} HTTP/1.1"));
    for header in ["Content-Type: application/json", "Authorization: Basic"] {
        assert!(request.headers.iter().any(|line| line.starts_with(header)), "{:?}", request.headers);
    }
    let expected = serde_json::json!({
        "kind": "finish",
        "title": "Verdone: finished",
        "text": "Verdone, work: the run is complete; 2 stories done",
        "project": "work",
        "run": world.last("run_started")["run"],
        "plan": "PLAN.md",
        "finish_type": "complete",
        "exit_code": 0,
    });
    assert_eq!(request.body, expected);
    assert!(!output.stderr.contains("notification"), "{}", output.stderr);
    assert_no_secret(&world, &output);
    let shown = world.verdone(&["config", "show"]);
    assert!(shown.stdout.contains("127.0.0.1 (the rest is hidden)") && !shown.stdout.contains(SECRET), "{}", shown.stdout);
    assert!(!world.verdone(&["config", "show", "--json"]).stdout.contains(SECRET));
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_review_and_the_blocked_end_are_two_notifications() {
    let server = Server::start(&[Answer::Status(204)]);
    let world = reviewed("Write a", &webhook(&server, ""));
    world.sandbox.add_tool("curl");
    world.run(4);
    let mut told: Vec<_> = server.received().iter().map(|one| (one.body["kind"].clone(), one.body["text"].clone())).collect();
    told.sort_by_key(|(kind, _)| kind.to_string());
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0].0, "blocked");
    let text = told[0].1.as_str().unwrap();
    assert!(text.contains("the run ended (blocked): ") && text.ends_with("; 1 story done, 1 needs a review"), "{text}");
    assert_eq!(told[1].0, "needs-review");
    let text = told[1].1.as_str().unwrap();
    assert!(text.starts_with("Verdone, work: US-001 (Write a) needs a review: "), "{text}");
}

#[test]
fn only_what_the_settings_ask_for_is_sent() {
    let server = Server::start(&[Answer::Status(200)]);
    let world = reviewed("Write a", &webhook(&server, "on = [\"needs-review\"]"));
    world.sandbox.add_tool("curl");
    world.run(4);
    let kinds: Vec<_> = server.received().iter().map(|one| one.body["kind"].clone()).collect();
    assert_eq!(kinds, ["needs-review"]);
}

#[test]
fn a_server_that_is_not_ready_is_asked_again_and_a_refusal_is_final() {
    let server = Server::start(&[Answer::Status(503), Answer::Status(429), Answer::Status(200)]);
    let world = project(ONE, HONEST, &webhook(&server, ""));
    let output = world.run(0);
    assert_eq!(server.received().len(), 3);
    assert!(!output.stderr.contains("notification"), "{}", output.stderr);

    let server = Server::start(&[Answer::Status(403)]);
    let world = project(ONE, HONEST, &webhook(&server, ""));
    let output = world.run(0);
    assert_eq!(server.received().len(), 1);
    let warning = "note: notification not sent (webhook 127.0.0.1): the server answered with status 403\n";
    assert!(output.stderr.contains(warning), "{}", output.transcript());
    assert_no_secret(&world, &output);

    let server = Server::start(&[Answer::Status(500)]);
    let world = project(ONE, HONEST, &format!("{}retries = 1\n", webhook(&server, "")));
    world.run(0);
    assert_eq!(server.received().len(), 2, "the first try and one retry");
}

#[test]
fn a_server_that_hangs_does_not_delay_the_run_and_a_signal_ends_the_wait_for_it() {
    let server = Server::start(&[Answer::Hang]);
    let world = reviewed("Write a", &webhook(&server, "timeout = \"10m\""));
    world.sandbox.add_tool("curl");
    let run = world.start();
    wait_until("the run waits for the first notification", || server.received().len() == 2);
    assert_eq!(server.received()[1].body["kind"], "blocked", "the run has ended");
    run.signal(Signal::INT);
    run.wait(PATIENCE).assert_code(4);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_server_that_hangs_is_given_up_at_the_deadline_with_one_warning() {
    let server = Server::start(&[Answer::Hang]);
    let world = reviewed("Write a", &webhook(&server, "timeout = \"2s\""));
    world.sandbox.add_tool("curl");
    let output = world.run(4);
    assert_eq!(server.received().len(), 2);
    let everything = format!("{}{}", output.stdout, output.stderr);
    let warning = "notification not sent (webhook 127.0.0.1): timed out after 2s";
    assert_eq!(everything.matches(warning).count(), 1, "once for two notifications: {everything}");
    assert_no_secret(&world, &output);
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_delivery_dies_with_a_killed_run() {
    let server = Server::start(&[Answer::Hang]);
    let world = reviewed("Write a", &webhook(&server, "timeout = \"10m\""));
    world.sandbox.add_tool("curl");
    world.sandbox.write(
        ".verdone/script.toml",
        world.sandbox.read(".verdone/script.toml").replace("{ create = \"b\"", "{ hang = true }, { create = \"b\""),
    );
    let run = world.start();
    wait_until("nothing is sent", || !server.received().is_empty());
    run.signal(Signal::KILL);
    world.sandbox.assert_no_survivors(PATIENCE);
    run.wait(PATIENCE);
}

#[test]
fn the_address_may_come_from_a_variable_and_is_redacted_from_what_an_agent_says() {
    let server = Server::start(&[Answer::Status(200)]);
    let agent = always(&format!("{{ say = \"I found http://127.0.0.1:{}/{SECRET}\" }}, {{ create = \"a\" }}", server.port));
    let mut world = project(ONE, &agent, "[notify.webhook]\nurl_variable = \"MY_HOOK\"\n");
    let doctor = world.verdone(&["doctor"]);
    assert!(doctor.stdout.contains("the variable MY_HOOK (notify.webhook.url_variable) is not set"), "{}", doctor.stdout);
    world.run(0);
    assert!(server.received().is_empty());
    world.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    world.sandbox.set("MY_HOOK", format!("http://127.0.0.1:{}/{SECRET}", server.port));
    let output = world.run_with(&["--fresh"], 0);
    assert_eq!(server.received().len(), 1, "{}", output.transcript());
    assert!(!output.transcript().contains(SECRET), "{}", output.transcript());
}

#[test]
fn without_curl_doctor_and_the_run_say_so_and_the_run_works() {
    let tables = format!("[notify.webhook]\nurl = \"https://example.com/{SECRET}\"\n");
    let world = World::with(ONE, HONEST, &Settings { tables: &tables, ..Settings::default() });
    let doctor = world.verdone(&["doctor"]);
    let message = "curl is not installed (needed by notify.webhook)";
    assert!(doctor.stdout.contains(&format!("warning  notify     {message}")), "{}", doctor.stdout);
    let output = world.run(0);
    assert!(output.stdout.contains(message), "{}", output.transcript());
    let test = world.sandbox.verdone(VERDONE, ["notify", "test"]);
    test.assert_code(1);
    assert!(test.stdout.contains("failed  webhook example.com: curl is not installed"), "{}", test.transcript());
    assert_no_secret(&world, &output);
}
