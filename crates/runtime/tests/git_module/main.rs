//! The git module against real git in temporary repositories.

mod candidate;
mod chain;
mod checkpoint;
mod commit;
mod history;
mod opening;
mod repo;
mod restore;
