//! `prd.json`: an object with `userStories` (or `stories`), each with `passes` or `status`.

use verdone_text::json::{Node, Value};
use verdone_text::position::Fault;

use crate::Format;
use crate::json_story::{read_all, text_member};
use crate::marker::Parsed;

pub(crate) fn parse(text: &str, root: &Node<'_>) -> Result<Parsed, Fault> {
    if !matches!(root.value, Value::Object(_)) {
        let fault = Fault::new(root.span.start, format!("a JSON plan is an object or a list, not {}", root.kind()));
        return Err(fault.hint("write an object with `userStories`, or a list of features"));
    }
    let mut lists = ["userStories", "stories"].iter().filter_map(|key| root.get(key));
    let Some(stories) = lists.next() else {
        let fault = Fault::new(root.span.start, "this file has neither `userStories` nor `features`");
        return Err(fault.hint("a JSON plan has its stories in `userStories`, `stories` or `features`"));
    };
    let mut parsed = Parsed::new(Format::PrdJson);
    if let Some(second) = lists.next() {
        parsed
            .faults
            .push(Fault::new(second.span.start, "this file has both `userStories` and `stories`").hint("keep one of them"));
    }
    let faults = &mut parsed.faults;
    parsed.title = text_member(root, "project", faults).or_else(|| text_member(root, "name", faults));
    parsed.branch = text_member(root, "branchName", faults).filter(|branch| !branch.trim().is_empty());
    let texts = ["description", "overview"].iter().filter_map(|key| text_member(root, key, faults));
    parsed.context = texts.collect::<Vec<_>>().join("\n\n");
    for key in ["goals", "nonGoals", "rules", "qualityGates"] {
        append_list(root, key, &mut parsed.context);
    }
    read_all(text, stories, &mut parsed);
    Ok(parsed)
}

fn append_list(root: &Node<'_>, key: &str, context: &mut String) {
    let Some(Node { value: Value::List(nodes), .. }) = root.get(key) else { return };
    let texts = nodes.iter().filter_map(|node| match &node.value {
        Value::Text(text) => Some(format!("\n- {text}")),
        Value::Null | Value::Bool | Value::Number(_) | Value::List(_) | Value::Object(_) | Value::Unread => None,
    });
    let texts: String = texts.collect();
    if !texts.is_empty() {
        let gap = if context.is_empty() { "" } else { "\n\n" };
        context.extend([gap, key, ":", &texts]);
    }
}
