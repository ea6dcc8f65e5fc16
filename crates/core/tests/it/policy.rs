//! Policy rules on command lines.

mod commands;
pub(crate) mod project;
mod properties;
pub(crate) mod table;
