//! The main help page: commands in groups instead of one long list, and the topics of the manual.

pub(crate) mod topics;

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use self::topics::TOPICS;
use crate::args::Cli;

/// Every visible command, in the order in which a user meets them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["init", "plan", "doctor", "config", "notify", "demo"]),
    ("Run", &["run", "attach", "note", "pause", "resume", "skip", "retry", "stop", "verify"]),
    ("Look", &["status", "runs", "show", "log", "report", "gates", "agents", "protect", "guardrails", "audit"]),
    ("Decide", &["review", "accept", "reject", "answer", "land", "undo"]),
    ("Sessions", &["install", "uninstall", "loop", "done", "claim", "mcp"]),
];

/// Commands for scripts, settings files and cleaning up: named, but not explained on the main page.
const PLUMBING: [&str; 7] = ["workspace", "prune", "policy", "hook", "completions", "man", "help"];

/// The narrowest width that is wrapped for.
const NARROWEST: usize = 30;
/// The longest name of a command, and of a topic.
const COMMAND: usize = 11;
const TOPIC: usize = 15;

/// The whole command line, with the main help page for a terminal of this width.
pub(crate) fn command(width: usize) -> Command {
    let command = Cli::command();
    let mut page = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(page, "{heading}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(|found| found.get_about().map(ToString::to_string));
            add_row((name, COMMAND), &about.unwrap_or_default(), width, &mut page);
        }
        page.push('\n');
    }
    let _ = writeln!(page, "Plumbing:");
    add_row(("", COMMAND), &PLUMBING.join(", "), width, &mut page);
    page.push('\n');
    page.push_str(&list_topics(width));
    // Not `{all-args}`: it would list the commands a second time.
    page.push_str("\nOptions:\n{options}{after-help}");
    command.help_template(page)
}

/// The pages of the manual, one a row.
pub(crate) fn list_topics(width: usize) -> String {
    let mut page = String::from("Topics (verdone help TOPIC):\n");
    for topic in &TOPICS {
        add_row((topic.names[0], TOPIC), topic.about, width, &mut page);
    }
    page
}

/// A name in its column and what it does, wrapped. Braces would be taken for parts of the template.
fn add_row((name, column): (&str, usize), about: &str, width: usize, page: &mut String) {
    let about = about.replace(['{', '}'], "");
    let indent = if name.is_empty() { 2 } else { column + 4 };
    let room = width.max(NARROWEST) - indent;
    let mut rows = vec![String::new()];
    for word in about.split_whitespace() {
        let last = rows.len() - 1;
        if !rows[last].is_empty() && rows[last].chars().count() + 1 + word.chars().count() > room {
            rows.push(word.to_owned());
        } else {
            if !rows[last].is_empty() {
                rows[last].push(' ');
            }
            rows[last].push_str(word);
        }
    }
    for (at, row) in rows.iter().enumerate() {
        let _ = match (at, name.is_empty()) {
            (0, false) => writeln!(page, "  {name:<column$}  {row}"),
            _ => writeln!(page, "{:indent$}{row}", ""),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_commands_and_topics_fit_their_columns() {
        assert!(GROUPS.iter().flat_map(|(_, names)| *names).all(|name| name.len() <= COMMAND));
        assert!(TOPICS.iter().all(|topic| topic.names[0].len() <= TOPIC));
    }

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|found| !found.is_hide_set()).map(Command::get_name);
        let mut visible: Vec<&str> = visible.filter(|name| *name != "help").collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.extend(PLUMBING.iter().filter(|name| **name != "help"));
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, visible);
    }

    #[test]
    fn the_page_fits_narrow_and_wide_terminals() {
        for width in [40, 80, 100] {
            let page = command(width).term_width(width).render_help().to_string();
            for line in page.lines().take_while(|line| !line.starts_with("Options:")) {
                assert!(line.chars().count() <= width || line.starts_with("Usage"), "{width}: {line}");
            }
            assert!(page.contains("\nLook:\n  status       Show the state"), "{width}: {page}");
        }
    }
}
