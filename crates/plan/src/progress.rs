//! Progress files of other loops: entries of `progress.md` and header lines of `progress.txt`. Text in, text out.

use crate::StoryId;

const MAX_ITERATIONS: &str = "Max Iterations";

/// One entry of `progress.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryEntry {
    /// Local time as `YYYY-MM-DD HH:MM`.
    pub at: String,
    pub story: StoryId,
    pub title: String,
    /// The agent's session, if there is one.
    pub thread: Option<String>,
    pub run: String,
    /// The path of the run's journal.
    pub run_log: Option<String>,
    pub commit: Option<String>,
    /// The commands that were run, and whether they passed.
    pub verification: Vec<(String, bool)>,
}

/// The status of a loop, as written to `progress.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopStatus {
    pub iteration: u32,
    pub state: LoopState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopState {
    InProgress,
    /// Every story is done and verified. A claim is not enough.
    Complete,
    /// A limit ended the loop; these stories remain.
    ReachedLimit {
        remaining: Vec<StoryId>,
    },
}

impl StoryEntry {
    /// The entry with `\n` line ends, including a final one.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("## [{}] - {}: {}", flat(&self.at), flat(self.story.as_str()), flat(&self.title))];
        let optional =
            [("Thread", &self.thread), ("Run", &Some(self.run.clone())), ("Run log", &self.run_log), ("Commit", &self.commit)];
        lines.extend(
            optional.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}: {}", flat(value)))),
        );
        lines.push("Verification:".to_owned());
        if self.verification.is_empty() {
            lines.push("- none".to_owned());
        }
        let runs = self.verification.iter();
        lines.extend(
            runs.map(|(command, passed)| format!("- Command: {} -> {}", flat(command), if *passed { "PASS" } else { "FAIL" })),
        );
        lines.join("\n") + "\n"
    }
}

/// Appends an entry to a progress file, after a blank line and with the file's line ends.
pub fn append_entry(text: &str, entry: &StoryEntry) -> String {
    let end = line_end(text);
    let mut out = text.to_owned();
    if !out.is_empty() {
        if !out.ends_with('\n') {
            out.push_str(end);
        }
        if !out.ends_with("\n\n") && !out.ends_with("\n\r\n") {
            out.push_str(end);
        }
    }
    out.push_str(&entry.text().replace('\n', end));
    out
}

/// Sets `Iteration`, `Status` and `Remaining` in the header of a `progress.txt`. Missing lines are inserted next to the others. Everything
/// else stays, also `Max Iterations`, which is the user's.
pub fn edit_status(text: &str, status: &LoopStatus) -> String {
    let end = line_end(text);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let mut after = None;
    let (word, remaining) = match &status.state {
        LoopState::InProgress => ("IN_PROGRESS", None),
        LoopState::Complete => ("COMPLETE", None),
        LoopState::ReachedLimit { remaining } => {
            let ids: Vec<String> = remaining.iter().map(|id| flat(id.as_str())).collect();
            ("REACHED_LIMIT", Some(ids.join(", ")))
        }
    };
    let header = [("Iteration", Some(status.iteration.to_string())), (MAX_ITERATIONS, None), ("Status", Some(word.to_owned()))];
    for (name, value) in header {
        let place = find(&lines, name);
        if let Some(value) = value {
            set(&mut lines, place, after, name, &value, end);
            after = place.or(Some(after.map_or(0, |at: usize| at + 1)));
        } else {
            after = place.or(after);
        }
    }
    match (find(&lines, "Remaining"), remaining) {
        (place, Some(remaining)) => set(&mut lines, place, after, "Remaining", &remaining, end),
        (Some(place), None) => {
            lines.remove(place);
        }
        (None, None) => {}
    }
    lines.concat()
}

/// The limit given in a `progress.txt`, in a list or not.
pub fn max_iterations_in(text: &str) -> Option<u32> {
    let value =
        |line: &str| Some(line.trim_start_matches([' ', '-']).strip_prefix(MAX_ITERATIONS)?.strip_prefix(':')?.to_owned());
    text.lines().find_map(value)?.split_whitespace().next()?.parse().ok().filter(|most| *most > 0)
}

fn find(lines: &[String], name: &str) -> Option<usize> {
    lines.iter().position(|line| {
        line.strip_prefix("- ").and_then(|line| line.strip_prefix(name)).is_some_and(|rest| rest.starts_with(':'))
    })
}

