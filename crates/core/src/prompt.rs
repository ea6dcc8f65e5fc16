//! The prompt of a turn, from a template.
