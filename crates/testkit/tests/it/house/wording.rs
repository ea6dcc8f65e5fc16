//! Slips in what users read: `1 commits`, and doubled words.

use std::collections::BTreeSet;

use regex::Regex;

use super::{files, files_ending, read};

#[test]
fn one_of_a_thing_is_singular() {
    let plurals = plurals();
    assert!(plurals.contains("stories") && plurals.contains("commits"), "only {plurals:?}: the search is broken");
    let slip = slip(&plurals);
    for path in pages() {
        for line in read(&path).lines() {
            assert!(!slip.is_match(line), "{path}: {line}");
        }
    }
}

#[test]
fn no_word_is_doubled() {
    let pages = pages();
    assert!(pages.len() > 90, "only {} pages were found: the search is broken", pages.len());
    for path in pages {
        let word = doubled(&read(&path), path.ends_with(".md"));
        assert_eq!(word, None, "{path} has this word twice in a row");
    }
}

#[test]
fn slips_are_found() {
    let plurals: BTreeSet<String> = ["stories", "checks"].map(str::to_owned).into();
    let slip = slip(&plurals);
    for text in ["1 stories", "Merged 1 checks.", "(1 stories)", "0 of 1 checks"] {
        assert!(slip.is_match(text), "{text}");
    }
    for text in ["11 stories", "1 story", "US-1 checks", "0.1 checks", "1 checksum", "1 of 2 stories", "2,1 checks"] {
        assert!(!slip.is_match(text), "{text}");
    }
    assert_eq!(doubled("This is the the end.", false), Some("the".to_owned()));
    assert_eq!(doubled("It is\nis so", true), Some("is".to_owned()));
    for text in
        ["done  done", "| a | a |", "`a` a", "grep hello hello.txt", "long long long", "1 1", "- a\n- a", "```\na\na\n```"]
    {
        assert_eq!(doubled(text, true), None, "{text}");
    }
}

/// Expected output and documentation.
fn pages() -> Vec<String> {
    let is_page = |path: &String| {
        let is_output = path.contains("/tests/transcripts/") || path.contains("/tests/expected/");
        let is_text = path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'));
        is_output || is_text
    };
    files().into_iter().filter(is_page).collect()
}

/// The plural nouns that the program prints after numbers.
fn plurals() -> BTreeSet<String> {
    let call = Regex::new(r#"\bplural\([^"]*"([^"]*)",\s*"([^"]*)"\)"#).expect("the pattern is valid");
    let mut found = BTreeSet::new();
    for path in files_ending("rs").iter().filter(|path| path.contains("/src/")) {
        for call in call.captures_iter(&read(path)) {
            // Of `file is` and `files are` only the noun has an s in the plural.
            let pairs = call[1].split(' ').zip(call[2].split(' '));
            found.extend(pairs.filter(|(one, many)| one != many && many.ends_with('s')).map(|(_, many)| many.to_owned()));
        }
    }
    found
}

/// A 1 that is not part of another number or name, and a plural.
fn slip(plurals: &BTreeSet<String>) -> Regex {
    let plurals: Vec<&str> = plurals.iter().map(String::as_str).collect();
    Regex::new(&format!(r"(?:^|[^\w.,-])1 (?:{})\b", plurals.join("|"))).expect("the pattern is valid")
}

/// The first word that stands twice in a row. Words in different columns do not, code does not count, and what stands there more than
/// twice is not a slip. A paragraph of Markdown continues on the next line.
fn doubled(text: &str, is_markdown: bool) -> Option<String> {
    let code = Regex::new("`[^`]*`").expect("the pattern is valid");
    let (mut words, mut is_code): (Vec<String>, bool) = (Vec::new(), false);
    for line in text.lines() {
        let is_fence = is_markdown && line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_markdown || is_code || is_fence {
            words.push(String::new());
        }
        let line = code.replace_all(line, "`");
        let line = if is_markdown && !is_code { line.trim() } else { &line };
        words.extend(line.split(' ').map(str::to_owned));
    }
    words.push(String::new());
    let word = |text: &str| text.trim_end_matches([',', '.', ';', ':', ')']).to_owned();
    let is_word = |text: &str| !text.is_empty() && text.chars().all(char::is_alphabetic);
    let mut at = 0;
    while at < words.len() {
        let same = words[at..].iter().skip(1).take_while(|next| word(next) == words[at]).count();
        if is_word(&words[at]) && same == 1 {
            return Some(words[at].clone());
        }
        at += same + 1;
    }
    None
}
