//! `verdone agents`: which agents can be used here, and how much of each Verdone sees.

use serde_json::{Value, json};
use verdone_core::agent::{AgentKind, Level};
use verdone_core::config::Config;
use verdone_runtime::agent::check_agent;
use verdone_runtime::base::finding::{Finding, Health};
use verdone_runtime::project::config_file::Flags;

use super::{Context, Outcome};
use crate::args::AgentsArgs;
use crate::terminal::{print, print_json, printable_line};

const HEADINGS: [&str; 7] = ["Agent", "Guard", "Context", "Cost", "Resume", "Stop hook", "Here"];

pub(super) fn run(args: &AgentsArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let config = context.settings(&project, &Flags::default())?.resolved.config;
    let found: Vec<(AgentKind, Finding)> = AgentKind::ALL.map(|kind| (kind, check(kind, &config, context))).into();
    if args.json {
        let agents: Vec<Value> = found.iter().map(|(kind, finding)| in_json(*kind, finding, &config)).collect();
        print_json(&json!(agents))?;
        return Ok(0);
    }
    let rows: Vec<[String; 7]> = std::iter::once(HEADINGS.map(str::to_owned))
        .chain(found.iter().map(|(kind, finding)| row(*kind, finding, &config)))
        .collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(widest);
    let mut out = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            out.push_str(&format!("{cell:<width$}  "));
        }
        out.push_str(&format!("{}\n", row[6]));
    }
    print(&out)?;
    Ok(0)
}

/// Whether this agent could be started, with the settings of the project.
fn check(kind: AgentKind, config: &Config, context: &Context) -> Finding {
    let mut config = config.clone();
    config.agent.name = kind;
    check_agent(&config, &context.start)
}

fn row(kind: AgentKind, finding: &Finding, config: &Config) -> [String; 7] {
    let Level { guard, context, cost, resume, stop_hook } = kind.level();
    let chosen = if config.agent.name == kind { " (chosen)" } else { "" };
    let yes = |is: bool| (if is { "yes" } else { "no" }).to_owned();
    let name = format!("{}{chosen}", kind.name());
    [name, guard.to_string(), context.to_string(), cost.to_string(), yes(resume), yes(stop_hook), finding.message.clone()]
        .map(|cell| printable_line(&cell))
}

fn in_json(kind: AgentKind, finding: &Finding, config: &Config) -> Value {
    json!({
        "name": kind.name(),
        "chosen": config.agent.name == kind,
        "usable": finding.health != Health::Bad,
        "message": finding.message,
        "level": kind.level(),
    })
}
