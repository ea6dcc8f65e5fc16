//! Every repository state that a run may find or cause, each with its message.

mod commits;
mod formats;
mod ignore_rules;
mod inner;
mod limits;
mod places;
mod refs;

use crate::run_loop::world::{Settings, World};
use verdone_testkit::Output;

const SHORT: Settings<'static> = Settings { top: "", limits: "attempts = 1\nturns = 1", tables: "" };

/// Asserts that the run is refused before anything happens, with exit code 2, this message and this hint.
#[track_caller]
fn assert_refused(output: &Output, message: &str, hint: &str) {
    output.assert_code(2);
    assert!(output.stderr.contains(message) && output.stderr.contains(hint), "{}", output.transcript());
}

/// Adds a second commit, so that there is history to move.
fn add_commit(world: &World, path: &str, text: &str) {
    world.sandbox.write(path, text);
    world.git(&["add", "--", path]);
    world.git(&["commit", "--quiet", "-m", path]);
}
