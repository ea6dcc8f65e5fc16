//! Where a run's commits are, how it ended and how it was sealed, worded the same in lines, pages, summary and report.

use verdone_core::base::finish::{Finish, run_again};
use verdone_core::base::id::Oid;
use verdone_core::journal::event::{Seal, SealLevel};
use verdone_core::journal::view::{AttemptView, RunView, StoryView};
use verdone_core::verify::Outcome;
use verdone_text::sentence::capitalise;
use verdone_text::shell_word::shell_argument;

use crate::event_lines::files;
use crate::result_text::argument;
use crate::style::Tone;
use crate::summary::awaited;
use crate::width::clean;
use crate::wording::{because, plural};

/// Describes one landing. The commits are counted only if the run made all of them.
pub(crate) fn landed(view: &RunView, branch: &str, from: &Oid, to: &Oid) -> String {
    let branch = clean(branch);
    match commits_between(view, from, to) {
        Some(count) => format!("Landed {} on {branch}", plural(count, "commit", "commits")),
        None => format!("Landed on {branch}: git log {}..{}", clean(from.short()), clean(to.short())),
    }
}

pub(crate) fn not_landed(reason: &str) -> String {
    because("Not landed", reason)
}

/// Which branch has the commits, whether they were landed, and why not.
pub(crate) fn commits(view: &RunView) -> Vec<(Tone, String)> {
    let landing = view.landing.as_ref();
    let target = landing.and_then(|landing| landing.branch.as_ref()).or(view.target.as_ref()).map(|target| clean(target));
    let mut rows = Vec::new();
    if view.unlanded > 0 {
        let count = plural(view.unlanded as usize, "commit", "commits");
        let branch = view.branch.as_ref().map_or_else(String::new, |branch| format!(" on {}", clean(branch)));
        let landed = match target {
            _ if !can_land(view) => String::new(),
            Some(target) => format!(", not landed on {target} yet"),
            None => ", not landed yet".to_owned(),
        };
        // The branch of an active run can still move.
        let held_up = awaited(view).find(|story| story.is_on_branch());
        let command = match held_up {
            _ if !can_land(view) || view.ended.is_none() => String::new(),
            Some(story) => format!(" (waiting for verdone accept {})", argument(&story.id)),
            None => " (verdone land)".to_owned(),
        };
        rows.push((Tone::Plain, format!("{count}{branch}{landed}{command}")));
        let refused = landing.and_then(|landing| landing.refused.as_ref());
        rows.extend(refused.map(|reason| (Tone::Warn, not_landed(reason))));
    } else if let (Some(target), Some(tip)) = (target, landing.and_then(|landing| landing.landed.as_ref())) {
        rows.push((Tone::Plain, format!("All commits have landed on {target} ({})", clean(tip.short()))));
    }
    rows
}

/// What to type after a run has ended: one command.
pub(crate) fn next_step(view: &RunView) -> Option<String> {
    let finish = view.finish?;
    let lands = finish == Finish::Complete && view.unlanded > 0 && can_land(view);
    let waiting: Vec<&StoryView> = awaited(view).collect();
    Some(match waiting.as_slice() {
        [] if finish == Finish::Blocked && view.open_questions().next().is_some() => "verdone answer".to_owned(),
        [] if lands => LAND.to_owned(),
        [] => after_reviews(view).unwrap_or_else(|| after(view, finish)),
        [one] => format!("verdone show {}", argument(&one.id)),
        [_, _, ..] => "verdone review".to_owned(),
    })
}

const LAND: &str = "verdone land";

/// What to type after a run that nobody has to review.
fn after(view: &RunView, finish: Finish) -> String {
    if finish == Finish::Blocked && view.touched.is_empty() && view.baseline.as_ref().is_some_and(|baseline| !baseline.green) {
        return "verdone verify".to_owned();
    }
    let failed = view.touched.iter().find(|story| story.result.is_some_and(|result| result.outcome == Outcome::Failed));
    finish.next_step(&plan(view), failed.map(|story| argument(&story.id)).as_deref())
}

