//! Agents that lie, and honest agents whose work looks similar. Every case is a real run of the real binary.
//!
//! The cases with real test runners are text files in `cases/`; [`suite`] runs them. Lies told to git and to Verdone itself are in separate
//! tables.

mod case;
mod git;
mod judge;
mod outcome;
mod project;
mod row;
mod story;
mod suite;
