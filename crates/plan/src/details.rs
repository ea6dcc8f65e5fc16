//! Reads the details from a story's text: criteria, checks, dependencies, priority.

use std::ops::Range;

use verdone_text::position::{Fault, quote};
use verdone_text::sentence::capitalise;

use crate::Criterion;
use crate::complexity::read_complexity;
use crate::kind::{KINDS, read_kind};
use crate::label::{self, Label};
use crate::markdown::{Block, BlockKind, Scan};
use crate::scope::{self, ParsedScope};

#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) criteria: Vec<Criterion>,
    pub(crate) checks: Vec<String>,
    pub(crate) maybe_checks: Vec<String>,
    pub(crate) dependencies: Vec<(usize, String)>,
    pub(crate) priority: Option<u32>,
    pub(crate) scope: Vec<String>,
    /// The texts after `Proof:`, with their positions.
    pub(crate) proofs: Vec<(usize, String)>,
    pub(crate) complexity: Option<u8>,
    pub(crate) kind: Option<&'static str>,
    /// Boxes at the story's own level: the position of each, and its criterion.
    pub(crate) tasks: Vec<(usize, Option<usize>)>,
    pub(crate) warnings: Vec<Fault>,
}

/// A longer line cannot be a command that someone typed.
const LONGEST_COMMAND: usize = 8 * 1024;

/// A label, and the depth below which it applies.
type ActiveLabel = Option<(Label, i32)>;

impl Details {
    /// Reads the blocks of one story. `depth` is the depth of its tasks.
    pub(crate) fn read(scan: &Scan<'_>, blocks: Range<usize>, depth: i32) -> Self {
        let mut details = Self::default();
        let mut under: ActiveLabel = None;
        for block in &scan.blocks[blocks] {
            details.block(scan, block, depth, &mut under);
        }
        details
    }

    /// Reads the lines of a paragraph after its first. Labels count there as they do in bullets.
    pub(crate) fn continuation(&mut self, scan: &Scan<'_>, from: usize, to: usize, depth: i32) {
        let mut under: ActiveLabel = None;
        self.lines(scan, from..to, depth, &mut under);
    }

    fn block(&mut self, scan: &Scan<'_>, block: &Block, depth: i32, under: &mut ActiveLabel) {
        if matches!(under, Some((_, covers)) if block.depth <= *covers) {
            *under = None;
        }
        match block.kind {
            BlockKind::Heading { .. } => *under = label::heading(scan.content(block)).map(|label| (label, depth - 1)),
            BlockKind::Code { shell } => {
                if let Some((Label::Verification | Label::Command, _)) = under {
                    self.script(scan.content(block), block.content.start, shell);
                }
            }
            BlockKind::Paragraph => self.lines(scan, block.content.clone(), block.depth - 1, under),
            BlockKind::Item => {
                let (first, rest) = scan.first_line(block);
                if let Some(mark) = block.mark
                    && block.depth == depth
                {
                    let is_check = matches!(under, Some((Label::Verification | Label::Command, _)));
                    self.tasks.push((mark.at, (!is_check).then_some(self.criteria.len())));
                }
                match (label::split(first), block.mark) {
                    (Some((label, value)), None) => self.labelled(label, value, block.content.start, block.depth, under),
                    (None, None) => {
                        self.warn_of_slip(first, block.content.start);
                        self.item(first, block, *under);
                    }
                    (_, Some(_)) => self.item(first, block, *under),
                }
                self.lines(scan, rest..block.content.end, block.depth, under);
            }
        }
    }

    /// An item without a label. Its meaning depends on the label above it, or on its box.
    fn item(&mut self, text: &str, block: &Block, under: ActiveLabel) {
        let ticked = block.mark.map(|mark| mark.status == super::Status::Done);
        match under.map(|(label, _)| label) {
            Some(Label::Verification) => self.read_check(text, block.content.start),
            Some(Label::Command) => self.command(text),
            Some(Label::Dependencies) if ticked.is_none() => self.depends(text, block.content.start),
            Some(Label::Acceptance) => self.criteria.push(Criterion { text: text.to_owned(), ticked }),
            Some(Label::Scope) if ticked.is_none() => self.read_scope(text, block.content.start),
            Some(
                Label::Prose
                | Label::Priority
                | Label::Complexity
                | Label::Proof
                | Label::Kind
                | Label::Dependencies
                | Label::Scope,
            )
            | None => {
                if ticked.is_some() {
                    self.criteria.push(Criterion { text: text.to_owned(), ticked });
                }
            }
        }
    }

