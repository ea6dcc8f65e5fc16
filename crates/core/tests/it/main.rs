//! The core from outside: real inputs as fixtures, tables, properties, and changed inputs.

mod check_results;
mod claude_streams;
mod fuzz;
mod hook_inputs;
mod hook_settings;
mod policy;
mod seed;
