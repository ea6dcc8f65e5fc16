//! `verdone policy list`: every rule that applies.

use serde_json::{Value, json};
use verdone_core::policy::{READ_BEFORE_EDIT, Source};
use verdone_core::verdict::PolicyVerdict;

use super::{Context, Outcome, in_force, place};
use crate::args::PolicyListArgs;
use crate::terminal::{print, print_json, printable};

struct Row {
    name: String,
    verdict: PolicyVerdict,
    place: String,
    reason: String,
    alternative: String,
}

pub(super) fn run(args: &PolicyListArgs, context: &Context) -> Outcome {
    let policy = in_force(context)?;
    let mut rows: Vec<Row> = policy
        .rules
        .iter()
        .map(|rule| Row {
            name: rule.name.to_string(),
            verdict: rule.verdict,
            place: place(&rule.source),
            reason: rule.reason.to_string(),
            alternative: rule.alternative.to_string(),
        })
        .collect();
    if policy.config.policy.read_before_edit() {
        rows.push(Row {
            name: READ_BEFORE_EDIT.to_owned(),
            verdict: PolicyVerdict::Deny,
            place: place(&Source::BuiltIn),
            reason: "a file that exists is read before it is changed".to_owned(),
            alternative: "read it first, then change it".to_owned(),
        });
    }
    if args.json {
        print_json(&Value::Array(rows.iter().map(in_json).collect()))?;
    } else {
        let widest = |pick: fn(&Row) -> &String| rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0);
        let (names, places) = (widest(|row| &row.name), widest(|row| &row.place));
        let line =
            |row: &Row| format!("{:<5} {:<names$}  {:<places$}  {}\n", row.verdict.words(), row.name, row.place, row.reason);
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
