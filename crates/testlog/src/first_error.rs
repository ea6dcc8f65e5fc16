//! The place in an output where the trouble begins. The end of a long output often says only that something failed.

use super::{TestFailure, read};
use crate::sanitise::sanitise_line;

/// The lines of the excerpt, the first error included.
const LINES: usize = 5;
const LONGEST: usize = 1024;
/// How lines about a failed test begin in TAP, Go, pytest and Jest, for output that no reader recognises as a whole. In lower case.
const FAILED_TEST: [&str; 4] = ["not ok ", "--- fail: ", "failed ", "● "];
/// A shorter message occurs anywhere.
const SHORTEST_MESSAGE: usize = 6;

/// The first line that reports an error or a failure, with the lines after it; `None` if no line is recognised.
///
/// The framework's reader knows which test failed first and why. Without a reader, or if it found nothing, the form of compilers and
/// interpreters decides: `error: …`, `file:1:2: error: …`, a traceback.
pub fn first_error<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], exit_code: Option<i32>, output: &str) -> Option<String> {
    let at = first_failure(commands, exit_code, output).or_else(|| line_with(output, is_error))?;
    let lines: Vec<&str> = output.lines().skip(at).filter(|line| !line.trim().is_empty()).take(LINES).collect();
    let text = lines.join("\n");
    Some(text[..text.floor_char_boundary(LONGEST)].to_owned())
}

fn first_failure<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], exit_code: Option<i32>, output: &str) -> Option<usize> {
    let outcome = read(commands, exit_code, output)?;
    let has = |words: &str| line_with(output, |line| line.contains(words));
    let of_failure = outcome.failures.first().and_then(|failure| {
        let message = message_of(&failure.message).and_then(has);
        message.or_else(|| has(&place_of(failure)?)).or_else(|| line_with(output, |line| names(line, &failure.name)))
    });
    of_failure.or_else(|| outcome.reason.as_deref().and_then(message_of).and_then(has))
}

/// A message as it stands in the output: readers cut long ones.
fn message_of(message: &str) -> Option<&str> {
    Some(message.trim_end_matches('…')).filter(|words| words.len() >= SHORTEST_MESSAGE)
}

fn place_of(failure: &TestFailure) -> Option<String> {
    Some(format!("{}:{}", failure.file.as_ref()?, failure.line?))
}

/// Whether the line has this name, and not only a longer one that begins with it.
fn names(line: &str, name: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(name).any(|(at, _)| !goes_on(&line[at + name.len()..]))
}

fn line_with(output: &str, is_it: impl Fn(&str) -> bool) -> Option<usize> {
    output.lines().position(|line| is_it(&sanitise_line(line)))
}

fn is_error(line: &str) -> bool {
    let line = line.trim_start().to_ascii_lowercase();
    let is_word = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    let begins = line.strip_prefix("error").or_else(|| line.strip_prefix("fatal")).is_some_and(is_word);
    let located = line.split_once(": error").or_else(|| line.split_once(": fatal error")).is_some_and(|(_, rest)| is_word(rest));
    let is_failed_test = FAILED_TEST.iter().any(|start| line.starts_with(start));
    begins || located || is_failed_test || line.starts_with("traceback (most recent call last)") || line.contains(" panicked at ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simple_commands;

    fn first(command: &str, output: &str) -> Option<String> {
        first_error(&simple_commands(command), Some(1), output)
    }

    fn first_line(command: &str, output: &str) -> Option<String> {
        first(command, output).map(|text| text.lines().next().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_reader_says_which_failure_came_first() {
        let output = "running 3 tests\ntest tests::adds_more ... ok\ntest tests::adds ... FAILED\ntest tests::ends ... FAILED\n\nfailures:\n\n\
                      ---- tests::adds stdout ----\n\nthread 'tests::adds' panicked at src/lib.rs:9:9:\nassertion `left == right` failed: the sum is wrong\n  left: 4\n right: 5\n\n\
                      ---- tests::ends stdout ----\n\nthread 'tests::ends' panicked at src/lib.rs:15:9:\nnot at its end\n\n\
                      failures:\n    tests::adds\n    tests::ends\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let found = first("cargo test", output).unwrap();
        assert!(found.contains("the sum is wrong\n  left: 4\n right: 5"), "{found}");
        assert!(!found.contains("adds_more"), "{found}");
    }

    #[test]
    fn compilers_and_interpreters_are_known_by_their_form() {
        for (output, expected) in [
            ("cc -c a.c\na.c:3:5: error: expected ';'\nmore\nmake: *** [a.o] Error 1\n", Some("a.c:3:5: error: expected ';'")),
            (
                "src/a.ts(1,2): error TS2304: Cannot find name 'x'.\nFound 1 error.\n",
                Some("src/a.ts(1,2): error TS2304: Cannot find name 'x'."),
            ),
            (
                "ok\n\u{1b}[31merror\u{1b}[0m[E0308]: mismatched types\n",
                Some("\u{1b}[31merror\u{1b}[0m[E0308]: mismatched types"),
            ),
            (
                "a\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n",
                Some("Traceback (most recent call last):"),
            ),
            ("ok 1 - a\nnot ok 2 - b\nok 3 - c\n", Some("not ok 2 - b")),
            ("=== RUN TestA\n--- FAIL: TestA (0.00s)\n    a_test.go:5: no\nFAIL\n", Some("    a_test.go:5: no")),
            ("0 errors\nerror-free.txt\nerrors.log written\nno error: fine\n", None),
            ("", None),
        ] {
            assert_eq!(first_line("make", output).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn an_excerpt_is_short() {
        let found = first("make", &format!("error: {}\n{}", "é".repeat(2000), "x\n".repeat(50))).unwrap();
        assert!(found.len() <= LONGEST, "{}", found.len());
        assert_eq!(first("make", &format!("error: a\n\n{}", "x\n".repeat(50))).unwrap(), "error: a\nx\nx\nx\nx");
    }
}
