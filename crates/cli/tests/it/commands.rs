//! Every command with the real binary in a hermetic sandbox. The transcripts under `tests/transcripts/` are complete outputs of successes
//! and failures, meant to be read; `VERDONE_BLESS=1` rewrites them.

mod agents;
mod audit;
mod bad_input;
mod ci;
mod closed_output;
mod doctor;
mod done;
mod follow;
mod help;
mod hostile;
mod install;
mod land;
mod look_back;
mod narrow;
mod network;
mod plan;
mod plugin;
mod readme;
mod run;
mod schema;
mod seal;
mod sessions;
mod stage;
mod stream;
mod terminal;
mod verify;
mod verify_range;
mod verify_trouble;
mod workspace;
