//! `verdone init`.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde_json::json;
use verdone_core::agent::AgentKind;
use verdone_core::config::detect::{Detection, Proposal};
use verdone_runtime::project::init::{self, Choices, STARTER_NAME, Written};

use super::{Context, Outcome};
use crate::args::InitArgs;
use crate::error::CliError;
use crate::terminal::{Style, print, printable, say};

pub(super) fn run(args: &InitArgs, context: &Context) -> Outcome {
    let above = context.project()?;
    // One config for the whole repository, wherever the command is started.
    let root = match (args.here, above.config_path.is_file()) {
        (true, _) => above.start.as_path(),
        (false, true) => above.root.as_path(),
        (false, false) => above.git_top.as_path(),
    };
    init::check_free(root, args.force)?;
    if !args.json && root != above.start {
        let hint = "to configure only this folder: verdone init --here";
        say(&printable(&format!("note: using the project's root, {} ({hint})\n", root.display())));
    }
    let mut found = init::detect_project(root)?;
    init::drop_missing(&mut found, root);
    let is_asked = context.terminal.can_ask && !args.json && !args.yes;
    let agents = init::find_agents(root);
    let mut answers =
        Answers { agent: agents.first().copied(), gates: true, plan: found.plan.is_none() && (args.yes || is_asked) };
    if is_asked {
        answers = ask(&found, &agents, answers, &mut io::stdin().lock(), &mut io::stderr().lock())?;
    }
    if !answers.gates {
        found.gates.clear();
    }
    let choices = Choices {
        plan: found.plan.as_deref().or(answers.plan.then_some(STARTER_NAME)),
        starter_plan: answers.plan,
        agent: answers.agent,
        gates: &found.gates,
        scripts: args.scripts,
        force: args.force,
    };
    let written = init::write(root, &choices)?;
    let text = if args.json { in_json(&written, &found, &answers) } else { in_words(root, &written, &found, &answers, context) };
    print(&text)?;
    Ok(0)
}

/// What was decided: by the user on a terminal, else by what was found.
struct Answers {
    agent: Option<AgentKind>,
    /// Add the gates that were found.
    gates: bool,
    /// Write a starter plan.
    plan: bool,
}

/// Asks about each agent until one is chosen, and at most two other questions; an empty answer means yes. End of input stops `init`
/// before anything is written.
fn ask(
    found: &Detection,
    agents: &[AgentKind],
    mut answers: Answers,
    input: &mut impl BufRead,
    questions: &mut impl Write,
) -> Result<Answers, CliError> {
    answers.agent = None;
    for agent in agents {
        if confirm(&format!("Use {} as the agent?", agent.title()), input, questions)? {
            answers.agent = Some(*agent);
            break;
        }
    }
    if !found.gates.is_empty() {
        let list: Vec<String> = found.gates.iter().map(|found| format!("  {}", found.gate.command.display())).collect();
        let question = format!("Checks that every story must pass:\n{}\nAdd them?", list.join("\n"));
        answers.gates = confirm(&question, input, questions)?;
    }
    if answers.plan {
        answers.plan = confirm(&format!("There is no plan yet. Write a starter plan to {STARTER_NAME}?"), input, questions)?;
    }
    Ok(answers)
}

fn confirm(question: &str, answers: &mut impl BufRead, questions: &mut impl Write) -> Result<bool, CliError> {
    loop {
        write!(questions, "{} [Y/n] ", printable(question))?;
        questions.flush()?;
        let mut answer = String::new();
        if answers.read_line(&mut answer)? == 0 {
            return Err(CliError::error("input ended at a question: nothing was written"));
        }
        match answer.trim().to_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

fn in_words(root: &Path, written: &Written, found: &Detection, answers: &Answers, context: &Context) -> String {
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
    lines.push(match answers.agent {
        Some(agent) => format!("Agent: {}", agent.title()),
        None => "Agent: none yet. Set `run` under [agent.command], or install Claude Code.".to_owned(),
    });
    match (&found.plan, &written.plan) {
        (Some(plan), _) => lines.push(format!("Plan: {}", printable(plan))),
        (None, Some(starter)) => lines.push(format!("Plan: {} is a starter plan; write your stories there.", name(starter))),
        (None, None) => {
            lines.push("No plan was found: name one with `verdone run PLAN`, or create one with `verdone plan new`.".to_owned());
        }
    }
    if !found.other_plans.is_empty() {
        lines.push(format!("Other files that look like plans: {}", printable(&found.other_plans.join(", "))));
    }
    lines.extend(found.notes.iter().map(|note| format!("Note: {}", printable(note))));
    lines.push(match (answers.agent, &written.plan) {
        (None, _) => "Next: set the agent's command, then `verdone run`.".to_owned(),
        (Some(_), Some(starter)) => format!("Next: write a story in {}, then `verdone run`.", name(starter)),
        (Some(_), None) => "Next: `verdone run`.".to_owned(),
    });
    lines.join("\n") + "\n"
}

fn in_json(written: &Written, found: &Detection, answers: &Answers) -> String {
    let gate = |proposal: &Proposal| {
        let gate = &proposal.gate;
        json!({ "name": gate.name, "stage": gate.stage, "command": gate.command, "because": proposal.because })
    };
    let value = json!({
        "config": written.config,
        "gitignore": written.gitignore,
        "backup": written.backup,
        "scripts": written.scripts,
        "agent": answers.agent,
        "plan": found.plan,
        "starter_plan": written.plan,
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

    fn asked(text: &str) -> Result<(Option<AgentKind>, bool, bool), CliError> {
        let found = Detection { gates: proposals(), ..Detection::default() };
        let answers = Answers { agent: Some(AgentKind::Claude), gates: true, plan: true };
        let mut questions = Vec::new();
        let answers = ask(&found, &[AgentKind::Claude], answers, &mut text.as_bytes(), &mut questions)?;
        let questions = String::from_utf8(questions).unwrap();
        assert!(questions.starts_with("Use Claude Code as the agent? [Y/n] "), "{questions}");
        assert!(questions.contains("Checks that every story must pass:\n  a\n  b\n  c\nAdd them? [Y/n] "), "{questions}");
        Ok((answers.agent, answers.gates, answers.plan))
    }

    #[test]
    fn answers_choose_and_silence_means_yes() {
        let claude = Some(AgentKind::Claude);
        for (answers, chosen) in
            [("\n\n\n", (claude, true, true)), ("n\ny\nNO\n", (None, true, false)), ("what?\ny\nn\nYes\n", (claude, false, true))]
        {
            assert_eq!(asked(answers).unwrap(), chosen, "{answers:?}");
        }
    }

    #[test]
    fn agents_are_offered_until_one_is_chosen() {
        let agents = [AgentKind::Claude, AgentKind::Gemini, AgentKind::Aider];
        for (text, expected) in [("n\ny\n", Some(AgentKind::Gemini)), ("n\nn\n\n", Some(AgentKind::Aider)), ("n\nn\nn\n", None)] {
            let answers = Answers { agent: Some(AgentKind::Claude), gates: true, plan: false };
            let mut questions = Vec::new();
            let answers = ask(&Detection::default(), &agents, answers, &mut text.as_bytes(), &mut questions).unwrap();
            assert_eq!(answers.agent, expected);
            assert!(String::from_utf8(questions).unwrap().contains("Use Gemini CLI as the agent? [Y/n] "));
        }
    }

    #[test]
    fn the_end_of_input_stops_before_anything_is_written() {
        assert!(asked("y\ny\n").is_err());
    }
}
