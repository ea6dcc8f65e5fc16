//! Trouble: killed at every point and at random instants, disks that are full, files that cannot be written, git that is gone,
//! journals that are broken, and a long run in which all of it happens by chance.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]
#![expect(clippy::print_stdout, reason = "seeds and numbers, for who wants them again")]

mod crash_matrix;
mod kept_changes;
mod soak;
mod trouble;
mod world;
