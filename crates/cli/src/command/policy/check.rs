//! `verdone policy check`: what the policy decides for one call, and why.

use std::path::Path;

use serde_json::{Value, json};
use verdone_core::base::id::StoryId;
use verdone_core::hook::Briefing;
use verdone_core::policy::{Decision, Mode, OnScope, STORY_SCOPE, Scope, ToolCall, ToolKind, evaluate, kind_of};
use verdone_runtime::guard::{CallContext, StoryFile, facts};

use super::super::plan::open;
use super::{Context, Outcome, in_force, place};
use crate::args::PolicyCheckArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable};

pub(super) fn run(args: &PolicyCheckArgs, context: &Context) -> Outcome {
    let policy = in_force(context)?;
    let call = call(args)?;
    let mode = if args.interactive { Mode::Interactive } else { Mode::Run };
    let cwd = context.start.to_string_lossy();
    let story = StoryFile::open(&policy.home.root, mode);
    let mut facts =
        facts(&policy.home, &policy.config, &CallContext { mode, cwd: &cwd, call: Some(&call), deciding: true, story: &story });
    let on_scope = policy.config.policy.on_scope();
    if let Some(id) = args.story.as_ref().filter(|_| on_scope != OnScope::Off) {
        facts.scope = scope_of(id, context)?;
    }
    let enforced = evaluate(&call, &facts, &policy.rules);
    let by_scope = enforced.rule.as_ref().is_some_and(|(name, _)| name == STORY_SCOPE);
    let advice = (by_scope && on_scope == OnScope::Advisory).then(|| format!("{}; the agent is warned once", enforced.reason));
    if on_scope != OnScope::Enforced {
        facts.scope = None;
    }
    let decision = evaluate(&call, &facts, &policy.rules);
    if args.json {
        print_json(&in_json(&decision, advice.as_deref()))?;
    } else {
        print(&printable(&in_words(args, &decision, advice.as_deref())))?;
    }
    Ok(0)
}

/// The scope of a story in the plan.
fn scope_of(id: &str, context: &Context) -> Result<Option<Scope>, CliError> {
    let (project, plan) = open(None, context)?;
    let story = plan.plan().story_meant(&StoryId::from(id));
    let story = story.ok_or_else(|| CliError::usage(format!("the plan has no story {id}")).hint("verdone plan show"))?;
    let folder = project.root.strip_prefix(&project.git_top).unwrap_or(Path::new(""));
    let briefing = Briefing::for_story(story, std::iter::empty(), &folder.to_string_lossy());
    Ok(briefing.scope(true))
}

fn call(args: &PolicyCheckArgs) -> Result<ToolCall, CliError> {
    let object = serde_json::from_str::<Value>(&args.input).ok().filter(Value::is_object);
    let input = match (kind_of(&args.tool), object) {
        (_, Some(input)) => input,
        (ToolKind::Shell, None) => json!({ "command": args.input }),
        (ToolKind::Write, None) => json!({ "file_path": args.input, "content": "" }),
        (ToolKind::Read, None) => json!({ "file_path": args.input }),
        (ToolKind::Agent | ToolKind::Other, None) => {
            let message = format!("the input of {} must be a JSON object", args.tool);
            return Err(CliError::usage(message).hint(format!("verdone policy check --tool {} '{{}}'", args.tool)));
        }
    };
    Ok(ToolCall { tool: args.tool.clone(), input })
}

fn in_words(args: &PolicyCheckArgs, decision: &Decision, advice: Option<&str>) -> String {
    let mut text = format!("{}: {}\n", decision.verdict.describe(), args.input);
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<12} {value}\n"));
        }
    };
    match &decision.rule {
        Some((name, source)) => row("rule", &format!("{name} ({})", place(source))),
        None => row("rule", "none matches; the tool table decides"),
    }
    row("command", decision.command.as_ref().map_or("", |found| &found.text));
    row("path", decision.path.as_deref().unwrap_or_default());
    row("reason", &decision.reason);
    row("instead", &decision.alternative);
    row("scope", advice.unwrap_or_default());
    row("unknown", decision.unknown.as_deref().unwrap_or_default());
    text
}

fn in_json(decision: &Decision, advice: Option<&str>) -> Value {
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
        "scope": advice,
    })
}
