//! Expected text in a file, or in a marked block of one. `VERDONE_BLESS=1` writes the program's current output.

use std::fs;
use std::path::Path;

/// Compares a text with a file. With `VERDONE_BLESS=1`, writes the file instead.
#[track_caller]
pub fn assert_file(expected: impl AsRef<Path>, actual: &str) {
    let path = expected.as_ref();
    if blessing() {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap_or_else(|error| panic!("cannot make {}: {error}", parent.display()));
        }
        return rewrite(path, actual);
    }
    let Ok(expected) = fs::read_to_string(path) else {
        panic!("{} is missing; VERDONE_BLESS=1 writes it\n{actual}", path.display());
    };
    assert_same(&path.display().to_string(), &expected, actual);
}

/// Compares a text with the block between `<!-- NAME:begin -->` and `<!-- NAME:end -->`. With `VERDONE_BLESS=1`, writes the block.
#[track_caller]
pub fn assert_block(file: impl AsRef<Path>, name: &str, actual: &str) {
    let path = file.as_ref();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let (before, block, after) = split_block(&text, name).unwrap_or_else(|| panic!("{} has no block `{name}`", path.display()));
    let actual = format!("\n{}\n", actual.trim_end_matches('\n'));
    if blessing() {
        return rewrite(path, &format!("{before}{actual}{after}"));
    }
    assert_same(&format!("block `{name}` of {}", path.display()), block, &actual);
}

/// The text up to and including the begin marker, the block, and the text from the end marker on.
pub fn split_block<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let begin = format!("<!-- {name}:begin -->");
    let start = text.find(&begin)? + begin.len();
    let length = text[start..].find(&format!("<!-- {name}:end -->"))?;
    Some((&text[..start], &text[start..start + length], &text[start + length..]))
}

fn blessing() -> bool {
    std::env::var_os("VERDONE_BLESS").is_some_and(|value| value == "1")
}

fn rewrite(path: &Path, text: &str) {
    // An unchanged file is not rewritten, so that its timestamp causes no rebuild.
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

#[track_caller]
fn assert_same(name: &str, expected: &str, actual: &str) {
    if expected == actual {
        return;
    }
    let line = expected.lines().zip(actual.lines()).take_while(|(left, right)| left == right).count();
    let (wanted, got) = (expected.lines().nth(line), actual.lines().nth(line));
    panic!(
        "{name} differs from line {}\n  expected: {wanted:?}\n  actual:   {got:?}\n\
         ~~~~~~~~ expected ~~~~~~~~\n{expected}\n~~~~~~~~ actual ~~~~~~~~\n{actual}\n~~~~~~~~\n\
         VERDONE_BLESS=1 accepts the actual text",
        line + 1
    );
}
