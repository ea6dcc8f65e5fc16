//! `verdone plan lint`.

use verdone_core::plan::{PlanError, Problem};
use verdone_report::plural;
use verdone_runtime::config_file::Flags;
use verdone_runtime::plan_file::{self, PlanFile, PlanFileError};

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
            let warnings = plan.document().lint();
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

fn line(name: &str, word: &str, problem: &Problem) -> String {
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{name}:{}:{}: {word}: {}{hint}\n", problem.line, problem.column, problem.message)
}

fn in_json(name: &str, stories: usize, errors: &[Problem], warnings: &[Problem]) -> serde_json::Value {
    serde_json::json!({ "plan": name, "stories": stories, "errors": errors, "warnings": warnings })
}
