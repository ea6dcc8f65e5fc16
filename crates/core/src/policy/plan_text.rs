//! Protects the plan's text: only Verdone may change status marks and checks, not the agent.

use std::ops::Range;

use verdone_plan::Document;

use super::act::{Access, Acts};
use super::matcher::{Certainty, Hit};
use super::path::{Place, fold, pattern_takes};
use super::{PolicyContext, ToolCall};

/// A plan on disk, with the parts that an agent must not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanFile {
    /// Absolute.
    pub path: String,
    pub text: String,
    pub protected: Vec<ProtectedRange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedRange {
    pub range: Range<usize>,
    pub what: Protected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protected {
    /// A mark that says whether a story is done.
    Status,
    /// Verification, acceptance criteria, steps.
    Checks,
}

impl PlanFile {
    /// A plan with its marks and the lines of its criteria and checks.
    pub fn from_path(path: String, document: &Document) -> Self {
        let text = document.text();
        let mut protected: Vec<ProtectedRange> =
            document.marks().map(|range| ProtectedRange { range, what: Protected::Status }).collect();
        let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let start_of = |line: u32| starts.get((line as usize).saturating_sub(1)).copied().unwrap_or(text.len());
        let stories = &document.plan().stories;
        for (n, story) in stories.iter().enumerate() {
            let from = start_of(story.line);
            let to = stories.get(n + 1).map_or(text.len(), |next| start_of(next.line)).max(from);
            let criteria = story.criteria.iter().map(|criterion| &criterion.text);
            for needle in criteria.chain(&story.checks).chain(&story.maybe_checks) {
                let part = text.get(from..to).unwrap_or_default();
                let Some(at) = find(part, needle) else { continue };
                let line = part[..at.start].rfind('\n').map_or(0, |end| end + 1);
                protected.push(ProtectedRange { range: from + line..from + at.end, what: Protected::Checks });
            }
        }
        Self { path, text: text.to_owned(), protected }
    }
}

/// Finds the text literally or in its JSON-escaped form.
fn find(text: &str, needle: &str) -> Option<Range<usize>> {
    let escaped = serde_json::Value::from(needle).to_string();
    let escaped = escaped.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(needle);
    [needle, escaped].into_iter().filter(|one| !one.trim().is_empty()).find_map(|one| text.find(one).map(|at| at..at + one.len()))
}

/// Whether a call changes a protected part of a plan.
pub(super) fn plan_edit(call: &ToolCall, acts: &Acts, context: &PolicyContext, what: Protected) -> Option<Hit> {
    acts.files.iter().filter(|file| file.access != Access::Read).find_map(|file| {
        let place = file.place.as_ref()?;
        let plan = context.plans.iter().find(|plan| is_plan(place, plan, file.access, context))?;
        let changes = match &file.command {
            // The output of a shell command is unknown before it runs; status marks are the more likely target.
            Some(_) => what == Protected::Status,
            None => changed(call, plan).iter().any(|range| touches(plan, range, what)),
        };
        let certainty = if file.certain { Certainty::Yes } else { Certainty::Maybe };
        changes.then(|| Hit { certainty, command: file.command.clone(), path: Some(place.path.clone()) })
    })
}

fn is_plan(place: &Place, plan: &PlanFile, access: Access, context: &PolicyContext) -> bool {
    let path = fold(&plan.path, context.ignore_case);
    let folded = place.folded(context);
    match access {
        Access::Write | Access::Read => folded == path,
        Access::DeleteAll => folded == path || path.starts_with(&format!("{folded}/")) || pattern_takes(&folded, &path),
    }
}

fn touches(plan: &PlanFile, changed: &Range<usize>, what: Protected) -> bool {
    let inside = |part: &Range<usize>| {
        if changed.is_empty() {
            part.start < changed.start && changed.start < part.end
        } else {
            part.start < changed.end && changed.start < part.end
        }
    };
    plan.protected.iter().any(|part| part.what == what && inside(&part.range))
}

/// The bytes of the plan that a file tool would change.
fn changed(call: &ToolCall, plan: &PlanFile) -> Vec<Range<usize>> {
    if let Some(content) = call.text("content") {
        return changed_by_write(plan, content);
    }
    let single = [&call.input];
    let edits: Vec<&serde_json::Value> = match call.input.get("edits").and_then(serde_json::Value::as_array) {
        Some(edits) => edits.iter().collect(),
        None => single.to_vec(),
    };
    let mut out = Vec::new();
    for edit in edits {
        let text = |field: &str| edit.get(field).and_then(serde_json::Value::as_str);
        let (Some(old), Some(new)) = (text("old_string"), text("new_string")) else {
            // An unknown format may change anything.
            out.push(0..plan.text.len());
            continue;
        };
        if old.is_empty() {
            out.push(0..plan.text.len());
            continue;
        }
        let (start, end) = difference(old, new);
        out.extend(plan.text.match_indices(old).map(|(at, _)| at + start..at + end));
    }
    out
}

/// For a new text of the whole file: a protected part is unchanged if its line still exists, in the same order.
fn changed_by_write(plan: &PlanFile, content: &str) -> Vec<Range<usize>> {
    let mut from = 0;
    let mut out = Vec::new();
    for part in &plan.protected {
        let start = plan.text.get(..part.range.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let end =
            plan.text.get(part.range.end..).and_then(|after| after.find('\n')).map_or(plan.text.len(), |at| part.range.end + at);
        let line = plan.text.get(start..end).unwrap_or_default();
        match content.get(from..).and_then(|rest| rest.find(line)) {
            // Two parts may share a line, so continue at the start of the line.
            Some(at) => from += at,
            None => out.push(part.range.clone()),
        }
    }
    out
}

/// The range in which two texts differ, in bytes of the first.
fn difference(old: &str, new: &str) -> (usize, usize) {
    let start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let same_end = old.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - start;
    (start, old.len() - same_end.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DIALECT;

    fn guarded(name: &str, text: &str) -> Vec<(Protected, String)> {
        let document = Document::parse(name, text.as_bytes(), &DIALECT).unwrap();
        let plan = PlanFile::from_path(format!("/p/{name}"), &document);
        plan.protected.iter().map(|part| (part.what, plan.text[part.range.clone()].to_owned())).collect()
    }

    #[test]
    fn marks_criteria_and_checks_of_a_plan_are_guarded_and_its_prose_is_not() {
        let parts = guarded(
            "plan.md",
            "# Plan\n\nProse.\n\n- [ ] US-001: One\n  - Acceptance: it works\n  - Verification: `make test`\n",
        );
        assert!(parts.contains(&(Protected::Status, " ".to_owned())), "{parts:?}");
        assert!(parts.contains(&(Protected::Checks, "  - Verification: `make test".to_owned())), "{parts:?}");
        assert!(parts.iter().any(|(_, text)| text.ends_with("it works")), "{parts:?}");
        assert!(!parts.iter().any(|(_, text)| text.contains("Prose")), "{parts:?}");
    }

    #[test]
    fn a_plan_in_json_is_guarded_too() {
        let text = "{\"userStories\": [{\"id\": \"US-001\", \"title\": \"One\", \"acceptanceCriteria\": [\"says \\\"hi\\\"\"],\n\"passes\": false}]}\n";
        let parts = guarded("prd.json", text);
        assert!(parts.contains(&(Protected::Status, "false".to_owned())), "{parts:?}");
        assert!(parts.iter().any(|(what, text)| *what == Protected::Checks && text.ends_with("says \\\"hi\\\"")), "{parts:?}");
    }
}
