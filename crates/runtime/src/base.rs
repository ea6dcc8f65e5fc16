//! Files, locks and time: small tools that every other module may use.

pub mod atomic;
pub mod clock;
pub(crate) mod digest_cache;
pub mod fault;
pub(crate) mod glob_walk;
pub(crate) mod plain_file;
pub(crate) mod seal;
pub(crate) mod text;
