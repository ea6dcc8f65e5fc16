//! Messages of the Stop gate: for the agent when its turn continues, and for people when it ends. Text from plans and checks is
//! sanitised and truncated. A message has at most [`LONGEST`] characters.

use verdone_text::sentence::capitalise;

use super::check_output::{meaningful, places};
use super::{HeldLoop, Incomplete, Litter, LoopCounters, Open, ReleaseReason, StoryToDo, Work, may_be_wanted};
use crate::base::id::StoryId;
use crate::base::sanitise::sanitise_line;
use crate::check::{CheckOutcome, CheckRun, excerpt};
use crate::verify::{Outcome, Proof, StoryResult};

/// Maximum number of characters in one block.
pub const LONGEST: usize = 4_000;
/// Maximum number of characters of a check's output. The story and the rules have to fit next to it.
const LONGEST_OUTPUT: usize = 1_600;
const LONGEST_LINE: usize = 400;
const MOST_STEPS: usize = 12;
const MOST_LISTED: usize = 8;

/// The text of a block: the failing check, its last lines, the positions, then what is pending.
pub(super) fn block(held: &LoopCounters, open: &Open, notes: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.push(head(held));
    parts.extend(open.settled.iter().map(|(story, result)| settled(story, *result)));
    let mut room = LONGEST_OUTPUT;
    for (n, run) in open.failed.iter().enumerate() {
        if n == 3 {
            parts.push(format!("{} more checks did not pass.", open.failed.len() - n));
            break;
        }
        let (text, left) = failed(run, room);
        room = left;
        parts.push(text);
    }
    parts.extend(open.missing.iter().map(|(_, words)| sentence(words)));
    parts.extend(open.advice.iter().map(|words| line(words)));
    parts.extend(notes.iter().map(|note| format!("Note: {}", line(note))));
    parts.extend(open.story.as_ref().map(|story| story_words(story, !open.settled.is_empty(), held)));
    parts.extend(pending(open));
    cut(&parts.join("\n\n"), LONGEST)
}

/// A message for the user, with notes appended.
pub(super) fn with_notes(text: String, notes: &[String]) -> String {
    notes.iter().fold(text, |text, note| format!("{text}. Note: {}", line(note).trim_end_matches('.')))
}

fn head(held: &LoopCounters) -> String {
    let of = if held.max_blocks > 0 { format!(" of {}", held.max_blocks) } else { String::new() };
    let mut first = if held.task.is_empty() && held.goes_on.is_empty() {
        "CONTINUATION: the work is not done yet.".to_owned()
    } else {
        format!("CONTINUATION: Verdone loop, iteration {}{of}.", held.blocks + 1)
    };
    if !held.task.trim().is_empty() {
        first.push_str(&format!("\nThe task: {}", line(&held.task)));
    }
    first
}

fn settled(story: &StoryId, result: StoryResult) -> String {
    let story = line(story.as_str());
    match (result.outcome, result.proof) {
        (Outcome::NeedsReview, _) => {
            format!("Story {story} needs a review by the user. Leave it alone, and continue with the next story.")
        }
        (Outcome::Failed, _) => format!("Story {story} failed. Leave it alone, and continue with the next story."),
        (Outcome::Done | Outcome::Accepted, proof) => {
            format!("Checked: story {story} is done ({}) and marked.", proof.unwrap_or(Proof::Unchecked))
        }
    }
}

/// With a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let words = line(words);
    let end = if words.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    format!("{}{end}", capitalise(&words))
}

fn failed(run: &CheckRun, room: usize) -> (String, usize) {
    let mut text = format!("The check `{}` {}", line(&run.name), said_by(run));
    let command = run.command.display();
    if command != run.name {
        text.push_str(&format!(" (`{}`)", line(&command)));
    }
    text.push('.');
    let shown = match room {
        0 => String::new(),
        room => excerpt(&meaningful(&run.first_error).join("\n"), &meaningful(&run.tail).join("\n"), room),
    };
    if !shown.is_empty() {
        text.push_str(&format!("\n{shown}"));
    }
    let places = places(&run.tail);
    if !places.is_empty() {
        text.push_str(&format!("\nAt: {}", places.join(", ")));
    }
    (text, room.saturating_sub(shown.len()))
}

/// How a check ended, for use after its name.
fn said_by(run: &CheckRun) -> String {
    let words = line(&run.outcome.describe());
    match run.outcome {
        CheckOutcome::Unknown { .. } if !run.hidden => format!("proves nothing: {words}"),
        CheckOutcome::Passed
        | CheckOutcome::Unknown { .. }
        | CheckOutcome::Failed { .. }
        | CheckOutcome::Signalled { .. }
        | CheckOutcome::TimedOut { .. }
        | CheckOutcome::Interrupted => words,
    }
}

