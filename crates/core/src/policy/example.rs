//! Checks a rule's own examples, so that a rule that does not do what its author expects is detected when it is loaded.

use verdone_text::pattern::name_matches;

use super::act::gather;
use super::matcher::Matcher;
use super::{PlanFile, PolicyContext, Protected, ProtectedRange, Rule, ToolCall, evaluate_prompt};
use crate::base::verdict::PolicyVerdict;

/// An example that contradicts its rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExampleProblem {
    #[error("rule `{rule}` does not match its example `{example}`")]
    DoesNotMatch { rule: String, example: String },
    #[error("rule `{rule}` matches `{example}`, but must not")]
    Matches { rule: String, example: String },
}

/// Checks every rule against its own examples.
pub fn check_examples(rules: &[Rule]) -> Vec<ExampleProblem> {
    let context = context();
    let mut problems = Vec::new();
    for rule in rules {
        let name = || rule.name.to_string();
        let fits = |example: &&str| fits_example(rule, example, &context);
        let missed = rule.examples.matches.iter().filter(|example| !fits(example));
        problems.extend(missed.map(|example| ExampleProblem::DoesNotMatch { rule: name(), example: example.to_owned() }));
        let wrong = rule.examples.not_matches.iter().filter(|example| fits(example));
        problems.extend(wrong.map(|example| ExampleProblem::Matches { rule: name(), example: example.to_owned() }));
    }
    problems
}

fn fits_example(rule: &Rule, example: &str, context: &PolicyContext) -> bool {
    if let Matcher::Prompt(_) = rule.matcher {
        let rule = Rule { verdict: PolicyVerdict::Deny, ..rule.clone() };
        let text = example.strip_prefix("Prompt: ").unwrap_or(example);
        return evaluate_prompt(text, context.mode, &[rule]).verdict == PolicyVerdict::Deny;
    }
    let call = call(example);
    let is_for = rule.tools.is_empty() || rule.tools.iter().any(|glob| name_matches(glob, &call.tool));
    is_for && rule.matcher.evaluate(&call, &gather(&call, context), context).is_some()
}

/// `Write: PATH`, `Edit: PATH` with the old and the new text on separate lines, `Tool: {json}`, or a Bash command.
fn call(example: &str) -> ToolCall {
    let named = example.split_once(": ").filter(|(tool, _)| {
        tool.starts_with(|c: char| c.is_ascii_uppercase()) && tool.bytes().all(|b| b.is_ascii_alphanumeric())
            || tool.starts_with("mcp__")
    });
    let Some((tool, rest)) = named else { return ToolCall::bash(example) };
    let (path, text) = rest.split_once('\n').unwrap_or((rest, ""));
    let input = match (tool, serde_json::from_str::<serde_json::Value>(rest), text.split_once('\n')) {
        (_, Ok(input), _) if input.is_object() => input,
        ("Bash", _, _) => serde_json::json!({ "command": rest }),
        ("Edit", _, Some((old, new))) => serde_json::json!({ "file_path": path, "old_string": old, "new_string": new }),
        _ => serde_json::json!({ "file_path": path, "content": text }),
    };
    ToolCall { tool: tool.to_owned(), input }
}

/// The context of the examples: a project at `/work/project` and a user with the home `/home/dev`.
pub(super) fn context() -> PolicyContext {
    let text = "# Plan\n\n- [ ] US-001: One\n  Verification: `make test`\n".to_owned();
    let (mark, check) = (text.find("[ ]").unwrap_or_default(), text.find("Verification").unwrap_or_default());
    let protected = vec![
        ProtectedRange { range: mark..mark + 3, what: Protected::Status },
        ProtectedRange { range: check..text.len() - 1, what: Protected::Checks },
    ];
    PolicyContext {
        root: "/work/project".to_owned(),
        cwd: "/work/project".to_owned(),
        home: Some("/home/dev".to_owned()),
        temp: vec!["/tmp".to_owned()],
        plans: vec![PlanFile { path: "/work/project/plan.md".to_owned(), text, protected }],
        env_files: ["/work/project/.env".to_owned()].into(),
        ..PolicyContext::default()
    }
}
