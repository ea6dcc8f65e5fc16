//! What should not be left in lines that an agent added: open ends and debugging. Looks at one line at a time; what stands in a string
//! is left alone as far as one line tells.

/// One find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Debris {
    pub path: String,
    pub line: u32,
    pub kind: &'static str,
    pub text: String,
    /// Whether it holds a task back; printing is only told.
    pub blocking: bool,
    /// Whether it is left from debugging.
    pub debugging: bool,
}

struct Sign {
    text: &'static str,
    kind: &'static str,
    blocking: bool,
    debugging: bool,
    /// Of files with these endings; all where there are none.
    of: &'static [&'static str],
}

const fn sign(text: &'static str, kind: &'static str, blocking: bool, debugging: bool, of: &'static [&'static str]) -> Sign {
    Sign { text, kind, blocking, debugging, of }
}

const JS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "vue", "svelte"];
const RUST: &[&str] = &["rs"];
const PYTHON: &[&str] = &["py"];

const SIGNS: [Sign; 13] = [
    sign("console.log(", "debug output", true, true, JS),
    sign("console.debug(", "debug output", true, true, JS),
    sign("debugger", "a breakpoint", true, true, JS),
    sign("dbg!(", "debug output", true, true, RUST),
    sign("todo!(", "a placeholder", true, false, RUST),
    sign("unimplemented!(", "a placeholder", true, false, RUST),
    sign("breakpoint()", "a breakpoint", true, true, PYTHON),
    sign("pdb.set_trace(", "a breakpoint", true, true, PYTHON),
    sign("raise NotImplementedError", "a placeholder", true, false, PYTHON),
    sign("binding.pry", "a breakpoint", true, true, &["rb"]),
    sign("println!(", "printing", false, true, RUST),
    sign("print(", "printing", false, true, PYTHON),
    sign("fmt.Println(", "printing", false, true, &["go"]),
];

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];
const COMMENTS: [&str; 7] = ["//", "#", "/*", "--", "<!--", ";;", "%"];
/// Prose may say what is to do.
const PROSE: [&str; 6] = ["md", "txt", "rst", "adoc", "json", "lock"];

/// Looks at lines that were added to a file.
pub fn debris_in<'a>(path: &str, added: impl IntoIterator<Item = (u32, &'a str)>) -> Vec<Debris> {
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
    if PROSE.contains(&ending) {
        return Vec::new();
    }
    added.into_iter().filter_map(|(line, text)| find(path, ending, line, text)).collect()
}

fn find(path: &str, ending: &str, line: u32, text: &str) -> Option<Debris> {
    let bare = without_strings(text);
    let found = |kind, blocking, debugging| {
        let shown = text.trim();
        let shown = shown[..shown.floor_char_boundary(160)].to_owned();
        Some(Debris { path: path.to_owned(), line, kind, text: shown, blocking, debugging })
    };
    let comment = COMMENTS.iter().filter_map(|opener| bare.find(opener)).min();
    // A line of a comment that began above.
    let comment = comment.or_else(|| bare.trim_start().starts_with("* ").then_some(0));
    if let Some(at) = comment
        && MARKS.iter().any(|mark| has_word(&bare[at..], mark))
    {
        return found("an open end", true, false);
    }
    let code = comment.map_or(bare.as_str(), |at| &bare[..at]);
    let hit = SIGNS.iter().find(|sign| (sign.of.is_empty() || sign.of.contains(&ending)) && has_sign(code, sign.text))?;
    found(hit.kind, hit.blocking, hit.debugging)
}

/// The line with the insides of its strings blanked.
fn without_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match quote {
            Some(_) if c == '\\' => {
                chars.next();
                out.push_str("  ");
            }
            Some(open) if c == open => {
                quote = None;
                out.push(c);
            }
            Some(_) => out.push(' '),
            None => {
                // An apostrophe is a quote only where the rest of the line closes it.
                let opens = matches!(c, '"' | '`') || (c == '\'' && chars.as_str().contains('\''));
                quote = opens.then_some(c);
                out.push(c);
            }
        }
    }
    out
}

fn has_sign(code: &str, sign: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let whole_word = sign.chars().next_back().is_some_and(char::is_alphanumeric);
    code.match_indices(sign).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + sign.len()..].chars().next();
        let goes_on = after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '='));
        let is_whole = !whole_word || !goes_on;
        is_whole && !before.is_some_and(is_part)
    })
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part) && !text[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ends_and_debugging_are_told_from_what_only_looks_like_them() {
        for (path, line, expected) in [
            ("a.rs", "// TODO: later", Some(("an open end", true))),
            ("a.py", "x = 1  # FIXME", Some(("an open end", true))),
            ("a.rs", "let s = \"// TODO\";", None),
            ("a.rs", "fn TODO() {}", None),
            ("a.rs", "// TODOs are listed", None),
            ("a.ts", "  console.log(x)", Some(("debug output", true))),
            ("a.ts", "  // console.log(x)", None),
            ("a.ts", "  debugger;", Some(("a breakpoint", true))),
            ("a.ts", "  debuggerEnabled = true", None),
            ("a.ts", "const s = 'console.log(x)'", None),
            ("a.rs", "  todo!()", Some(("a placeholder", true))),
            ("a.rs", "  dbg!(x);", Some(("debug output", true))),
            ("a.rs", "  println!(\"x\");", Some(("printing", false))),
            ("a.rs", "  eprintln!(\"x\");", None),
            ("a.py", "    raise NotImplementedError", Some(("a placeholder", true))),
            ("README.md", "TODO # TODO", None),
            ("a.c", " * XXX fix", Some(("an open end", true))),
            ("a.rs", "let c = 'a'; // it's XXX", Some(("an open end", true))),
        ] {
            let found = debris_in(path, [(7, line)]);
            assert_eq!(found.first().map(|debris| (debris.kind, debris.blocking)), expected, "{path}: {line}");
        }
    }
}
