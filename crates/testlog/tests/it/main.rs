//! The crate with the output of real test frameworks.

mod outputs;
