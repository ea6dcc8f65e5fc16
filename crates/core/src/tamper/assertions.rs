//! What a test asserts: how often, and how often only what is always true.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::source::Language;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asserted {
    /// Assertions that can fail.
    pub(super) real: u32,
    /// Assertions that cannot.
    pub(super) constant: u32,
    /// Calls of functions that may assert, by their names.
    pub(super) helpers: u32,
    /// Calls of functions of its file that do assert.
    pub(super) local: u32,
}

impl Asserted {
    /// Everything that may fail.
    pub(super) fn all(self) -> u32 {
        self.real + self.helpers + self.local
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern compiles")
}

static RUST: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(?:debug_|prop_|test_)?assert\w*!|\bpanic!|\bunreachable!|\bmatches!|\bassert_\w+(?:::\w+)*\("));
static JAVASCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\bexpect\s*\(|\bexpect(?:Type|TypeOf|Error)\b|\bassert(?:\.\w+)*\s*\(|\bassert[A-Z]\w*\s*\(|\bt\.(?:is|true|false|deepEqual|throws|truthy|falsy|like|snapshot|assert|equal|ok|match|rejects)\w*\s*\(|\.should\b|\bcy\.|\bsinon\.assert\b|\bQUnit\.assert\b",
    )
});
static PYTHON: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\bassert\b|\.assert\w+\s*\(|\bassert_\w+\s*\(|\.fail\w*\s*\(|\bpytest\.(?:raises|warns|fail|deprecated_call)\b|\braises\s*\(",
    )
});
static GO: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"\b\w+\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:require|assert|is|qt|c|g|Expect)\.\w+\(|\bExpect\(")
});
static RUBY: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\bexpect\b|\bis_expected\b|\.should(?:_not)?\b|\bassert\w*\b|\brefute\w*\b|\bflunk\b|\.(?:must|wont)_\w+|\bexpect_any_instance_of\b",
    )
});
static SHELL: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?m)\[\[|(?:^|[;&|!\s])\[\s|\bassert\w*|\brefute\w*|(?:^|[;&|!]\s*|^\s+)(?:test|grep|diff|cmp|false|fail)\b")
});
static HELPER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:check|verify|expect|should|must|ensure|require|validate|compare|assert|run_test|test)\w*!?\s*\(|\b\w+\(t[,)]|\bsnapshot\w*!?\s*\(",
    )
});

/// How much of a call is looked at.
const LONGEST_CALL: usize = 2_000;

/// Counts, and says where the assertions are. `code` and `said` are the body without strings and with them.
pub(super) fn count(language: Language, code: &str, said: &str) -> (Asserted, Vec<usize>) {
    let pattern: &Regex = match language {
        Language::Rust => &RUST,
        Language::JavaScript => &JAVASCRIPT,
        Language::Python => &PYTHON,
        Language::Go => &GO,
        Language::Ruby => &RUBY,
        Language::Shell => &SHELL,
    };
    let mut asserted = Asserted::default();
    let mut places = Vec::new();
    for found in pattern.find_iter(code) {
        places.push(found.start());
        if is_constant(language, code, said, found.start(), found.end()) {
            asserted.constant += 1;
        } else {
            asserted.real += 1;
        }
    }
    // A method of that name is no helper: `.expect("…")` of Rust.
    let plain = |at: usize| !code[..at].ends_with('.') || language != Language::Rust;
    asserted.helpers = HELPER.find_iter(code).filter(|found| plain(found.start())).count() as u32;
    (asserted, places)
}

/// The statement that holds an assertion: with what comes before it on its line, and the condition above it in Go.
pub(super) fn statement(language: Language, code: &str, at: usize) -> Range<usize> {
    let ends = |c: char| matches!(c, '\n' | ';' | '{' | '}');
    // A line without an end must not be read again for each assertion in it.
    let least = code.floor_char_boundary(at.saturating_sub(LONGEST_CALL));
    let mut start = code[least..at].rfind(ends).map_or(least, |end| least + end + 1);
    if language == Language::Go {
        let above = code[least..start].trim_end();
        let line = above.rfind('\n').map_or(0, |end| end + 1);
        if above.ends_with('{') && above[line..].trim_start().starts_with("if ") {
            start = least + line;
        }
    }
    let (mut depth, mut end) = (0_u32, code.len().min(at + LONGEST_CALL));
    for (place, byte) in code.bytes().enumerate().skip(at).take(LONGEST_CALL) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            b')' | b']' | b'}' => end = place,
            b';' if depth == 0 => end = place,
            // A chain goes on in the next line.
            b'\n'
                if depth == 0
                    && !code[place..].trim_start().starts_with(['.', '=', '&', '|'])
                    && !code[..place].ends_with('\\') =>
            {
                end = place;
            }
            _ => continue,
        }
        if end == place {
            break;
        }
    }
    start..code.floor_char_boundary(end)
}

