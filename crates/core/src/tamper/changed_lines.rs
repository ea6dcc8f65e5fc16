//! The lines that a change adds and takes away, as a bag: moved lines are neither.

use std::collections::HashMap;

pub(super) struct ChangedLines<'a> {
    /// With their number, from 1.
    pub(super) added: Vec<(u32, &'a str)>,
    pub(super) removed: Vec<&'a str>,
}

pub(super) fn changed_lines<'a>(old: &'a str, new: &'a str) -> ChangedLines<'a> {
    let mut bag: HashMap<&str, i64> = HashMap::new();
    for line in old.lines() {
        *bag.entry(line.trim()).or_default() += 1;
    }
    let mut added = Vec::new();
    for (number, line) in new.lines().enumerate() {
        let left = bag.entry(line.trim()).or_default();
        *left -= 1;
        if *left < 0 && !line.trim().is_empty() {
            added.push((number as u32 + 1, line));
        }
    }
    let mut removed = Vec::new();
    for line in old.lines() {
        if let Some(left) = bag.get_mut(line.trim()).filter(|left| **left > 0) {
            *left -= 1;
            if !line.trim().is_empty() {
                removed.push(line);
            }
        }
    }
    ChangedLines { added, removed }
}