fn plan(view: &RunView) -> String {
    shell_argument(&clean(&view.plan))
}

/// What to type once every review is decided. `None` if something else stopped the run as well.
fn after_reviews(view: &RunView) -> Option<String> {
    let decided: Vec<&StoryView> = decided(view).collect();
    let rejected: Vec<&StoryView> = decided.iter().copied().filter(|story| !is_accepted(story)).collect();
    if decided.is_empty() || view.finish != Some(Finish::Blocked) || view.counts.failed > rejected.len() {
        return None;
    }
    Some(match rejected.as_slice() {
        [] if view.unlanded > 0 && can_land(view) => LAND.to_owned(),
        [] if view.open == 0 => after(view, Finish::Complete),
        [..] => run_again(&plan(view)),
    })
}

/// How the run ended, and what a person has decided since.
pub(crate) fn finished(view: &RunView) -> Option<String> {
    let finish = view.finish?;
    let code = view.exit_code.map_or_else(String::new, |code| format!(" (exit code {code})"));
    let reason = capitalise(&clean(view.reason.as_deref().unwrap_or_default()));
    let mut text = format!("{}{code}. {reason}", finish.name());
    let decision = |story: &StoryView| {
        let word = if is_accepted(story) { "accepted" } else { "rejected" };
        format!("{} was {word}", clean(story.id.as_str()))
    };
    let decisions: Vec<String> = decided(view).map(decision).collect();
    if !decisions.is_empty() {
        text.push_str(&format!("; since then, {}", files(&decisions)));
    }
    Some(text)
}

fn decided(view: &RunView) -> impl Iterator<Item = &StoryView> {
    view.touched.iter().filter(|story| story.review.as_ref().is_some_and(|review| review.settled_by.is_some()))
}

fn is_accepted(story: &StoryView) -> bool {
    story.result.is_some_and(|result| result.outcome == Outcome::Accepted)
}

/// The protections that this machine cannot enforce. `None` for a full seal and for journals that do not record it.
pub(crate) fn weak_seal(seal: Option<&Seal>) -> Option<String> {
    let seal = seal.filter(|seal| seal.level < SealLevel::View || !seal.missing.is_empty())?;
    let level = match seal.level {
        SealLevel::Unsealed => SealLevel::Unsealed.describe(),
        SealLevel::Landlock => "sealed by Landlock only",
        SealLevel::View => "not fully sealed",
    };
    let container = if seal.container { ", inside a container" } else { "" };
    let what = capitalise(&format!("{level}{container}"));
    let what = if seal.missing.is_empty() { what } else { format!("{what}: {}", files(&seal.missing)) };
    Some(format!("{what} (verdone doctor explains why)"))
}

/// The hosts that processes of the run can reach. `None` if no list limits them.
pub(crate) fn listed_hosts(seal: Option<&Seal>) -> Option<String> {
    let seal = seal?;
    let limited = [("the agent reaches only", &seal.agent_hosts), ("checks reach only", &seal.check_hosts)];
    let parts = limited.into_iter().filter(|(_, hosts)| !hosts.is_empty()).map(|(who, hosts)| format!("{who} {}", files(hosts)));
    let text = parts.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then(|| capitalise(&text))
}

/// Runs of the first edition worked directly on the user's branch.
fn can_land(view: &RunView) -> bool {
    view.target.is_some() || view.seal.is_some() || view.landing.is_some()
}

fn commits_between(view: &RunView, from: &Oid, to: &Oid) -> Option<usize> {
    let made: Vec<&AttemptView> = view.touched.iter().flat_map(|story| &story.attempts).collect();
    let mut at = to;
    for count in 1..=made.len() {
        at = made.iter().find(|attempt| attempt.commit.as_ref() == Some(at))?.base.as_ref()?;
        if at == from {
            return Some(count);
        }
    }
    None
}
