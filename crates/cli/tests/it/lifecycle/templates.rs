//! The scripts that `init` writes.

use crate::lifecycle::world::{SCRIPTS, Setting, VERDONE, World};

/// A repository after `init`, with the test's own config restored.
fn initialised() -> World {
    let world = World::new(&Setting::default(), &[]);
    let config = world.sandbox.read(".verdone/config.toml");
    world.sandbox.verdone(VERDONE, ["init", "--force", "--scripts"]).assert_code(0);
    world.sandbox.write(".verdone/config.toml", config);
    world
}

#[test]
fn they_run_and_change_nothing() {
    let world = initialised();
    let output = world.run(0);
    for script in SCRIPTS {
        assert_eq!(world.script_events(script)[0]["meaning"], "go_on", "{script}");
    }
    assert!(!output.stdout.contains("started"), "scripts that pass in silence are not mentioned: {}", output.stdout);
    assert_eq!(world.commits(), 1);
    assert_eq!(world.sandbox.git(["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na");
}

#[test]
fn the_slack_script_sends_valid_json_and_is_silent_without_a_webhook() {
    let message = "say \"hi\" \\ to\nall:\t5 % of $HOME `id` é ☃ \u{1b}[31m'";
    for shell in ["sh", "bash"] {
        for variable in ["VERDONE_SLACK_WEBHOOK", "FRESHER_SLACK_WEBHOOK"] {
            let mut world = initialised();
            let tool = ".verdone/hooks/custom/notify-slack";
            let silent = world.sandbox.run(shell, [tool, message]);
            assert_eq!((silent.code, silent.stdout.as_str(), silent.stderr.as_str()), (0, "", ""));

            world.sandbox.set(variable, "http://localhost/hook");
            let without_curl = world.sandbox.run(shell, [tool, message]);
            assert_eq!(without_curl.code, 0);
            assert!(without_curl.stderr.contains("curl is not installed"), "{}", without_curl.stderr);

            world
                .sandbox
                .add_script("curl", "#!/bin/sh\nfor word; do printf '%s\\n--end--\\n' \"$word\"; done > ../tmp/sent\nexit 7\n");
            assert_eq!(world.sandbox.run(shell, [tool, message]).code, 0, "a lost message is no failure");
            let sent = world.noted("sent");
            let words: Vec<_> = sent.split("\n--end--\n").collect();
            assert!(words.contains(&"http://localhost/hook"));
            let body = words.iter().find(|word| word.starts_with('{')).unwrap();
            let body: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
            assert_eq!(body["text"], message.replace('\u{1b}', " "), "{shell}");
        }
    }
}
