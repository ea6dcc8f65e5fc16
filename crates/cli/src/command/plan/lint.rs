//! `verdone plan lint`.

use std::path::Path;

use verdone_core::check::CommandSpec;
use verdone_core::plan::DIALECT;
use verdone_plan::{Plan, PlanError, Problem};
use verdone_report::plural;
use verdone_runtime::process::program_exists;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::plan_file::{self, PlanFile, PlanFileError, resolve_checks};

use super::{Context, Outcome};
use crate::args::PlanLintArgs;
use crate::terminal::{print, print_json, printable};

pub(super) fn run(args: &PlanLintArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let location = plan_file::find(&context.plan_request(&project, &settings, args.plan.as_deref()))?;
    let name = location.plan.display().to_string();
    match PlanFile::open(location) {
        Ok(plan) => {
            let mut warnings = plan.document().lint(&DIALECT);
            warnings.extend(prose(plan.plan(), &project.root));
            warnings.sort_by_key(|problem| (problem.line, problem.column));
            let stories = plan.plan().stories.len();
            if args.json {
                print_json(&in_json(&name, stories, &[], &warnings))?;
            } else {
                let list: String = warnings.iter().map(|problem| line(&name, "warning", problem)).collect();
                let stories = plural(stories, "story", "stories");
                let warnings = plural(warnings.len(), "warning", "warnings");
                print(&printable(&format!("{list}{name}: {stories}, {warnings}\n")))?;
            }
            Ok(0)
        }
        Err(PlanFileError::Plan(PlanError { name, problems })) if args.json => {
            print_json(&in_json(&name, 0, &problems, &[]))?;
            Ok(2)
        }
        Err(error) => Err(error.into()),
    }
}

/// Lines under Verification that look like commands but name no program on this machine: they check nothing.
fn prose(plan: &Plan, root: &Path) -> Vec<Problem> {
    let path = std::env::var_os("PATH");
    let mut problems = Vec::new();
    for story in &plan.stories {
        let checks = resolve_checks(story, |program| program_exists(program, path.as_deref(), root));
        let unused = story.maybe_checks.iter().filter(|line| !checks.contains(&CommandSpec::Shell((*line).clone())));
        problems.extend(unused.map(|line| Problem {
            line: story.line,
            column: 1,
            message: format!("\"{line}\" is not a command here, so it does not check `{}`", story.id),
            hint: Some("put the command in backticks".to_owned()),
        }));
    }
    problems
}

fn line(name: &str, word: &str, problem: &Problem) -> String {
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{name}:{}:{}: {word}: {}{hint}\n", problem.line, problem.column, problem.message)
}

fn in_json(name: &str, stories: usize, errors: &[Problem], warnings: &[Problem]) -> serde_json::Value {
    serde_json::json!({ "plan": name, "stories": stories, "errors": errors, "warnings": warnings })
}
