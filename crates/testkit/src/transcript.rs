//! Makes the output of two runs comparable: everything that must differ (ids, hashes, times, durations) becomes a placeholder.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::golden;

/// Compares a normalised transcript with a file. With `VERDONE_BLESS=1`, writes the file instead.
#[track_caller]
pub fn assert_transcript(expected: impl AsRef<Path>, transcript: &str) {
    golden::assert_file(expected, transcript);
}

/// Replaces run ids, object ids, times, durations, process ids and temporary paths; shows escapes and carriage returns.
pub fn normalise(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(rules);
    RULES.iter().fold(text.replace('\u{1b}', "\u{241b}").replace('\r', "\u{240d}"), |text, (pattern, placeholder)| {
        pattern.replace_all(&text, *placeholder).into_owned()
    })
}

/// Order matters: longer patterns first, because their parts look like shorter ones.
fn rules() -> Vec<(Regex, &'static str)> {
    const ONE: &str = r"[0-9]+(?:\.[0-9]+)?\x20?(?:ns|us|µs|ms|s)";
    let compound = format!(r"\b(?:[0-9]+\x20?h\x20?)?(?:[0-9]+\x20?m\x20?)?{ONE}\b");
    [
        (r"\b[0-9]{8}-[0-9]{6}-[0-9a-f]{4,8}\b", "[RUN]"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[UUID]"),
        (
            r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T\x20][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
            "[TIME]",
        ),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b", "[DATE]"),
        (r"\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}\b", "[TIME]"),
        (r#"("[a-z_]*_ms":\x20?)[0-9]+"#, "$1[MS]"),
        (r"\b[0-9]+\x20(MB free)", "[SIZE] $1"),
        // The client's prompt names folders and the date.
        (r"\bcontext [0-9,]+ of\b", "context [TOKENS] of"),
        (r"\b(pid|process)(\x20)[0-9]+\b", "$1$2[PID]"),
        (compound.as_str(), "[DURATION]"),
        // A column is as wide as its widest duration.
        (r"\x20{2,}\[DURATION\]", "  [DURATION]"),
        (r"\[DURATION\]\x20{2,}", "[DURATION]  "),
        // A hash of only digits or only letters is possible, if rare: an exception for them would make a test fail once a month.
        (r"\b[0-9a-f]{7,64}\b", "[SHA]"),
        (r"/tmp/(?:\.tmp|verdone-)[A-Za-z0-9._-]+", "[TMP]"),
    ]
    .into_iter()
    .map(|(pattern, placeholder)| (Regex::new(pattern).expect("the patterns are constants and covered by a test"), placeholder))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_runs_becomes_a_placeholder() {
        let table = [
            ("run 20261115-020338-5f3a began", "run [RUN] began"),
            ("refs/verdone/20261115-020338-5f3a/1", "refs/verdone/[RUN]/1"),
            ("at 2026-11-15T02:03:38.123456Z", "at [TIME]"),
            ("## [2026-11-15 02:03] - US-001", "## [[TIME]] - US-001"),
            ("02:03:38 started", "[TIME] started"),
            ("commit 0123456789 kept", "commit [SHA] kept"),
            ("commit a1b2c3d", "commit [SHA]"),
            ("4b825dc642cb6eb9a060e54bf8d69288fbee4904", "[SHA]"),
            ("took 1.2s, then 12 ms", "took [DURATION], then [DURATION]"),
            ("took 1m 02s", "took [DURATION]"),
            ("context 12,210 of 1,000,000 tokens", "context [TOKENS] of 1,000,000 tokens"),
            ("took 2h 1m 02s", "took [DURATION]"),
            ("story       1.2s   ok", "story  [DURATION]  ok"),
            (r#"{"duration_ms":1234,"n":2}"#, r#"{"duration_ms":[MS],"n":2}"#),
            ("disk 68595 MB free", "disk [SIZE] MB free"),
            ("ended process 4242", "ended process [PID]"),
            ("in /tmp/verdone-demo-x1Y2/project", "in [TMP]/project"),
            ("\u{1b}[1mbold\u{1b}[0m\r", "\u{241b}[1mbold\u{241b}[0m\u{240d}"),
        ];
        for (text, expected) in table {
            assert_eq!(normalise(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_must_not_differ_stays() {
        for text in
            ["US-001: 3 of 12 stories", "idle limit 30m", "verdone 0.1.0", "exit 130", "added 12 files", "decade of faces"]
        {
            assert_eq!(normalise(text), text);
        }
    }
}