fn is_constant(language: Language, code: &str, said: &str, start: usize, end: usize) -> bool {
    match language {
        Language::Python if code[start..end] == *"assert" => python_statement(code, said, end),
        Language::Shell => shell_line(said, start),
        Language::Ruby if code[start..end] == *"assert" && !code[end..].starts_with('(') => {
            always(said[end..line_end(said, end)].trim())
        }
        Language::Rust | Language::JavaScript | Language::Python | Language::Go | Language::Ruby => call(code, said, start, end),
    }
}

fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |at| from + at)
}

/// `assert x == x, "message"`.
fn python_statement(code: &str, said: &str, from: usize) -> bool {
    let end = line_end(code, from);
    let arguments = split(&said[from..end]);
    let condition = arguments.first().map_or("", |condition| condition.trim());
    let condition = condition.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(condition);
    let same = condition.split_once("==").is_some_and(|(left, right)| left.trim() == right.trim());
    always(condition) || same
}

fn shell_line(said: &str, start: usize) -> bool {
    static CONSTANT: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\s*(?:\[\[?|test)\s+(\w+)\s+(?:-eq|=|==)\s+(\w+)(?:\s+\]\]?|$)"));
    let line = said[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = &said[line..line_end(said, start)];
    CONSTANT.captures(line).is_some_and(|found| found[1] == found[2])
}

/// Those that compare what they are given.
static COMPARES: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:debug_|prop_)?assert(?:_eq|_ne|_true|_equals?)?!?\s*\(?$|assert(?:True|Equals?|Is|StrictEqual)\s*\(?$|\.(?:ok|equal|strictEqual|deepEqual|is|true|truthy|isTrue|isOk|True|Equal)\s*\($|^assert_equal$",
    )
});

/// A call: all that it compares is written there, or it compares a thing with itself.
fn call(code: &str, said: &str, start: usize, end: usize) -> bool {
    let Some((open, close)) = brackets(code, end) else { return false };
    let arguments: Vec<&str> = split(&said[open + 1..close]);
    let arguments: Vec<&str> = arguments.iter().map(|argument| argument.trim()).filter(|argument| !argument.is_empty()).collect();
    if code[start..].starts_with("expect") {
        return expectation(code, said, &arguments, close + 1);
    }
    // Others may look at files or calls by a name that is written there.
    if !COMPARES.is_match(&code[start..end]) {
        return false;
    }
    // The test itself, where the framework wants it first.
    let arguments = if arguments.len() > 1 && arguments[0] == "t" { &arguments[1..] } else { &arguments[..] };
    match arguments {
        [] => false,
        [one] => always(one),
        [first, second, ..] if first == second => true,
        [first, second, ..] => (is_literal(first) && is_literal(second)) || ends_true(first),
    }
}

/// `expect(true).toBe(true)`.
fn expectation(code: &str, said: &str, arguments: &[&str], after: usize) -> bool {
    let [given] = arguments else { return false };
    let chain = &code[after.min(code.len())..line_end(code, after.min(code.len()))];
    let Some((open, close)) = chain.find('(').and_then(|at| brackets(code, after + at)) else {
        // `.to.be.true`, or Ruby's `.to be_truthy`.
        return is_literal(given);
    };
    let wanted = said[open + 1..close].trim();
    wanted == *given || (is_literal(given) && (wanted.is_empty() || is_literal(wanted)))
}

/// The bracket at or right after this place, and where it is closed.
fn brackets(code: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = code.as_bytes();
    let open = if from > 0 && bytes[from - 1] == b'(' {
        from - 1
    } else {
        from + bytes[from..].iter().position(|byte| !byte.is_ascii_whitespace())?
    };
    if !matches!(bytes.get(open), Some(b'(' | b'[' | b'{')) {
        return None;
    }
    let mut depth = 0_u32;
    for (at, byte) in bytes.iter().enumerate().skip(open).take(LONGEST_CALL) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some((open, at));
                }
            }
            _ => {}
        }
    }
    None
}

/// At the commas that are in no bracket and no string.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn always(condition: &str) -> bool {
    matches!(condition, "true" | "True" | "1" | "!false" | "not False" | "!0" | "1 == 1" | "1==1")
        || ends_true(condition)
        || is_text(condition)
}

fn ends_true(condition: &str) -> bool {
    ["|| true", "||true", "or True", "or true", "or 1", "|| 1"].iter().any(|end| condition.ends_with(end))
}

fn is_text(value: &str) -> bool {
    value.len() >= 2
        && value.starts_with(['"', '\'', '`'])
        && value.ends_with(['"', '\'', '`'])
        && value.matches(value.chars().next().unwrap_or('"')).count() == 2
}

fn is_literal(value: &str) -> bool {
    let word = matches!(value, "true" | "false" | "True" | "False" | "None" | "null" | "nil" | "undefined" | "[]" | "{}" | "()");
    let number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_');
    word || number || is_text(value)
}