fn story_words(story: &StoryToDo, is_next: bool, held: &LoopCounters) -> String {
    let which = if is_next { "NEXT STORY" } else { "THE STORY" };
    let mut text = format!("{which} ({}): {}\n", line(&story.id), line(&story.title));
    if !story.steps.is_empty() {
        text.push_str("\nSteps:\n");
        text.push_str(&listed(&story.steps, MOST_STEPS, |step| format!("- {}", line(step))));
        text.push('\n');
    }
    if !story.checks.is_empty() {
        text.push_str("\nIts checks, which Verdone runs itself:\n");
        text.push_str(&listed(&story.checks, MOST_LISTED, |check| format!("- `{}`", line(check))));
        text.push('\n');
    }
    let mut rules = Vec::new();
    if held.has_progress {
        rules.push("Read the current state from progress.txt.".to_owned());
    }
    rules.push(format!("Implement and verify story {}.", line(&story.id)));
    rules.push(
        "Do not mark stories as done and do not edit progress.txt: when you stop, Verdone runs the checks and does both."
            .to_owned(),
    );
    text.push_str("\nInstructions:\n");
    let numbered: Vec<String> = rules.iter().enumerate().map(|(n, rule)| format!("{}. {rule}", n + 1)).collect();
    text.push_str(&numbered.join("\n"));
    text
}

fn pending(open: &Open) -> Option<String> {
    let mut text = String::new();
    if !open.stories.is_empty() {
        text.push_str("Later stories:\n");
        text.push_str(&listed(&open.stories, MOST_LISTED, |(id, title)| format!("- {}: {}", line(id.as_str()), line(title))));
    }
    if !open.tasks.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}Tasks on your list that are not completed:\n"));
        text.push_str(&listed(&open.tasks, MOST_LISTED, |task| format!("- {}", line(task))));
    }
    (!text.is_empty()).then_some(text)
}

fn listed<T>(items: &[T], most: usize, words: impl Fn(&T) -> String) -> String {
    let mut lines: Vec<String> = items.iter().take(most).map(words).collect();
    if items.len() > most {
        lines.push(format!("- and {} more", items.len() - most));
    }
    lines.join("\n")
}

/// A verification that is still running.
pub(super) fn verifying(checks: &[String], seconds: u64) -> String {
    let names = checks.iter().take(MOST_LISTED).map(|name| format!("`{}`", line(name))).collect::<Vec<_>>().join(", ");
    let text = format!(
        "Verdone is still verifying your work ({seconds} s so far): {names}. Do not change any files until it has finished: a \
         change restarts it. Say in one short sentence that you are waiting, and stop again."
    );
    cut(&text, LONGEST)
}

impl Work {
    /// What is missing, in one line; `None` if nothing is.
    pub fn in_short(&self) -> Option<String> {
        match self {
            Self::Open(open) => Some(in_short(open)),
            Self::Blocked { why, .. } | Self::Nothing { why } => Some(why.clone()),
            Self::Unknown | Self::Complete { .. } | Self::Verifying { .. } => None,
        }
    }
}

/// What is missing, in one line.
pub(super) fn in_short(open: &Open) -> String {
    let failed = open.failed.first().map(|run| format!("the check `{}` {}", line(&run.name), said_by(run)));
    let missing = || open.missing.first().map(|(_, words)| line(words));
    let story = || open.story.as_ref().map(|story| format!("story {} is open", line(&story.id)));
    failed.or_else(missing).or_else(story).unwrap_or_else(|| format!("{} tasks are not completed", open.tasks.len()))
}