    fn lines(&mut self, scan: &Scan<'_>, range: Range<usize>, depth: i32, under: &mut ActiveLabel) {
        if range.is_empty() {
            return;
        }
        let mut at = range.start;
        for raw in scan.text[range].split_inclusive('\n') {
            let line = raw.trim();
            let place = at + (raw.len() - raw.trim_start().len());
            at += raw.len();
            if line.is_empty() {
                continue;
            }
            self.warn_of_slip(line, place);
            match (label::split(line), under.map(|(label, _)| label)) {
                (Some((label, value)), _) => self.labelled(label, value, place, depth, under),
                (None, Some(Label::Verification)) => self.read_check(line, place),
                (None, Some(Label::Command)) => self.command(line),
                (None, Some(Label::Scope)) => self.read_scope(line, place),
                (None, Some(Label::Acceptance)) => match self.criteria.last_mut() {
                    Some(last) => {
                        last.text.push(' ');
                        last.text.push_str(line);
                    }
                    None => self.criteria.push(Criterion { text: line.to_owned(), ticked: None }),
                },
                (
                    None,
                    Some(Label::Dependencies | Label::Priority | Label::Complexity | Label::Proof | Label::Kind | Label::Prose)
                    | None,
                ) => {}
            }
        }
    }

    /// Warns about a misspelt label, because it has no effect.
    fn warn_of_slip(&mut self, text: &str, at: usize) {
        if let Some((written, meant)) = label::misspelt(text) {
            let fault = Fault::new(at, format!("unknown field `{written}`"));
            self.warnings.push(fault.hint(format!("did you mean `{}`?", capitalise(meant))));
        }
    }

    fn labelled(&mut self, label: Label, value: &str, at: usize, depth: i32, under: &mut ActiveLabel) {
        let under_verification = matches!(under, Some((Label::Verification | Label::Command, _)));
        if label == Label::Command {
            if under_verification {
                self.command(value);
                if value.is_empty() {
                    *under = Some((Label::Command, depth));
                }
            }
            return;
        }
        // If the scope was given on the label's line, the lines below are prose.
        let covers = if label == Label::Scope && !value.is_empty() { Label::Prose } else { label };
        *under = Some((covers, depth));
        if value.is_empty() {
            return;
        }
        match label {
            Label::Acceptance => self.criteria.push(Criterion { text: value.to_owned(), ticked: None }),
            Label::Verification => match label::split(value) {
                Some((Label::Command, command)) => self.command(command),
                Some(_) | None => self.read_check(value, at),
            },
            Label::Dependencies => self.depends(value, at),
            Label::Scope => self.read_scope(value, at),
            Label::Priority => {
                let digits: String =
                    value.chars().skip_while(|c| matches!(c, 'P' | 'p')).take_while(char::is_ascii_digit).collect();
                self.priority = digits.parse().ok().or(self.priority);
            }
            Label::Complexity => self.complexity = read_complexity(value).or(self.complexity),
            Label::Proof => self.read_proof(value, at),
            Label::Kind => self.read_kind(value, at),
            Label::Command | Label::Prose => {}
        }
    }

    fn read_kind(&mut self, text: &str, at: usize) {
        self.kind = read_kind(text).or(self.kind);
        if read_kind(text).is_none() {
            let fault = Fault::new(at, format!("unknown kind {text:?}"));
            self.warnings.push(fault.hint(format!("one of {}", KINDS.join(", "))));
        }
    }

    pub(crate) fn read_proof(&mut self, text: &str, at: usize) {
        self.proofs.push((at, text.trim_matches(['`', '*', '_', ' ', '.']).to_owned()));
    }

