//! Decides which files judge the work, and plans the trees to check.
//!
//! *Protected* files judge the work: tests, test data, and the configuration of tests, linters, builds and CI. Everything else is
//! *work*. Manifests and Rust files can be both: a manifest is split by key, a Rust file into its test items and the rest. From the
//! changes of an attempt, [`plan_trees`] plans the pristine tree (base with only the attempt's work) and the proof tree (base with only
//! the attempt's protected files).
//!
//! Nothing here guesses intent. A changed test is neither good nor bad: running the checks without it decides.

mod check_scripts;
mod checked_files;
mod classify;
mod ecosystem;
pub mod inline_tests;
mod manifest;
mod referenced_files;
mod replaced_names;
mod settings;
mod trees;

pub use check_scripts::{check_scripts, deciding_programs};
pub use checked_files::files_read_by;
pub use classify::{FileClass, Group, Protection, ProtectionReason, Release, Role};
pub use ecosystem::{AUTORUN, Defaults, Ecosystem};
pub use manifest::{KeyPath, Manifest, ManifestError, Merged};
pub use referenced_files::{may_be_named, named_in, scripts_in};
pub use settings::ProtectSettings;
pub use trees::{Change, ChangeKind, Entry, ProtectedChange, TreePlan, Version, plan_trees};
