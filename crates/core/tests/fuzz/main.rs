//! Fuzzing: unusual inputs for everything that reads what agents, tools and other programs wrote.
//!
//! Each target starts from real inputs, changes them at random and keeps those that showed something new. It runs in a child process, so
//! that a stack overflow or a crash of the C parser is found, too. A failing input is kept, minimised and shown. Copy the minimised input
//! to `tests/fixtures/fuzz/`; inputs there are always tried first.
//!
//! `VERDONE_FUZZ_SECONDS` (default: 5 per target) and `VERDONE_FUZZ_SEED` (default: fixed) allow longer and different runs.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the harness keeps inputs in files and starts a process"
)]
#![expect(clippy::unwrap_used, reason = "a harness that cannot set itself up has to fail")]
#![expect(clippy::print_stderr, reason = "a worker tells its parent what went wrong")]

mod mutate;
#[path = "../policy/project.rs"]
mod project;
mod shrink;
#[path = "../policy/table.rs"]
mod table;
mod target;
mod worker;

#[test]
fn any_command_line_is_read_and_judged() {
    worker::fuzz(&target::SHELL, "any_command_line_is_read_and_judged");
}

#[test]
fn any_hook_input_gets_a_valid_answer_or_an_error() {
    worker::fuzz(&target::HOOK, "any_hook_input_gets_a_valid_answer_or_an_error");
}

#[test]
fn any_output_is_read_for_tests() {
    worker::fuzz(&target::TEST_OUTCOME, "any_output_is_read_for_tests");
}

#[test]
fn any_settings_file_is_edited_and_given_back_or_refused() {
    worker::fuzz(&target::SETTINGS, "any_settings_file_is_edited_and_given_back_or_refused");
}

#[test]
fn a_failure_is_found_made_small_and_shown() {
    let found = worker::find(&target::TRAP, "a_failure_is_found_made_small_and_shown").expect("the trap is found");
    assert_eq!(found.small, b"trap", "{found:?}");
    assert!(found.said.contains("the trap was sprung"), "{found:?}");
}
