//! Trouble: killed at every point and at random instants, disks that are full, files that cannot be written, git that is gone,
//! journals that are broken, and a long run in which all of it happens by chance.

mod crash_matrix;
mod soak;
mod trouble;
mod world;
