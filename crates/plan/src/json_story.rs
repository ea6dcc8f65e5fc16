//! One story of a JSON plan. The fields are the same in every file format.

use verdone_text::json::{Member, Node, Value, read_again};
use verdone_text::position::{Fault, quote};

use crate::StoryId;
use crate::complexity::read_complexity;
use crate::details::Details;
use crate::kind::read_kind;
use crate::marker::{Draft, Marker, MarkerKind, Parsed, made_id, word_status};
use crate::scope;
use crate::{Criterion, Status, Story, ThinVec};

/// Reads every story of a list. Problems are added to `parsed`.
pub(crate) fn read_all<'a>(text: &'a str, list: &Node<'a>, parsed: &mut Parsed) {
    let Value::List(nodes) = &list.value else {
        parsed.faults.push(wrong_type(list, "the stories", "a list"));
        return;
    };
    for (index, node) in nodes.iter().enumerate() {
        let whole = match node.value {
            Value::Unread => read_again(text, node),
            Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Object(_) => {
                parsed.faults.push(wrong_type(node, "story", "an object"));
                continue;
            }
        };
        let node = match whole {
            Ok(node) => node,
            Err(fault) => {
                parsed.faults.push(fault);
                continue;
            }
        };
        let mut story = StoryReader { text, node: &node, faults: Vec::new(), warnings: Vec::new() };
        let draft = story.read(index + 1);
        parsed.faults.append(&mut story.faults);
        parsed.warnings.append(&mut story.warnings);
        parsed.drafts.extend(draft);
    }
}

/// A string member of the root. `None` if it is null; any other type is a fault.
pub(crate) fn text_member(root: &Node<'_>, key: &str, faults: &mut Vec<Fault>) -> Option<String> {
    let node = root.get(key)?;
    match &node.value {
        Value::Text(text) => Some(text.clone().into_owned()),
        Value::Null => None,
        Value::Bool | Value::Number(_) | Value::List(_) | Value::Object(_) | Value::Unread => {
            faults.push(wrong_type(node, key, "a string"));
            None
        }
    }
}

pub(crate) fn wrong_type(node: &Node<'_>, what: &str, wanted: &str) -> Fault {
    Fault::new(node.span.start, format!("`{what}` must be {wanted}, not {}", node.kind()))
}

