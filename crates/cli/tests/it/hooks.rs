//! The hook as a client starts it: the real binary, real inputs, every answer checked as strictly as the client checks it. If the client
//! cannot use an answer, it silently allows the call, so such an answer fails the test.

mod after_tool;
mod answers;
mod conditions;
mod done;
mod failures;
mod git_state;
mod in_run;
mod memory;
mod orchestrated;
mod policy;
mod rules;
mod scope;
mod session_logs;
mod state_files;
mod stop_commit;
mod stop_ended;
pub(crate) mod stop_gate;
mod stop_gate_frozen;
mod stop_journal;
mod stop_learning;
mod stop_others;
mod stop_rules;
mod tests_seen;
mod turn_limit;
mod valid;
pub(crate) mod world;
