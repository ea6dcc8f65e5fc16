//! Unanswered questions in a plan: `Question: …`, or items listed under `Open questions:`.

/// A longer list is not a list of questions.
const MOST: usize = 100;

/// The open questions in a story's text, or in the text around the stories.
pub fn open_questions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    // Whether the current lines belong to a list of questions, and whether the last question may still be answered.
    let (mut listing, mut answerable, mut fenced) = (false, false, false);
    for raw in text.lines() {
        let line = Line::parse(raw);
        if raw.trim_start().starts_with("```") || raw.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        if line.text.is_empty() {
            answerable &= listing;
            continue;
        }
        if let Some(answer) = labelled(line.text, &["answer", "answered", "a"]) {
            if answerable && !is_nothing(answer) {
                found.pop();
            }
            answerable = false;
            continue;
        }
        if let Some(value) = labelled(line.text, &["open question", "open questions", "question", "questions", "q"]) {
            listing = value.is_empty();
            answerable = !value.is_empty() && line.is_open(value) && push(&mut found, value);
            continue;
        }
        if line.heading {
            let name = line.text.trim_end_matches(':');
            listing = ["open question", "open questions", "questions"].iter().any(|word| word.eq_ignore_ascii_case(name));
            answerable = false;
        } else if listing && line.item {
            answerable = line.is_open(line.text) && push(&mut found, line.text);
        } else if is_label(line.text) {
            (listing, answerable) = (false, false);
        }
    }
    found.truncate(MOST);
    found
}

struct Line<'a> {
    text: &'a str,
    heading: bool,
    item: bool,
    ticked: bool,
}

impl<'a> Line<'a> {
    fn parse(raw: &'a str) -> Self {
        let text = raw.trim();
        let bare = text.trim_start_matches('#');
        let heading = bare.len() < text.len() && bare.starts_with([' ', '\t']);
        let text = if heading { bare.trim() } else { text };
        let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let marked = text.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with([' ', '\t']));
        let numbered =
            numbered.strip_prefix(['.', ')']).filter(|rest| rest.len() + 1 < text.len() && rest.starts_with([' ', '\t']));
        let item = marked.or(numbered);
        let text = item.unwrap_or(text).trim();
        let boxed = |mark: &str| text.strip_prefix(mark).map(str::trim);
        let ticked = boxed("[x]").or_else(|| boxed("[X]"));
        Self { text: ticked.or_else(|| boxed("[ ]")).unwrap_or(text), heading, item: item.is_some(), ticked: ticked.is_some() }
    }

    /// A ticked box, struck-through text and a question with an answer on the same line count as answered.
    fn is_open(&self, question: &str) -> bool {
        let lower = question.to_ascii_lowercase();
        let answer = lower.find("answer:").map(|at| &question[at + "answer:".len()..]);
        !self.ticked && !question.starts_with("~~") && !is_nothing(question) && answer.is_none_or(is_nothing)
    }
}

fn push(found: &mut Vec<String>, question: &str) -> bool {
    const LONGEST: usize = 300;
    let question = question.trim_matches(['*', '_']).trim();
    found.push(question[..question.floor_char_boundary(LONGEST)].to_owned());
    true
}

/// The text after one of the words and a colon, bold or not.
fn labelled<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let inner = text.trim_start_matches(['*', '_']);
    let (word, rest) = inner.split_once(':')?;
    let word = word.trim_matches(|c: char| c == '*' || c == '_' || c.is_whitespace());
    words.iter().any(|known| known.eq_ignore_ascii_case(word)).then(|| rest.trim_start_matches(['*', '_']).trim())
}

/// `Verification: …`, `**Notes**`: the start of another section.
fn is_label(text: &str) -> bool {
    let bold = text.starts_with("**") && text.ends_with("**");
    bold || text.split_once(':').is_some_and(|(word, _)| word.len() <= 32 && word.split_whitespace().count() <= 3)
}

fn is_nothing(text: &str) -> bool {
    let word = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '.' | '(' | ')'));
    ["", "none", "n/a", "-", "–", "—", "nothing", "no", "tbd", "?"].iter().any(|nothing| nothing.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_open_until_they_are_answered() {
        let table: [(&str, &[&str]); 14] = [
            ("Do it.\nVerification: `make`", &[]),
            ("Question: which port?", &["which port?"]),
            ("- **Question:** which port?\n  Answer: 8080", &[]),
            ("Question: which port? Answer: 8080", &[]),
            ("Question: which port?\nAnswer: TBD", &["which port?"]),
            ("Open questions: none", &[]),
            ("Open questions:\n- which port?\n- which host?\n  Answer: localhost\n", &["which port?"]),
            (
                "## Open Questions\n\n1. which port?\n2. ~~which host?~~\n3. [x] which user?\n\n## Notes\n- not this",
                &["which port?"],
            ),
            ("Open questions:\n- [ ] a?\n- [x] b?\n\nVerification:\n- `make`", &["a?"]),
            ("```\nQuestion: in code?\n```", &[]),
            ("Open questions:\n- a?\n\n  Answer: yes, by all means\n- b?", &["b?"]),
            ("Answer: 42", &[]),
            ("Question:", &[]),
            ("Questions\n- not under a label", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(open_questions(text), expected, "{text:?}");
        }
        let many = format!("Open questions:\n{}", "- x?\n".repeat(100_000));
        assert_eq!(open_questions(&many).len(), MOST);
        assert!(open_questions(&format!("Question: {}", "é".repeat(10_000)))[0].len() <= 300);
    }
}
