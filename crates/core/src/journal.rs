//! The journal of runs and session loops: events, requests from outside, and views folded from events.

pub mod active;
pub mod agent_tools;
pub mod control;
pub mod event;
pub mod left_session;
pub mod notify;
pub mod update;
pub mod view;