/// Changes the value of a line and nothing around it, or inserts the line.
fn set(lines: &mut Vec<String>, place: Option<usize>, after: Option<usize>, name: &str, value: &str, end: &str) {
    if let Some(place) = place {
        let line = &lines[place];
        let start = "- ".len() + name.len() + 1;
        let rest = &line[start..];
        let space = &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()];
        let space = if space.is_empty() { " " } else { space };
        let tail = &rest[rest.trim_end().len()..];
        let tail = if rest.trim().is_empty() { &rest[rest.trim_end_matches(['\r', '\n']).len()..] } else { tail };
        lines[place] = format!("{}{space}{value}{tail}", &line[..start]);
        return;
    }
    let at = after.map_or(0, |after| after + 1).min(lines.len());
    if at > 0 && !lines[at - 1].ends_with('\n') {
        lines[at - 1].push_str(end);
    }
    lines.insert(at, format!("- {name}: {value}{end}"));
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Untrusted text as a single line.
fn flat(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> StoryEntry {
        StoryEntry {
            at: "2026-11-15 02:30".to_owned(),
            story: StoryId::from("US-001"),
            title: "Sign in\n## not a heading".to_owned(),
            thread: None,
            run: "20261115-020338-5f3a".to_owned(),
            run_log: Some(".loop/x/journal.jsonl".to_owned()),
            commit: Some("abc1234 feat(US-001): Sign in".to_owned()),
            verification: vec![("cargo test".to_owned(), true), ("cargo clippy".to_owned(), false)],
        }
    }

    #[test]
    fn an_entry_is_appended_after_a_blank_line_in_the_files_own_line_ends() {
        let text = entry().text();
        let expected = "## [2026-11-15 02:30] - US-001: Sign in ## not a heading\nRun: 20261115-020338-5f3a\n\
            Run log: .loop/x/journal.jsonl\nCommit: abc1234 feat(US-001): Sign in\nVerification:\n\
            - Command: cargo test -> PASS\n- Command: cargo clippy -> FAIL\n";
        assert_eq!(text, expected);
        let crlf = expected.replace('\n', "\r\n");
        let table = [
            ("", expected.to_owned()),
            ("# Log", format!("# Log\n\n{expected}")),
            ("# Log\n", format!("# Log\n\n{expected}")),
            ("# Log\n\n", format!("# Log\n\n{expected}")),
            ("# Log\r\n", format!("# Log\r\n\r\n{crlf}")),
        ];
        for (before, after) in table {
            assert_eq!(append_entry(before, &entry()), after, "{before:?}");
        }
    }

    #[test]
    fn status_lines_change_in_place_and_nothing_else_does() {
        let status = |iteration, state| LoopStatus { iteration, state };
        let limit = || LoopState::ReachedLimit { remaining: vec![StoryId::from("3"), StoryId::from("4")] };
        let table = [
            (
                "# Loop\n- Iteration: 1\n- Max Iterations: 15\n- Status:  UNKNOWN  \nnote Status: x\n",
                status(2, LoopState::InProgress),
                "# Loop\n- Iteration: 2\n- Max Iterations: 15\n- Status:  IN_PROGRESS  \nnote Status: x\n",
            ),
            (
                "# Loop\r\n- Iteration: 1\r\n- Max Iterations: 15\r\n- Status: IN_PROGRESS",
                status(9, limit()),
                "# Loop\r\n- Iteration: 9\r\n- Max Iterations: 15\r\n- Status: REACHED_LIMIT\r\n- Remaining: 3, 4\r\n",
            ),
            (
                "- Iteration: 1\n- Status: REACHED_LIMIT\n- Remaining: 3, 4\nmore\n",
                status(10, LoopState::Complete),
                "- Iteration: 10\n- Status: COMPLETE\nmore\n",
            ),
            ("", status(0, LoopState::InProgress), "- Iteration: 0\n- Status: IN_PROGRESS\n"),
            ("- Status:\n", status(1, LoopState::Complete), "- Iteration: 1\n- Status: COMPLETE\n"),
        ];
        for (before, status, after) in table {
            assert_eq!(edit_status(before, &status), after, "{before:?}");
        }
    }

    #[test]
    fn a_limit_is_found_in_a_list_or_not() {
        for (text, limit) in [
            ("- Iteration: 1\n- Max Iterations: 15 (soft)\n", Some(15)),
            ("Max Iterations: 4\n", Some(4)),
            ("- Max Iterations: 0\n", None),
            ("- Max Iterations: many\n", None),
            ("- Iteration: 3\nno Max Iterations: 5\n", None),
            ("", None),
        ] {
            assert_eq!(max_iterations_in(text), limit, "{text:?}");
        }
    }
}
