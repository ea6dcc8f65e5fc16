//! `verdone policy check`: what the policy says about one call, and why.

use serde_json::{Value, json};
use verdone_core::policy::{Decision, Mode, ToolCall, ToolKind, evaluate, kind_of};
use verdone_runtime::hook::{Asked, facts};

use super::{Context, Outcome, in_force, place};
use crate::args::PolicyCheckArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable};

pub(super) fn run(args: &PolicyCheckArgs, context: &Context) -> Outcome {
    let policy = in_force(context)?;
    let call = call(args)?;
    let mode = if args.interactive { Mode::Interactive } else { Mode::Run };
    let cwd = context.start.to_string_lossy();
    let facts = facts(&policy.home, &policy.config, &Asked { mode, cwd: &cwd, call: Some(&call) });
    let decision = evaluate(&call, &facts, &policy.rules);
    if args.json {
        print_json(&in_json(&decision))?;
    } else {
        print(&printable(&in_words(args, &decision)))?;
    }
    Ok(0)
}

fn call(args: &PolicyCheckArgs) -> Result<ToolCall, CliError> {
    let object = serde_json::from_str::<Value>(&args.input).ok().filter(Value::is_object);
    let input = match (kind_of(&args.tool), object) {
        (_, Some(input)) => input,
        (ToolKind::Shell, None) => json!({ "command": args.input }),
        (ToolKind::Write, None) => json!({ "file_path": args.input, "content": "" }),
        (ToolKind::Read, None) => json!({ "file_path": args.input }),
        (ToolKind::Agent | ToolKind::Other, None) => {
            let message = format!("the input of {} has to be a JSON object", args.tool);
            return Err(CliError::usage(message).hint(format!("verdone policy check --tool {} '{{}}'", args.tool)));
        }
    };
    Ok(ToolCall { tool: args.tool.clone(), input })
}

fn in_words(args: &PolicyCheckArgs, decision: &Decision) -> String {
    let mut text = format!("{}: {}\n", decision.verdict.words(), args.input);
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<12} {value}\n"));
        }
    };
    match &decision.rule {
        Some((name, source)) => row("rule", &format!("{name} ({})", place(source))),
        None => row("rule", "none fits; the table of tools decides"),
    }
    row("command", decision.command.as_ref().map_or("", |found| &found.text));
    row("path", decision.path.as_deref().unwrap_or_default());
    row("reason", &decision.reason);
    row("instead", &decision.alternative);
    row("unknown", decision.unknown.as_deref().unwrap_or_default());
    text
}

fn in_json(decision: &Decision) -> Value {
    json!({
        "verdict": decision.verdict,
        "rule": decision.rule.as_ref().map(|(name, _)| name),
        "place": decision.rule.as_ref().map(|(_, source)| place(source)),
        "command": decision.command.as_ref().map(|found| &found.text),
        "path": decision.path,
        "reason": decision.reason,
        "alternative": decision.alternative,
        "unknown": decision.unknown,
        "needs_human": decision.needs_human,
    })
}
