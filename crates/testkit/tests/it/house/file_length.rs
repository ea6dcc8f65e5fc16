//! Files are short enough to be read in one go.

use super::{files_ending, read};

const LONGEST: usize = 500;

/// The ends of paths of tables, which need not be read in one go. Each with its reason.
const TABLES: [(&str, &str); 1] = [("policy/table.rs", "one command a line, without code")];

#[test]
fn files_are_short_without_their_own_tests() {
    let mut found = 0;
    for path in sources() {
        let lines = length(&read(&path));
        found += 1;
        let is_table = TABLES.iter().any(|(table, _)| path.ends_with(table));
        assert!(is_table || lines <= LONGEST, "{path} has {lines} lines: split it by concept");
    }
    assert!(found > 500, "only {found} files were found: the search is broken");
}

#[test]
fn every_exception_is_needed() {
    for (table, _) in TABLES {
        let long = |path: &String| path.ends_with(table) && length(&read(path)) > LONGEST;
        assert!(sources().iter().any(long), "no file {table} is longer than {LONGEST} lines");
    }
}

#[test]
fn only_tests_at_the_end_are_not_counted() {
    let tests = "#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\n";
    assert_eq!(length(&format!("fn a() {{}}\n\n{tests}")), 1);
    assert_eq!(length(&format!("fn a() {{}}\n\n{tests}\nfn b() {{}}\n")), 9);
    assert_eq!(length("fn a() {}\n\n#[cfg(test)]\nmod tests;\n"), 4);
}

fn sources() -> Vec<String> {
    let is_source = |path: &String| path.starts_with("crates/") && (path.contains("/src/") || path.contains("/tests/"));
    files_ending("rs").into_iter().filter(is_source).collect()
}

/// The number of lines before the unit tests, if those end the file.
fn length(source: &str) -> usize {
    let code = match source.rsplit_once("#[cfg(test)]\nmod tests {\n") {
        Some((code, tests)) if tests.find("\n}").is_some_and(|end| tests[end + 2..].trim().is_empty()) => code.trim_end(),
        _ => source,
    };
    code.lines().count()
}
