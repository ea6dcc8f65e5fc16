//! Small types that every other module may use. They know nothing of the rest.

pub mod claim;
pub mod excerpt;
pub mod finish;
pub mod id;
pub mod money;
pub mod plural;
pub mod proof;
pub mod redact;
pub mod seal;
pub mod span;
pub mod verdict;

pub use verdone_testlog::sanitise;
