//! The core from outside: real inputs as fixtures, tables, properties, and changed inputs.

mod check_results;
mod claude_streams;
mod fuzz;
mod hook_inputs;
mod hook_settings;
mod plan_formats;
mod plan_properties;
mod plan_select;
mod policy;
mod seed;
