//! `feature_list.json`: an object with `features`, or a bare list of them.

use verdone_text::json::{Node, Value};
use verdone_text::position::Fault;

use crate::Format;
use crate::json_story::{read_all, text_member};
use crate::marker::Parsed;

pub(crate) fn recognises(root: &Node<'_>) -> bool {
    matches!(root.value, Value::List(_)) || (root.get("features").is_some() && root.get("userStories").is_none())
}

pub(crate) fn parse(text: &str, root: &Node<'_>) -> Parsed {
    let mut parsed = Parsed::new(Format::FeatureList);
    let features = root.get("features").unwrap_or(root);
    read_all(text, features, &mut parsed);
    let faults = &mut parsed.faults;
    parsed.title = text_member(root, "project", faults).or_else(|| text_member(root, "name", faults));
    parsed.branch = text_member(root, "branchName", faults).filter(|branch| !branch.trim().is_empty());
    parsed.context = text_member(root, "description", faults).unwrap_or_default();
    if let Some(node) = root.get("total_features")
        && let Value::Number(spelled) = &node.value
        && spelled.parse() != Ok(parsed.drafts.len())
    {
        let message = format!("`total_features` is {spelled}, but there are {}", parsed.drafts.len());
        parsed.warnings.push(Fault::new(node.span.start, message));
    }
    parsed
}
