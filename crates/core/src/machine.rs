//! The loop as a pure machine.
