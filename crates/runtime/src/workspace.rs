//! Private workspaces: the file trees in which agents work and checks run, and the views in which their processes see them.
//!
//! A run never works in the user's checkout. Whatever an agent or a check writes goes into a folder below the user's state folder,
//! seen at the project's own path, and is dropped when the workspace is.

pub mod launcher;
mod plan;

pub use plan::{Inside, Mount, Network, ViewPlan};
