//! Failures: kills at every fault point and at random moments, a power cut, full disks, unwritable files, a missing git, broken journals,
//! and a long run in which all of these happen at random.
//!
//! The suite uses fixed seeds and small numbers. `scripts/test faults` and `scripts/test soak` run the same tests with more:
//! `VERDONE_KILLS`, `VERDONE_POWER_CUTS`, `VERDONE_SOAK` and `VERDONE_FAULTS=all` set how many, `VERDONE_SEED` sets the first seed.

#![expect(clippy::print_stdout, reason = "seeds and numbers, for who wants them again")]

mod crash_matrix;
mod git_calls;
mod kills;
mod power_cut;
mod soak;
mod trouble;
mod world;
