//! Small types and text functions that every other module may use. They know nothing of the rest.

pub mod complexity;
pub mod excerpt;
pub mod finish;
pub mod id;
pub(crate) mod json;
pub mod money;
pub mod pattern;
pub mod plural;
pub(crate) mod position;
pub mod proof;
pub mod redact;
pub mod scope;
pub mod seal;
pub mod sentence;
pub mod span;
pub mod suggest;
pub mod verdict;

pub use verdone_testlog::sanitise;
