//! Text that people write and programs read: positions in it, JSON with positions, patterns of paths, spelling, sentence case.

mod hex;
pub mod json;
pub mod pattern;
pub mod position;
pub mod sentence;
pub mod shell_word;
pub mod suggest;

pub use hex::hex;
