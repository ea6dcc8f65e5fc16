//! Tests the git module with real git in temporary repositories.

#![expect(clippy::unwrap_used, reason = "fixtures outside test functions")]

mod attempt_tree;
mod candidate;
mod checkpoint;
mod commit;
mod commit_hooks;
mod cost;
mod earlier_changes;
mod histories;
mod landing;
mod opening;
mod private_repository;
mod prune;
mod reapply;
mod repo;
mod story_commit;
mod workspace;
mod workspace_files;
