//! Minimises a failing input: removes parts as long as it still fails.

use std::time::{Duration, Instant};

/// A person can read the rest.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn shrink(mut bytes: Vec<u8>, mut breaks: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let begun = Instant::now();
    let mut part = bytes.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < bytes.len() {
            if begun.elapsed() > PATIENCE {
                return bytes;
            }
            let mut without = bytes.clone();
            without.drain(at..(at + part).min(bytes.len()));
            if breaks(&without) {
                bytes = without;
            } else {
                at += part;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    bytes
}
