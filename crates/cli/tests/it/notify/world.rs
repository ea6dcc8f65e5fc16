//! Projects with notifications.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run_loop::world::{PATIENCE, Settings, TWO, World};

/// US-001 passes only because it changes the script that checks it; US-002 is honest.
const WEAK: &str = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"bad\\n\" }, { create = \"own.sh\", text = \"test -f a\\n\" }]\n\
                    [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }]\n";

/// A run in which one story needs a review and another one is done, so that it ends as blocked. `title` is the first story's.
pub(super) fn reviewed(title: &str, tables: &str) -> World {
    let world = World::folder(WEAK, &Settings { tables, ..Settings::default() });
    let config = world.sandbox.read(".verdone/config.toml");
    world.sandbox.write(".verdone/config.toml", config.replace("land = \"auto\"", "land = \"off\"\non_review = \"continue\""));
    world
        .sandbox
        .write("PLAN.md", TWO.replace("`test -f a`", "`sh own.sh`").replace("US-001: Write a", &format!("US-001: {title}")));
    world.sandbox.write("own.sh", "grep -q good a\n");
    world.sandbox.repo();
    world
}

/// Appends one line for each call, in one write: its arguments, what it got in variables, and the JSON on standard input.
pub(super) const RECORD: &str = "#!/bin/sh\nbody=$(cat)\nprintf '%s|%s|%s|%s|%s|%s|%s\\n' \"$#\" \"$1\" \"$VERDONE_NOTIFY_KIND\" \"$VERDONE_NOTIFY_STORY\" \
                                 \"$VERDONE_NOTIFY_EXIT_CODE\" \"$PWD\" \"$body\" >>\"$HOME/heard\"\n";

/// What the script above got in one call.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) arguments: String,
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) story: String,
    pub(super) exit_code: String,
    pub(super) folder: String,
    pub(super) json: Value,
}

pub(super) fn heard(home: &Path) -> Vec<Heard> {
    let text = std::fs::read_to_string(home.join("heard")).unwrap_or_default();
    let read = |line: &str| {
        let mut parts = line.splitn(7, '|').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        let (arguments, text, kind, story, exit_code, folder) = (next(), next(), next(), next(), next(), next());
        Heard { arguments, text, kind, story, exit_code, folder, json: serde_json::from_str(&next()).unwrap() }
    };
    text.lines().map(read).collect()
}

#[track_caller]
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