struct StoryReader<'a> {
    text: &'a str,
    node: &'a Node<'a>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl StoryReader<'_> {
    fn read(&mut self, number: usize) -> Option<Draft> {
        self.refuse_doubles();
        let id = self.id();
        let description = self.text_of("description");
        let title = self.text_of("title").or_else(|| self.text_of("name")).filter(|title| !title.trim().is_empty());
        let Some(title) = title.or_else(|| description.as_deref().and_then(first_line)) else {
            let fault = Fault::new(self.node.span.start, "the story has neither a title nor a description");
            self.faults.push(fault.hint("add a `title`"));
            return None;
        };
        let mut details = Details::default();
        for key in ["acceptanceCriteria", "steps"] {
            details.criteria.extend(self.texts(key).into_iter().map(|(_, text)| Criterion { text, ticked: None }));
        }
        for (at, line) in self.texts("verification") {
            details.read_check(&line, at);
        }
        self.scope(&mut details);
        if let Some((at, text)) = self.texts("proof").into_iter().next() {
            details.read_proof(&text, at);
        }
        self.warnings.append(&mut details.warnings);
        let dependencies =
            ["dependsOn", "depends_on", "dependencies"].iter().flat_map(|key| self.texts(key)).collect::<Vec<_>>().into();
        let body = [description.filter(|text| *text != title), self.text_of("notes")];
        let body = body.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n");
        let priority = self.priority();
        let marker = self.marker()?;
        Some(Draft {
            story: Story {
                explicit_id: id.is_some(),
                id: StoryId(id.unwrap_or_else(|| made_id(number))),
                title: title.trim().to_owned(),
                body,
                status: Status::Open,
                criteria: details.criteria.into(),
                depends_on: ThinVec::EMPTY,
                priority,
                checks: details.checks.into(),
                maybe_checks: details.maybe_checks.into(),
                scope: details.scope.into(),
                proof: None,
                complexity: self.complexity(),
                kind: self.text_of("kind").and_then(|kind| read_kind(&kind)),
                line: 0,
            },
            at: self.node.span.start,
            markers: vec![marker],
            dependencies,
            proofs: details.proofs.into(),
        })
    }

    /// Rejects duplicate keys, because parsers differ in which one they use.
    fn refuse_doubles(&mut self) {
        const READ: [&str; 4] = ["id", "passes", "status", "priority"];
        for key in READ {
            let mut same = self.node.members().iter().filter(|member| member.key == key);
            if let (Some(_), Some(second)) = (same.next(), same.next()) {
                self.faults.push(Fault::new(second.key_span.start, format!("`{key}` appears twice")).hint("keep one of them"));
            }
        }
    }

    fn id(&mut self) -> Option<String> {
        let node = self.node.get("id")?;
        match &node.value {
            Value::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Value::Text(_) => {
                self.faults.push(Fault::new(node.span.start, "`id` is empty"));
                None
            }
            Value::Number(spelled) => Some((*spelled).to_owned()),
            Value::Null => None,
            Value::Bool | Value::List(_) | Value::Object(_) | Value::Unread => {
                self.faults.push(wrong_type(node, "id", "a string or a number"));
                None
            }
        }
    }

    fn text_of(&mut self, key: &str) -> Option<String> {
        text_member(self.node, key, &mut self.faults)
    }

    /// A list of strings or numbers, or a single one.
    fn texts(&mut self, key: &str) -> Vec<(usize, String)> {
        let Some(node) = self.node.get(key) else { return Vec::new() };
        let one = |node: &Node<'_>, faults: &mut Vec<Fault>| match &node.value {
            Value::Text(text) => Some((node.span.start, text.trim().to_owned())),
            Value::Number(spelled) => Some((node.span.start, (*spelled).to_owned())),
            Value::Null | Value::Bool | Value::List(_) | Value::Object(_) | Value::Unread => {
                faults.push(wrong_type(node, key, "a list of strings"));
                None
            }
        };
        match &node.value {
            Value::Null => Vec::new(),
            Value::List(nodes) => nodes.iter().filter_map(|node| one(node, &mut self.faults)).collect(),
            Value::Text(_) | Value::Number(_) | Value::Bool | Value::Object(_) | Value::Unread => {
                one(node, &mut self.faults).into_iter().collect()
            }
        }
    }

    /// A list of paths, or a text that contains some. Other tools may use this key differently, so nothing here makes a plan unusable.
    fn scope(&mut self, details: &mut Details) {
        let Some(node) = self.node.get("scope") else { return };
        let at = node.span.start;
        match &node.value {
            Value::Null => {}
            Value::Text(text) => details.read_scope(text, at),
            Value::List(nodes) if nodes.iter().all(|node| matches!(node.value, Value::Text(_))) => {
                let texts =
                    nodes.iter().filter_map(|node| if let Value::Text(text) = &node.value { Some(text.as_ref()) } else { None });
                details.add_scope(scope::list(texts), at);
            }
            Value::List(_) | Value::Bool | Value::Number(_) | Value::Object(_) | Value::Unread => {
                let fault = wrong_type(node, "scope", "a list of paths");
                details.warnings.push(fault.hint("it has no effect like this"));
            }
        }
    }

    /// Other tools may use this key differently, so an invalid complexity is ignored.
    fn complexity(&self) -> Option<u8> {
        match &self.node.get("complexity")?.value {
            Value::Text(text) => read_complexity(text),
            Value::Number(spelled) => read_complexity(spelled),
            Value::Null | Value::Bool | Value::List(_) | Value::Object(_) | Value::Unread => None,
        }
    }

    fn priority(&mut self) -> Option<u32> {
        let node = self.node.get("priority")?;
        let priority = match &node.value {
            Value::Null => return None,
            Value::Number(spelled) => whole(spelled),
            Value::Text(word) => match word.trim().to_ascii_lowercase().as_str() {
                "critical" => Some(0),
                "high" => Some(1),
                "medium" => Some(2),
                "low" => Some(3),
                digits => digits.parse().ok(),
            },
            Value::Bool | Value::List(_) | Value::Object(_) | Value::Unread => None,
        };
        if priority.is_none() {
            let hint = "1 is first; `critical`, `high`, `medium` and `low` are understood too";
            self.faults.push(wrong_type(node, "priority", "a whole number").hint(hint));
        }
        priority
    }

    fn marker(&mut self) -> Option<Marker> {
        if let Some(node) = self.node.get("passes") {
            if matches!(node.value, Value::Bool) {
                return Some(Marker::new(MarkerKind::Flag, node.span.start, node.span.len()));
            }
            self.faults.push(wrong_type(node, "passes", "true or false"));
            return None;
        }
        if let Some(node) = self.node.get("status") {
            let Value::Text(word) = &node.value else {
                self.faults.push(wrong_type(node, "status", "a string"));
                return None;
            };
            if word_status(word).is_none() {
                let fault = Fault::new(node.span.start, format!("the status {} is unknown", quote(word)));
                self.faults.push(fault.hint("write `open`, `in_progress` or `done`"));
                return None;
            }
            // A word written with escapes could not be read back from its bytes.
            if self.text[node.span.clone()] != format!("\"{word}\"") {
                self.faults.push(Fault::new(node.span.start, "write the status without escapes"));
                return None;
            }
            return Some(Marker::new(MarkerKind::Word, node.span.start, node.span.len()));
        }
        let last = self.node.members().last()?;
        Some(Marker::new(MarkerKind::Missing { lead: Box::new(self.lead_after(last)) }, last.node.span.end, 0))
    }

    /// A comma and the key `passes`, with the same whitespace as the previous member.
    fn lead_after(&self, last: &Member<'_>) -> String {
        let before = &self.text[self.node.span.start..last.key_span.start];
        let space = &before[before.trim_end().len()..];
        let colon = &self.text[last.key_span.end..last.node.span.start];
        format!(",{space}\"passes\"{colon}")
    }
}

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// The value of a whole number, however it is written (`3`, `3.0`, `30e-1`).
#[expect(clippy::cast_sign_loss, reason = "the range and the fraction are checked first")]
fn whole(spelled: &str) -> Option<u32> {
    let value: f64 = spelled.parse().ok()?;
    (value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0).then_some(value as u32)
}
