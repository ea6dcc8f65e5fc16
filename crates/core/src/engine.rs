//! Decides what runs and session loops do next. Facts come in as data, effects go out as data.

pub mod prompt;
pub mod run;
pub mod session;
