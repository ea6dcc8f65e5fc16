//! What to show of a failed check's output: the first error, then the end.

use super::{CheckRun, CommandSpec};
use crate::base::excerpt::{keep_end, keep_start};

/// Stands for the lines between the first error and the end.
const CUT: &str = "[...]";

/// The first error in the output of a failed check, with the lines after it; empty if none is recognised.
pub fn first_error(command: &CommandSpec, exit_code: Option<i32>, output: &str) -> String {
    let commands = match command {
        CommandSpec::Shell(line) => verdone_testlog::simple_commands(line),
        CommandSpec::Argv(words) => vec![words.clone()],
    };
    verdone_testlog::first_error(&commands, exit_code, output).unwrap_or_default()
}

/// The first error and the end of an output, in about this many bytes.
pub fn excerpt(first_error: &str, output: &str, bytes: usize) -> String {
    let end = keep_end(output.trim_end(), bytes);
    let begin = keep_start(first_error.trim_end(), bytes / 2);
    let lines: Vec<&str> = end.lines().collect();
    match before(&begin, &lines) {
        Before::Nothing => end,
        Before::Adjacent(missing) => [&missing[..], &lines[..]].concat().join("\n"),
        Before::Apart(missing) => {
            let left = bytes.saturating_sub(begin.len() + CUT.len());
            format!("{}\n{CUT}\n{}", missing.join("\n"), keep_end(output.trim_end(), left))
        }
    }
}

impl CheckRun {
    /// The first error and the end of the output, in about this many bytes.
    pub fn excerpt(&self, bytes: usize) -> String {
        excerpt(&self.first_error, &self.tail, bytes)
    }

    /// The same as lines, with at most this many of the end and without empty lines.
    pub fn excerpt_lines(&self, most: usize) -> Vec<&str> {
        let says_something = |line: &&str| !line.trim().is_empty();
        let mut end: Vec<&str> = self.tail.lines().rev().filter(says_something).take(most).collect();
        end.reverse();
        match before(&self.first_error, &end) {
            Before::Nothing => end,
            Before::Adjacent(missing) => [missing, end].concat(),
            Before::Apart(missing) => [missing, vec![CUT], end].concat(),
        }
    }
}

/// What of the first error is missing in the shown end.
enum Before<'e> {
    Nothing,
    /// These lines, and the end continues them.
    Adjacent(Vec<&'e str>),
    Apart(Vec<&'e str>),
}

fn before<'e>(first_error: &'e str, end: &[&str]) -> Before<'e> {
    let error: Vec<&str> = first_error.lines().collect();
    match error.first() {
        None => return Before::Nothing,
        Some(line) if end.contains(line) => return Before::Nothing,
        Some(_) => {}
    }
    // Where the rest of the error is how the end begins.
    match (1..error.len()).find(|at| end.starts_with(&error[*at..])) {
        Some(at) => Before::Adjacent(error[..at].to_vec()),
        None => Before::Apart(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::failed_with;

    #[test]
    fn the_first_error_comes_before_the_end_and_no_line_twice() {
        for (first_error, tail, expected) in [
            ("", "a\n\nb\nc\n", &["b", "c"][..]),
            ("error: x\nat y", "a\nb\nc\n", &["error: x", "at y", CUT, "b", "c"]),
            ("error: x\nb\nc", "error: x\nb\nc\n", &["error: x", "b", "c"]),
            ("b\nc", "a\nb\nc\n", &["b", "c"]),
            ("error: x", "", &["error: x", CUT]),
        ] {
            assert_eq!(failed_with(first_error, tail).excerpt_lines(2), expected, "{first_error:?} {tail:?}");
        }
    }

    #[test]
    fn an_excerpt_keeps_to_its_room() {
        let long = failed_with("error: x\nat y", &"line\n".repeat(1000));
        let text = long.excerpt(200);
        assert!(text.starts_with("error: x\nat y\n[...]\n[") && text.ends_with("line"), "{text}");
        assert!(text.len() < 240, "{}", text.len());
        assert_eq!(failed_with("error: x", "a\nerror: x\nb\n").excerpt(200), "a\nerror: x\nb");
    }
}