    /// Reads a line under Verification. Text in backticks is a command, a plain line may be one, and prose gets a warning.
    pub(crate) fn read_check(&mut self, text: &str, at: usize) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let spans = if text.len() > LONGEST_COMMAND { Vec::new() } else { code_spans(text) };
        let commands: Vec<&str> = spans.iter().copied().filter(|span| may_be_command(span)).collect();
        if !commands.is_empty() {
            self.checks.extend(commands.into_iter().map(str::to_owned));
        } else if spans.is_empty() && text.len() <= LONGEST_COMMAND && is_simple_command(text) {
            self.maybe_checks.push(text.to_owned());
        } else {
            let fault = Fault::new(at, format!("no command in this verification, so it is not a check: {}", quote(text)));
            self.warnings.push(fault.hint("put the command in backticks"));
        }
    }

    /// Reads the paths of a line under Scope, with a warning about anything else.
    pub(crate) fn read_scope(&mut self, text: &str, at: usize) {
        let spans = if text.len() > LONGEST_COMMAND { Vec::new() } else { code_spans(text) };
        self.add_scope(scope::read(text, &spans), at);
    }

    pub(crate) fn add_scope(&mut self, named: ParsedScope, at: usize) {
        self.scope.extend(named.paths);
        self.warnings.extend(named.faults.iter().map(|fault| Fault::new(at, fault.to_string()).hint(fault.hint())));
    }

    /// A line explicitly labelled as a command.
    fn command(&mut self, text: &str) {
        if text.len() > LONGEST_COMMAND {
            return;
        }
        let spans = code_spans(text);
        let plain = ["-> PASS", "-> FAIL"].iter().fold(text.trim(), |text, outcome| text.trim_end_matches(outcome).trim_end());
        if spans.is_empty() && !plain.is_empty() {
            self.checks.push(plain.to_owned());
        }
        self.checks.extend(spans.into_iter().map(str::to_owned));
    }

    fn depends(&mut self, text: &str, at: usize) {
        for name in text.split([',', ';']) {
            let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '*' | '[' | ']')).trim_end_matches('.');
            let name = match label::split_id(name) {
                Some((id, _)) => id,
                None => leading_id(name).unwrap_or(name).to_owned(),
            };
            if !matches!(name.to_lowercase().as_str(), "" | "none" | "n/a" | "-" | "–" | "—" | "nothing") {
                self.dependencies.push((at, name));
            }
        }
    }

    /// A fenced block under Verification: one command per line, or one script if the lines belong together.
    fn script(&mut self, text: &str, at: usize, shell: bool) {
        if !shell {
            self.warnings.push(Fault::new(at, "a code block under Verification that is not shell").hint("mark it as `sh`"));
            return;
        }
        let text = text.replace("\r\n", "\n");
        let lines: Vec<&str> = text.lines().map(str::trim).map(|line| line.strip_prefix("$ ").unwrap_or(line)).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let joined = |line: &&str| {
            let word = line.split_whitespace().next().unwrap_or("");
            line.ends_with('\\')
                || line.contains("<<")
                || matches!(word, "if" | "for" | "while" | "until" | "case" | "cd" | "export" | "set" | "{" | "(")
        };
        if lines.iter().any(joined) {
            self.checks.push(format!("set -e\n{}", text.trim_end()));
        } else {
            self.checks.extend(lines.into_iter().map(str::to_owned));
        }
    }
}

/// The id at the beginning of `US-001 (sign-in)`.
fn leading_id(text: &str) -> Option<&str> {
    let word = text.split([' ', '\t', '(']).next().filter(|word| label::looks_like_id(word))?;
    text[word.len()..].trim_start().starts_with('(').then_some(word)
}

/// The texts between backticks, single or multiple.
fn code_spans(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|found| at + found) {
        let ticks = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        let open = start + ticks;
        let Some(close) = closing(text, open, ticks) else {
            at = open;
            continue;
        };
        let span = text[open..close].trim();
        if !span.is_empty() {
            spans.push(span);
        }
        at = close + ticks;
    }
    spans
}

/// The next run of exactly this many backticks.
fn closing(text: &str, from: usize, ticks: usize) -> Option<usize> {
    let mut at = from;
    while let Some(start) = text[at..].find('`').map(|found| at + found) {
        let run = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        if run == ticks {
            return Some(start);
        }
        at = start + run;
    }
    None
}

