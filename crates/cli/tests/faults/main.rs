//! Trouble: killed at every point and at random instants, a power cut, disks that are full, files that cannot be written, git that is
//! gone, journals that are broken, and a long run in which all of it happens by chance.
//!
//! The suite has fixed seeds and small numbers. `scripts/test faults` and `scripts/test soak` run the same tests with more:
//! `VERDONE_KILLS`, `VERDONE_POWER_CUTS`, `VERDONE_SOAK` and `VERDONE_FAULTS=all` say how many, `VERDONE_SEED` names the first seed.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]
#![expect(clippy::print_stdout, reason = "seeds and numbers, for who wants them again")]

mod crash_matrix;
mod git_calls;
mod kills;
mod power_cut;
mod soak;
mod trouble;
mod world;
