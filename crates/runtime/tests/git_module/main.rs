//! The git module against real git in temporary repositories.

#![expect(clippy::unwrap_used, reason = "fixtures outside test functions")]

mod candidate;
mod chain;
mod checkpoint;
mod commit;
mod cost;
mod earlier;
mod history;
mod model;
mod opening;
mod put_back;
mod refs;
mod repo;
mod restore;
mod steps;
