//! `verdone init`.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde_json::json;
use verdone_core::config::detect::{Detection, Proposal};
use verdone_runtime::project::init::{self, Written};

use super::{Context, Outcome};
use crate::args::InitArgs;
use crate::error::CliError;
use crate::terminal::{Style, print, printable, say};

pub(super) fn run(args: &InitArgs, context: &Context) -> Outcome {
    let above = context.project()?;
    let root = above.start.as_path();
    init::check_free(root, args.force)?;
    if above.root != root && above.config_path.is_file() {
        say(&format!("note: {} already has a config; this one will apply here and below\n", above.root.display()));
    }
    let mut found = init::detect_project(root)?;
    if context.terminal.can_ask && !args.json {
        found.gates = ask(found.gates, &mut io::stdin().lock(), &mut io::stderr().lock())?;
    }
    let written = init::write(root, found.plan.as_deref(), &found.gates, args.force)?;
    let text = if args.json { in_json(&written, &found) } else { in_words(root, &written, &found, context) };
    print(&text)?;
    Ok(0)
}

/// Asks about each gate; an empty answer means yes. End of input stops `init` before anything is written.
fn ask(gates: Vec<Proposal>, answers: &mut impl BufRead, questions: &mut impl Write) -> Result<Vec<Proposal>, CliError> {
    let mut taken = Vec::new();
    for proposal in gates {
        let gate = &proposal.gate;
        let question = format!("{} Gate {} ({}): {}", proposal.because, gate.name, gate.stage.name(), gate.command.display());
        loop {
            write!(questions, "{}\n  Add it? [Y/n] ", printable(&question))?;
            questions.flush()?;
            let mut answer = String::new();
            if answers.read_line(&mut answer)? == 0 {
                return Err(CliError::error("input ended at a question: nothing was written"));
            }
            match answer.trim().to_lowercase().as_str() {
                "" | "y" | "yes" => taken.push(proposal),
                "n" | "no" => {}
                _ => continue,
            }
            break;
        }
    }
    Ok(taken)
}

fn in_words(root: &Path, written: &Written, found: &Detection, context: &Context) -> String {
    let paint = context.terminal.out;
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut lines = vec![format!("Wrote {} and {}.", name(&written.config), name(&written.gitignore))];
    if let Some(backup) = &written.backup {
        lines.push(format!("The previous config is now {}.", name(backup)));
    }
    if !written.scripts.is_empty() {
        lines.push("Lifecycle scripts are in .verdone/hooks; they do nothing until you fill them in.".to_owned());
    }
    if found.gates.is_empty() {
        lines.push("No gate was added: add a [[gate]] to the config, or pass --check to `verdone run`.".to_owned());
    } else {
        lines.push(paint.style(Style::Heading, "Gates"));
        let widest = found.gates.iter().map(|proposal| proposal.gate.name.chars().count()).max().unwrap_or(0);
        lines.extend(found.gates.iter().map(|proposal| {
            let gate = &proposal.gate;
            printable(&format!("  {:<11}  {:<widest$}  {}", gate.stage.name(), gate.name, gate.command.display()))
        }));
    }
    let conventions = match found.ecosystems.as_slice() {
        [] => String::new(),
        names => format!(", by the conventions of {}", names.join(", ")),
    };
    lines.push(format!(
        "Protected: tests and configuration{conventions}; `verdone protect` lists the files, [protect] changes that."
    ));
    match &found.plan {
        Some(plan) => lines.push(format!("Plan: {}", printable(plan))),
        None => {
            lines.push("No plan was found: name one with `verdone run PLAN`, or create one with `verdone plan new`.".to_owned());
        }
    }
    if !found.other_plans.is_empty() {
        lines.push(format!("Other files that look like plans: {}", printable(&found.other_plans.join(", "))));
    }
    lines.extend(found.notes.iter().map(|note| format!("Note: {}", printable(note))));
    lines.push(
        "Next: set the agent's command under [agent.command], then `verdone doctor` and `verdone run --dry-run`.".to_owned(),
    );
    lines.join("\n") + "\n"
}

fn in_json(written: &Written, found: &Detection) -> String {
    let gate = |proposal: &Proposal| {
        let gate = &proposal.gate;
        json!({ "name": gate.name, "stage": gate.stage, "command": gate.command, "because": proposal.because })
    };
    let value = json!({
        "config": written.config,
        "gitignore": written.gitignore,
        "backup": written.backup,
        "scripts": written.scripts,
        "plan": found.plan,
        "other_plans": found.other_plans,
        "gates": found.gates.iter().map(gate).collect::<Vec<_>>(),
        "notes": found.notes,
        "ecosystems": found.ecosystems,
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::check::{CommandSpec, Gate, Stage};

    fn proposals() -> Vec<Proposal> {
        ["a", "b", "c"]
            .map(|name| Proposal {
                gate: Gate::new(name, Stage::Quality, CommandSpec::Shell(name.into())),
                because: "Found it.".into(),
            })
            .to_vec()
    }

    #[test]
    fn answers_choose_and_silence_means_yes() {
        for (answers, taken) in [("\n\n\n", "abc"), ("n\ny\nNO\n", "b"), ("what?\ny\nn\nYes\n", "ac"), ("y\ny\nn", "ab")] {
            let mut questions = Vec::new();
            let gates = ask(proposals(), &mut answers.as_bytes(), &mut questions).unwrap();
            assert_eq!(gates.iter().map(|proposal| proposal.gate.name.as_str()).collect::<String>(), taken, "{answers:?}");
            assert!(String::from_utf8(questions).unwrap().contains("Found it. Gate a (quality): a\n  Add it? [Y/n] "));
        }
    }

    #[test]
    fn the_end_of_input_stops_before_anything_is_written() {
        assert!(ask(proposals(), &mut "y\n".as_bytes(), &mut Vec::new()).is_err());
    }
}
