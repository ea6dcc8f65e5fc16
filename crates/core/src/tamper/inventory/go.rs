//! Go: functions named `TestX` in files named `x_test.go`, and methods of test suites.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Brackets, Found, Marker, Text};

static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?m)^func\s+(?:\([^)]*\)\s*)?((?:Test|Fuzz|Example)\w*)\s*\(";
    Regex::new(pattern).expect("a fixed pattern compiles")
});

pub(super) fn tests(text: &Text<'_>) -> Vec<Found> {
    let brackets = Brackets::of(&text.code);
    let tags = build_tags(text);
    let reach = text.path.ends_with("_test.go");
    let mut found = Vec::new();
    for function in FUNCTION.captures_iter(&text.code) {
        let (Some(whole), Some(name)) = (function.get(0), function.get(1)) else { continue };
        let rest = ["Test", "Fuzz", "Example"].iter().find_map(|kind| name.as_str().strip_prefix(kind)).unwrap_or_default();
        // `Testify` is no test: Go wants no small letter there.
        if rest.starts_with(|c: char| c.is_lowercase()) {
            continue;
        }
        let after = brackets.closing(whole.end() - 1).unwrap_or(whole.end());
        let Some(open) = text.code[after..].find('{').map(|open| after + open) else { continue };
        let close = brackets.closing(open).map_or(open, |close| close + 1);
        found.push(Found {
            name: name.as_str().to_owned(),
            at: whole.start(),
            whole: whole.start()..open,
            body: open..close,
            markers: tags.clone(),
            reach,
        });
    }
    found
}

/// Tags before the package clause: without them given, the file is not built.
fn build_tags(text: &Text<'_>) -> BTreeSet<Marker> {
    let head = text.raw.lines().map(str::trim).take_while(|line| !line.starts_with("package "));
    let tags = head.filter_map(|line| line.strip_prefix("//go:build ").or_else(|| line.strip_prefix("// +build ")));
    tags.map(|tag| if tag.trim() == "ignore" { Marker::Skipped } else { Marker::SkippedIf }).collect()
}
