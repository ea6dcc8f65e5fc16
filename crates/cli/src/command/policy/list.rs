//! `verdone policy list`: every rule that applies.

use serde_json::{Value, json};
use verdone_core::base::verdict::PolicyVerdict;
use verdone_core::policy::{OnGitState, OnScope, READ_BEFORE_EDIT, STORY_SCOPE, Source};

use super::{Context, Outcome, in_force, place};
use crate::args::PolicyListArgs;
use crate::terminal::{print, print_json, printable};

/// The verdict name of rules that only tell the agent something after the call.
const TELL: &str = "tell";

struct Row {
    name: String,
    verdict: &'static str,
    place: String,
    reason: String,
    alternative: String,
}

pub(super) fn run(args: &PolicyListArgs, context: &Context) -> Outcome {
    let policy = in_force(context)?;
    let settings = &policy.config.policy;
    let scope = match settings.on_scope() {
        OnScope::Enforced => PolicyVerdict::Deny.describe(),
        OnScope::Off | OnScope::Advisory => TELL,
    };
    let mut rows: Vec<Row> = policy
        .rules
        .iter()
        .map(|rule| Row {
            name: rule.name.to_string(),
            verdict: if rule.name == STORY_SCOPE && rule.source == Source::BuiltIn { scope } else { rule.verdict.describe() },
            place: place(&rule.source),
            reason: rule.reason.to_string(),
            alternative: rule.alternative.to_string(),
        })
        .collect();
    if settings.on_scope() == OnScope::Off {
        rows.retain(|row| row.name != STORY_SCOPE);
    }
    if settings.read_before_edit() {
        rows.push(Row {
            name: READ_BEFORE_EDIT.to_owned(),
            verdict: PolicyVerdict::Deny.describe(),
            place: place(&Source::BuiltIn),
            reason: "an existing file must be read before it is changed".to_owned(),
            alternative: "read it first, then change it".to_owned(),
        });
    }
    let git_state = match settings.git_state {
        OnGitState::Off => None,
        OnGitState::Report => Some(TELL),
        OnGitState::Deny => Some(PolicyVerdict::Deny.describe()),
    };
    rows.extend(git_state.map(|verdict| Row {
        name: "git-state".to_owned(),
        verdict,
        place: place(&Source::BuiltIn),
        reason: "a command must not switch branches or leave a merge or rebase in progress".to_owned(),
        alternative: "switch back to the branch, and finish or abort what is in progress".to_owned(),
    }));
    if args.json {
        print_json(&Value::Array(rows.iter().map(in_json).collect()))?;
    } else {
        let widest = |pick: fn(&Row) -> &String| rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0);
        let (names, places) = (widest(|row| &row.name), widest(|row| &row.place));
        let line = |row: &Row| format!("{:<5} {:<names$}  {:<places$}  {}\n", row.verdict, row.name, row.place, row.reason);
        print(&printable(&rows.iter().map(line).collect::<String>()))?;
    }
    Ok(0)
}

fn in_json(row: &Row) -> Value {
    json!({
        "name": row.name,
        "verdict": row.verdict,
        "place": row.place,
        "reason": row.reason,
        "alternative": row.alternative,
    })
}
