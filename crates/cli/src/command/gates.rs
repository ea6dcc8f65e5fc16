//! `verdone gates`: the checks that every story must pass.

use serde_json::{Value, json};
use verdone_core::check::{Check, CheckOrigin, CheckRun};
use verdone_runtime::verify::on_demand::{self, Listed};

use super::{Context, Outcome};
use crate::args::GatesArgs;
use crate::terminal::{print, print_json, printable_line, say};

const HEADINGS: [&str; 5] = ["Gate", "Stage", "When", "Result", "Command"];

pub(super) fn run(args: &GatesArgs, context: &Context) -> Outcome {
    let Listed { tree, gates } = on_demand::gates(&context.start)?;
    if args.json {
        let gates: Vec<Value> = gates.iter().map(|(gate, known)| in_json(gate, known.as_ref())).collect();
        print_json(&json!({ "tree": tree, "gates": gates }))?;
        return Ok(0);
    }
    if gates.is_empty() {
        say("no gates: add a [[gate]] to .verdone/config.toml (verdone init proposes some)\n");
        return Ok(0);
    }
    let rows: Vec<[String; 5]> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(gates.iter().map(|(gate, known)| row(gate, known.as_ref()))).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(widest);
    let mut out = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            out.push_str(&format!("{cell:<width$}  "));
        }
        out.push_str(&format!("{}\n", row[4]));
    }
    print(&out)?;
    Ok(0)
}

fn row(gate: &Check, known: Option<&CheckRun>) -> [String; 5] {
    let advisory = if gate.terms.advisory { " (advisory)" } else { "" };
    let result = known.map_or_else(|| "-".to_owned(), |run| run.outcome.describe());
    [format!("{}{advisory}", gate.name), stage(gate).to_owned(), gate.terms.when.to_string(), result, gate.command.display()]
        .map(|cell| printable_line(&cell))
}

fn stage(gate: &Check) -> &str {
    match &gate.origin {
        CheckOrigin::Gate(stage) => stage.name(),
        CheckOrigin::Story | CheckOrigin::AgentTest => "",
    }
}

fn in_json(gate: &Check, known: Option<&CheckRun>) -> Value {
    json!({
        "name": gate.name,
        "stage": stage(gate),
        "command": gate.command,
        "blocking": !gate.terms.advisory,
        "when": gate.terms.when,
        "timeout": gate.timeout,
        "result": known,
    })
}