/// A span that is a number or a flag is a value, not a command.
fn may_be_command(span: &str) -> bool {
    span.starts_with(|c: char| {
        c.is_ascii_alphabetic() || matches!(c, '.' | '/' | '_' | '~' | '!' | '[' | '(' | '{' | '"' | '\'' | '$')
    })
}

/// Whether a plain line looks like a program and its arguments rather than English. Sentences can also begin with `make`, `test` or
/// `find`, so function words reveal a sentence.
fn is_simple_command(line: &str) -> bool {
    const SMALL_WORDS: [&str; 37] = [
        "the", "that", "a", "an", "is", "are", "be", "should", "must", "sure", "and", "or", "to", "of", "with", "works",
        "passes", "pass", "when", "it", "if", "in", "on", "for", "no", "not", "by", "as", "from", "into", "after", "before",
        "manually", "each", "every", "this", "still",
    ];
    let mut words = line.split_whitespace().skip_while(|word| word.split_once('=').is_some_and(|(name, _)| is_name(name)));
    let Some(program) = words.next() else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '~');
    program.chars().all(plain)
        && program.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '.' | '/' | '~'))
        && !program.ends_with('.')
        && !line.contains(['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '*', '?', '!', '—', '→', ','])
        && line.matches('"').count().is_multiple_of(2)
        && line.matches('\'').count().is_multiple_of(2)
        && !words.any(|word| SMALL_WORDS.contains(&word.to_ascii_lowercase().as_str()) || word.ends_with(':'))
        && !(line.ends_with('.') && !line.ends_with(" .") && !line.ends_with("/..."))
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::tests::PLAIN;

    #[test]
    fn plain_lines_are_commands_only_when_they_read_like_one() {
        let table = [
            ("cargo test -p core", true),
            ("./scripts/test --quick", true),
            ("RUST_LOG=debug cargo test", true),
            ("go test ./...", true),
            ("make all", true),
            ("ls .", true),
            ("pytest -k 'two words'", true),
            ("make sure that it works", false),
            ("test the login page", false),
            ("find a way to check it", false),
            ("Run the tests", false),
            ("open http://localhost:3000 and look", false),
            ("cargo test.", false),
            ("cargo test && cargo clippy", false),
            ("", false),
            ("A=1", false),
        ];
        for (line, expected) in table {
            assert_eq!(is_simple_command(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_complexity_is_read_from_every_format_and_nothing_that_is_none_is_a_fault() {
        let json =
            |value: &str| format!(r#"{{"userStories":[{{"id":"US-001","title":"One","passes":false,"complexity":{value}}}]}}"#);
        for (name, text, expected) in [
            ("plan.md", "- [ ] US-001: One\n  - Complexity: high\n".to_owned(), Some(8)),
            ("plan.md", "### US-001: One\n\n- [ ] Do it\n  - Complexity: 4\n".to_owned(), Some(4)),
            ("IMPLEMENTATION_PLAN.md", "## Priority 1\n\n- [ ] One\n  - Complexity: low\n".to_owned(), Some(3)),
            ("plan.md", "- [ ] US-001: One\n  - Complexity: who knows\n".to_owned(), None),
            ("prd.json", json("9"), Some(9)),
            ("prd.json", json("\"Medium\""), Some(5)),
            ("prd.json", json("[1]"), None),
            ("prd.json", json("99"), None),
        ] {
            let document = crate::Document::parse(name, text.as_bytes(), &PLAIN).unwrap();
            assert_eq!(document.plan().stories[0].complexity, expected, "{text}");
        }
    }

    #[test]
    fn spans_are_found_between_equal_runs_of_backticks() {
        let table: [(&str, &[&str]); 6] = [
            ("`a` and `b c`", &["a", "b c"]),
            ("``a ` b``", &["a ` b"]),
            ("`open", &[]),
            ("``", &[]),
            ("no", &[]),
            ("```x``` `y`", &["x", "y"]),
        ];
        for (text, expected) in table {
            assert_eq!(code_spans(text), expected, "{text:?}");
        }
    }
}
