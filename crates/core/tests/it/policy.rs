//! Policy rules on command lines.

mod commands;
pub(crate) mod place;
mod properties;
pub(crate) mod table;
