//! A verification for a GitHub workflow: commands that become annotations, and a step summary in Markdown.

use std::fmt::Write as _;

use verdone_core::base::sanitise::sanitise;
use verdone_core::verify::{Outcome, Reason, Tree, Verified};
use verdone_text::sentence::capitalise;

use super::{compared, headline};
use crate::landing::weak_seal;
use crate::markdown::escape::{code, text};
use crate::result_text::{changed_label, tree_words};
use crate::wording::{duration, ended, facts};

/// How many lines of a failed check's output an annotation quotes.
const QUOTED: usize = 15;

/// One workflow command per line. Prints nothing else: GitHub could read a check's output as a command.
pub fn github_commands(found: &Verified) -> String {
    let mut out = String::new();
    let title = format!("Verdone: {}", headline(found));
    let level = match found.report.outcome {
        Outcome::Done | Outcome::Accepted => "notice",
        Outcome::NeedsReview => "warning",
        Outcome::Failed => "error",
    };
    let range = found.range.as_ref().map(compared).unwrap_or_default();
    command(&mut out, level, &title, if range.is_empty() { "the current checkout" } else { &range });
    for reason in &found.report.reasons {
        let level = match reason {
            Reason::Failure(_) => "error",
            Reason::Doubt(_) => "warning",
            Reason::Note(_) => "notice",
        };
        command(&mut out, level, "Verdone", &format!("{}{}", capitalise(&reason.to_string()), quoted(found, reason)));
    }
    let rest = changed_label(&found.report.protected).into_iter().chain(weak_seal(found.seal.as_ref()));
    for note in rest.chain(found.notes.iter().cloned()) {
        command(&mut out, "notice", "Verdone", &capitalise(&note));
    }
    out
}

/// The end of the check output that a reason refers to.
fn quoted(found: &Verified, reason: &Reason) -> String {
    let tree = match reason {
        Reason::Failure(_) => Tree::Attempt,
        Reason::Doubt(_) => Tree::Pristine,
        Reason::Note(_) => return String::new(),
    };
    let runs = found.report.runs_on(tree).iter();
    let Some(run) = runs.filter(|run| !run.outcome.passed()).find(|run| reason.failing_check() == Some(&run.name)) else {
        return String::new();
    };
    run.excerpt_lines(QUOTED).iter().fold(String::new(), |out, line| out + "\n" + line)
}

fn command(out: &mut String, level: &str, title: &str, message: &str) {
    let _ = writeln!(out, "::{level} title={}::{}", property(title), data(message));
}

/// Escapes data the way the runner decodes it. A newline would start the next command.
fn data(text: &str) -> String {
    sanitise(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A colon could end the properties, and a comma the title.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The step summary, in Markdown.
pub fn github_summary(found: &Verified) -> String {
    let report = &found.report;
    let mut out = format!("### Verdone: {}\n\n", text(&headline(found)));
    if let Some(range) = &found.range {
        let _ = writeln!(out, "Commit {}\n", text(&compared(range)));
    }
    for reason in &report.reasons {
        let _ = writeln!(out, "- {}", text(&capitalise(&reason.to_string())));
    }
    if let Some(label) = changed_label(&report.protected) {
        let _ = writeln!(out, "- {}", text(&capitalise(&label)));
    }
    out.push_str("\n| Files | Check | Result | Time |\n|---|---|---|---|\n");
    for (tree, run) in report.all_runs() {
        let time = if run.cached { "cached".to_owned() } else { duration(run.duration_ms) };
        let counted = facts(run, ", ");
        let counted = counted.strip_suffix(&format!(", {time}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} | {}{} | {time} |",
            tree_words(tree),
            cell(&code(&run.name)),
            text(&ended(run)),
            text(counted)
        );
    }
    let failed = report.all_runs().filter(|(tree, run)| {
        matches!(tree, Tree::Attempt | Tree::Pristine) && !run.outcome.passed() && !run.tail.trim().is_empty()
    });
    for (tree, run) in failed {
        let _ = writeln!(out, "\n**{}** ({}):\n\n{}", code(&run.name), tree_words(tree), fenced(&run.excerpt(usize::MAX)));
    }
    for note in weak_seal(found.seal.as_ref()).into_iter().chain(found.notes.iter().cloned()) {
        let _ = writeln!(out, "\n- {}", text(&capitalise(&note)));
    }
    out
}

/// An unescaped bar would start the next cell, even inside a code span.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A code block that its content cannot close.
fn fenced(said: &str) -> String {
    let said = sanitise(said);
    let longest = said.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", said.trim_end())
}

#[cfg(test)]
mod tests {
    use verdone_core::verify::Failure;

    use super::*;
    use crate::verification::tests::doubted;

    #[test]
    fn every_line_is_one_command_with_its_level() {
        let text = github_commands(&doubted());
        let expected = "\
::warning title=Verdone%3A US-1%3A Needs review%2C untested::5555555555 compared with main (4444444444)
::warning title=Verdone::`test` passes only with the changed tests/a.py: with the files from before the work it failed with exit code 1%0A::error::a < b & c%0A<![CDATA[x]]>%0A```%0Aassert False
::notice title=Verdone::`own` failed before the work and passes now
::notice title=Verdone::Changed: tests/a.py
::notice title=Verdone::A note
";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_name_and_no_output_can_add_a_command_or_a_property() {
        let mut found = doubted();
        let evil = "x\r\n::set-output name=a::b\n%0A::error::c,file=d::e";
        found.report.story = Some(evil.into());
        found.report.reasons = vec![Reason::Failure(Failure::CheckFailed { check: evil.to_owned(), said: evil.to_owned() })];
        found.notes = vec![evil.to_owned()];
        let text = github_commands(&found);
        assert_eq!(text.lines().count(), 4, "{text}");
        for line in text.lines() {
            let rest = line.strip_prefix("::").unwrap();
            let (properties, _) = rest.split_once("::").unwrap();
            assert!(properties.split_once(' ').unwrap().1.starts_with("title=Verdone"), "{line}");
            assert!(!properties.contains(','), "{line}");
        }
        assert!(text.contains("%250A::error::c"), "an escape of the text stays text: {text}");
    }

    #[test]
    fn the_summary_cannot_be_broken_out_of() {
        let mut found = doubted();
        found.report.runs.get_mut(&Tree::Base).unwrap()[0].name = "a | b".to_owned();
        let text = github_summary(&found);
        assert!(text.contains("| Before the work | `a \\| b` |"), "{text}");
        assert!(text.starts_with("### Verdone: US-1: Needs review, untested\n"), "{text}");
        assert!(text.contains("````text\n::error::a < b & c\n"), "{text}");
        assert!(text.contains("| With the work | `own` | passed | 1.2s |"), "{text}");
    }
}
