//! Notifications by a command, `notify-send` and the terminal; `verdone notify test`.

use verdone_testkit::PATIENCE;

use crate::notify::server::{Answer, Server};
use crate::notify::world::{RECORD, heard, reviewed};
use crate::run_loop::world::{HONEST, ONE, Settings, TWO, VERDONE, World};

fn project(plan: &str, tables: &str) -> World {
    World::with(plan, HONEST, &Settings { tables, ..Settings::default() })
}

#[test]
fn a_command_gets_the_text_the_facts_and_json_without_secrets() {
    let mut world = reviewed("Use correct-horse-battery-staple", "[notify]\ncommand = [\"speak\"]\n");
    world.sandbox.set("API_TOKEN", "correct-horse-battery-staple");
    world.sandbox.add_script("speak", RECORD);
    world.run(4);
    let mut heard = heard(&world.sandbox.home());
    heard.sort_by(|one, other| other.kind.cmp(&one.kind));
    assert_eq!(heard.len(), 2, "{heard:?}");
    let review = &heard[0];
    assert_eq!((review.arguments.as_str(), review.kind.as_str(), review.story.as_str()), ("1", "needs-review", "US-001"));
    assert!(review.text.contains("US-001 (Use [redacted:API_TOKEN]) needs a review"), "{}", review.text);
    assert_eq!(review.json["text"], review.text);
    assert_eq!(review.folder, world.sandbox.work().display().to_string());
    assert_eq!((heard[1].kind.as_str(), heard[1].exit_code.as_str()), ("blocked", "4"));
    assert_eq!(heard[1].json["finish_type"], "blocked");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_command_that_fails_is_one_warning_and_changes_nothing_for_the_run() {
    let world = reviewed("Write a", "[notify]\ncommand = \"echo no loudspeaker >&2; exit 3\"\n");
    let output = world.run(4);
    let everything = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(everything.matches("notification not sent (command): exit code 3: no loudspeaker").count(), 1, "{everything}");
    assert_eq!(everything.matches("notification not sent").count(), 1, "{everything}");
}

#[test]
fn a_command_in_a_shell_line_gets_the_text_as_its_argument() {
    let world = project(ONE, "[notify]\ncommand = 'speak \"$1\"'\n");
    world.sandbox.add_script("speak", RECORD);
    world.run(0);
    let heard = heard(&world.sandbox.home());
    assert_eq!(heard.len(), 1);
    assert_eq!((heard[0].arguments.as_str(), heard[0].text.as_str()), ("1", "Verdone, work: the run is complete; 1 story done"));
}

#[test]
fn a_story_that_later_work_broke_is_a_regression() {
    let script = "[[turn]]\nstory = \"US-001\"\nattempt = 1\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                  [[turn]]\nstory = \"US-001\"\nattempt = 2\nsteps = [{ create = \"a\", text = \"again\\n\" }]\n\
                  [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }, { delete = \"a\" }]\n";
    let tables = "[notify]\non = [\"regression\"]\ncommand = [\"speak\"]\n";
    let world = World::with(TWO, script, &Settings { tables, ..Settings::default() });
    world.sandbox.add_script("speak", RECORD);
    world.run(0);
    let heard = heard(&world.sandbox.home());
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].text, "Verdone, work: US-001 (Write a) was done and fails now: test -f a");
}

#[test]
fn notify_send_is_used_where_there_is_a_desktop() {
    let mut world = project(ONE, "[notify]\ndesktop = \"auto\"\n");
    world.sandbox.add_script("notify-send", "#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$HOME/desktop\"\n");
    let read = |world: &World| std::fs::read_to_string(world.sandbox.home().join("desktop")).unwrap_or_default();
    world.verdone(&["notify", "test"]).assert_code(1);
    assert_eq!(read(&world), "", "there is no desktop session");
    world.sandbox.set("WAYLAND_DISPLAY", "wayland-0");
    let output = world.verdone(&["notify", "test"]);
    output.assert_code(0);
    assert_eq!(output.stdout, "sent    notify-send\n");
    assert_eq!(read(&world), "--app-name=Verdone\n--\nVerdone: test\nVerdone, work: this is a test notification\n");
    world.run(0);
    assert!(read(&world).ends_with("Verdone: finished\nVerdone, work: the run is complete; 1 story done\n"), "{}", read(&world));
}

/// `script` records every byte that a terminal gets.
#[test]
fn the_terminal_gets_an_escape_sequence() {
    for (variables, sequence) in [
        (&[("TERM", "xterm-256color")][..], "\u{1b}]9;Verdone, work: the run is complete; 1 story done\u{7}\u{7}"),
        (
            &[("TERM", "foot")][..],
            "\u{1b}]777;notify;Verdone: finished;Verdone, work: the run is complete; 1 story done\u{7}\u{7}",
        ),
        (
            &[("TERM", "screen"), ("TMUX", "/tmp/x,1,0")][..],
            "\u{1b}Ptmux;\u{1b}\u{1b}]9;Verdone, work: the run is complete; 1 story done\u{7}\u{1b}\\\u{7}",
        ),
    ] {
        let mut world = project(ONE, "[notify]\ndesktop = \"terminal\"\n");
        for (name, value) in variables {
            world.sandbox.set(*name, *value);
        }
        world.sandbox.add_tool("script");
        let record = world.sandbox.root().join("typescript");
        let output = world.sandbox.run("script", ["-q", "-e", "-c", &format!("{VERDONE} run"), &record.display().to_string()]);
        output.assert_code(0);
        let shown = String::from_utf8_lossy(&std::fs::read(record).unwrap()).into_owned();
        assert_eq!(shown.matches(sequence).count(), 1, "{variables:?}: {shown:?}");
    }
    let world = project(ONE, "[notify]\ndesktop = \"terminal\"\n");
    let output = world.run(0);
    assert!(!output.stdout.contains('\u{1b}') && !output.stderr.contains('\u{1b}'), "{}", output.transcript());
}

#[test]
fn a_test_tries_every_channel_and_says_which_one_fails() {
    let world = project(ONE, "");
    let none = world.verdone(&["notify", "test"]);
    none.assert_code(2);
    assert!(none.stderr.contains("no notifications are configured"), "{}", none.stderr);

    let server = Server::start(&[Answer::Status(200)]);
    let url = format!("http://127.0.0.1:{}/xyzzy", server.port);
    let world = project(ONE, &format!("[notify]\ncommand = [\"speak\"]\n[notify.webhook]\nurl = \"{url}\"\n"));
    world.sandbox.add_tool("curl");
    world.sandbox.add_script("speak", RECORD);
    let output = world.verdone(&["notify", "test"]);
    output.assert_code(0);
    assert_eq!(output.stdout, "sent    command\nsent    webhook 127.0.0.1\n");
    assert_eq!(server.received()[0].body["kind"], "test");
    assert_eq!(heard(&world.sandbox.home())[0].text, "Verdone, work: this is a test notification");
    let doctor = world.verdone(&["doctor"]);
    assert!(doctor.stdout.contains("good     notify     command (speak), webhook (127.0.0.1)"), "{}", doctor.stdout);

    world.sandbox.add_script("speak", "#!/bin/sh\nexit 1\n");
    let output = world.verdone(&["notify", "test", "--json"]);
    output.assert_code(1);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&json["channels"][0]["channel"], &json["channels"][0]["failure"]), (&"command".into(), &"exit code 1".into()));
    assert_eq!(json["channels"][1]["failure"], serde_json::Value::Null);
}
