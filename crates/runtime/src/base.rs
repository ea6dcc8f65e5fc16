//! Files, locks and time: small tools that every other module may use.

pub mod active_clock;
pub mod atomic;
pub(crate) mod cache_folder;
pub(crate) mod digest_cache;
pub mod fault;
pub mod finding;
pub(crate) mod glob_walk;
pub(crate) mod open_folder;
pub(crate) mod own_program;
pub(crate) mod plain_file;
pub(crate) mod seal;
pub(crate) mod text;