pub(super) fn yields(why: &ReleaseReason) -> String {
    match why {
        ReleaseReason::Foreign => "no loop was started for this session".to_owned(),
        ReleaseReason::Off => "the Stop gate is off (`mode` in [stop])".to_owned(),
        ReleaseReason::Ended(status) => format!("the loop of this session has ended: {}", status.describe()),
        ReleaseReason::NothingToVerify { why } => format!("nothing to verify: {}", line(why)),
        ReleaseReason::Background { tasks } => format!("tasks are running in the background: {}", line(&tasks.join(", "))),
        ReleaseReason::ApiFailure { error } => format!("the model's service failed: {}", line(error)),
        ReleaseReason::Paused => "the loop is paused: remove .verdone/pause to continue".to_owned(),
        ReleaseReason::HeldOnce => "the turn was already continued once (mode `once`)".to_owned(),
        ReleaseReason::Context { tokens, most, goes_on, spawn } => {
            let next = if *spawn { "starts in the background" } else { "continues in a fresh session" };
            format!("the context has {tokens} tokens, and the limit is {most}; `{}` {next}", line(goes_on))
        }
        ReleaseReason::Same { times, reason } => {
            format!("nothing has changed in {times} turns in a row, and {reason}. The work stays open; a new prompt continues it")
        }
        ReleaseReason::Limit { blocks, remaining } => {
            let list: Vec<String> = remaining.iter().take(MOST_LISTED).map(|id| line(id)).collect();
            let more = remaining.len().saturating_sub(MOST_LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let remain = match remaining.len() {
                0 => String::new(),
                count => format!("; {count} remain: {}{more}", list.join(", ")),
            };
            format!("REACHED_LIMIT: {blocks} iterations were used{remain}")
        }
        ReleaseReason::Complete { proofs } => complete(proofs),
        ReleaseReason::Blocked { why, .. } => format!("the loop has ended: {}", line(why)),
        ReleaseReason::NothingLeft { gates } => {
            let green = match gates {
                0 => String::new(),
                1 => ", and the quick gate is green".to_owned(),
                many => format!(", and the {many} quick gates are green"),
            };
            format!("no task is open and no line is unfinished{green}; stories are verified when the turn ends")
        }
        ReleaseReason::Checked { gates: 0 } => "every change is committed; there is no gate".to_owned(),
        ReleaseReason::Checked { .. } => "every change is committed, and the gates pass".to_owned(),
        ReleaseReason::StillVerifying { waits } => format!("the verification has not finished after {waits} waits"),
        ReleaseReason::Fault { times, cause } => {
            format!("the Stop gate itself failed {times} times in a row ({}), so the session is released UNVERIFIED", line(cause))
        }
        ReleaseReason::NotOurs => "Verdone does not block this kind of stop".to_owned(),
    }
}

fn complete(proofs: &[Proof]) -> String {
    let count = |proof: Proof| match proofs.iter().filter(|other| **other == proof).count() {
        0 => None,
        many => Some(format!("{many} {proof}")),
    };
    let kinds = [Proof::Verified, Proof::AgentTested, Proof::Untested, Proof::Unchecked];
    let list = kinds.into_iter().filter_map(count).collect::<Vec<_>>().join(", ");
    match proofs {
        [] => "COMPLETE: every gate is green".to_owned(),
        [proof] => format!("COMPLETE: the one story of the loop is done ({proof})"),
        several => format!("COMPLETE: all {} stories of the loop are done ({list})", several.len()),
    }
}

/// A fault of the gate, for the agent.
pub fn fault_words(cause: &str, times: u32) -> String {
    let most = super::MOST_FAULTS;
    cut(
        &format!(
            "Verdone's Stop gate could not judge this turn (fault {times} of at most {most}): {}. This is a fault in Verdone, \
             not in your work: do not work around it. Tell the user, and stop again.",
            line(cause)
        ),
        LONGEST,
    )
}

/// Debris, for the agent that added it.
pub fn debris_words(found: &[Litter]) -> String {
    let mut text = "Some lines you added are unfinished. Finish or remove them first:\n".to_owned();
    text.push_str(&listed(found, 20, |Litter { path, debris }| {
        format!("- {}:{} {}: {}", line(path), debris.line, debris.kind.describe(), line(&debris.text))
    }));
    if may_be_wanted(found) {
        text.push_str("\nIf this output is meant for users, keep it: the same lines are let through after a few tries.");
    }
    cut(&text, LONGEST)
}

/// The session's loop, reported when the session begins.
pub fn loop_words(held: &HeldLoop, story: Option<&StoryToDo>) -> String {
    let mut text =
        "A Verdone loop is active here: when you stop, Verdone runs the checks itself, and the turn continues until they pass."
            .to_owned();
    if !held.task.trim().is_empty() {
        text.push_str(&format!(" The task: {}", line(&held.task)));
    }
    if let Some(story) = story.filter(|_| held.plan.is_some()) {
        text.push_str(&format!("\nThe current story is {}: {}", line(&story.id), line(&story.title)));
    }
    cut(&text, LONGEST)
}

/// An earlier session that did not finish.
pub fn incomplete_words(found: &Incomplete) -> String {
    let what = match &found.story {
        Some(story) => format!("story {}", line(story)),
        None => format!("the task \"{}\"", line(&found.task)),
    };
    format!(
        "An earlier session with a Verdone loop ended at {} (reason: {}) with {what} open. `verdone loop status` shows it.",
        line(&found.at),
        line(&found.reason)
    )
}

fn line(text: &str) -> String {
    let safe = sanitise_line(text);
    let flat = safe.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&flat, LONGEST_LINE)
}

/// Truncates to this many characters.
fn cut(text: &str, most: usize) -> String {
    if text.char_indices().nth(most).is_none() {
        return text.to_owned();
    }
    let end = text.char_indices().nth(most - 1).map_or(0, |(at, _)| at);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::failed_with;

    #[test]
    fn the_first_error_is_shown_once_and_is_part_of_the_room() {
        let (text, _) = failed(&failed_with("error: x\nat y", "at y\nthe end\n"), 1_000);
        assert!(text.ends_with(".\nerror: x\nat y\nthe end"), "{text}");
        let tail: String = (0..100).map(|n: u8| ["line ", &n.to_string(), " ", &"x".repeat(100), "\n"].concat()).collect();
        let (text, left) = failed(&failed_with(&format!("error: {}", "y".repeat(600)), &tail), 1_000);
        assert!(text.contains("error: yyy") && text.ends_with('x') && text.len() < 1_150, "{}: {text}", text.len());
        assert!(left < 50, "{left}");
        let (text, left) = failed(&failed_with("error: x", "the end\n"), 0);
        assert!(!text.contains("error: x") && left == 0, "{text}");
    }
}
