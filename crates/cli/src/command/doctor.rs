//! `verdone doctor`: everything that a run needs, good or bad.

use verdone_runtime::preflight::{Finding, Health};
use verdone_runtime::run::{Ready, RunRequest};

use super::{Context, Outcome};
use crate::args::DoctorArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{Style, print, printable};

pub(super) fn run(args: &DoctorArgs, context: &Context) -> Outcome {
    let findings = examine(context)?;
    let worst = findings.iter().map(|finding| finding.health).max().unwrap_or(Health::Good);
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|finding| {
                serde_json::json!({
                    "what": finding.what,
                    "health": word(finding.health).trim(),
                    "message": finding.message,
                    "hints": finding.hints,
                })
            })
            .collect();
        print(&format!("{:#}\n", serde_json::json!(list)))?;
    } else {
        let lines: String = findings.iter().map(|finding| line(finding, context)).collect();
        print(&lines)?;
    }
    Ok(if worst == Health::Bad { Kind::Usage.exit_code() } else { 0 })
}

/// A fault that keeps us from looking further is a finding too.
fn examine(context: &Context) -> Result<Vec<Finding>, CliError> {
    let project = context.project()?;
    let settings = context.settings(&project, &verdone_runtime::config_file::Flags::default())?;
    let plan = context.plan_request(&project, &settings, None);
    let config = settings.resolved.config;
    let mut findings =
        vec![Finding::good("config", if settings.has_file { ".verdone/config.toml" } else { "defaults, no file" })];
    let request = RunRequest { project, plan, config, only: None, red_baseline: false, unverified: false };
    let ready = Ready::read(request)?;
    findings.push(Finding::good("plan", format!("{}, {} stories", ready.plan_name(), ready.plan.plan().stories.len())));
    findings.extend(ready.examine()?);
    Ok(findings)
}

fn word(health: Health) -> &'static str {
    match health {
        Health::Good => "good   ",
        Health::Warning => "warning",
        Health::Bad => "bad    ",
    }
}

fn line(finding: &Finding, context: &Context) -> String {
    let paint = context.terminal.out;
    let word = match finding.health {
        Health::Good => paint.style(Style::Dim, word(finding.health)),
        Health::Warning => paint.style(Style::Hint, word(finding.health)),
        Health::Bad => paint.style(Style::Error, word(finding.health)),
    };
    let mut out = format!("{word}  {:<10} {}\n", finding.what, printable(&finding.message));
    for hint in &finding.hints {
        out.push_str(&format!("{:>20} hint: {}\n", "", printable(hint)));
    }
    out
}
