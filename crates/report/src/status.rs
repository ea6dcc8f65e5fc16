//! The state of a run, for `verdone status`.

use jiff::Timestamp;
use verdone_core::journal::view::RunView;

use crate::event_lines::name;
use crate::guard::guard_told;
use crate::landing::{commits, finished, listed_hosts, next_step, weak_seal};
use crate::live::waiting;
use crate::pending::pending;
use crate::questions::open_questions;
use crate::style::{Style, Tone};
use crate::summary::{false_claims, tally, work};
use crate::width::{clean, wrap};
use crate::wording::{duration, token_kinds, usage};

/// `now` is only used for a run that has not ended.
pub fn status(view: &RunView, now: Timestamp, style: &Style) -> String {
    let active = view.active_ms_at(now);
    let Some(run) = &view.run else { return "No run yet.\n".to_owned() };
    let mut rows = vec![("Run", clean(run.as_str())), ("Plan", clean(&view.plan)), ("Agent", clean(&view.agent))];
    rows.extend(view.branch.as_ref().map(|branch| ("Branch", clean(branch))));
    rows.push(("State", state(view, now, active)));
    rows.extend(pending(view).into_iter().map(|text| ("Pending", text)));
    rows.extend(open_questions(view).into_iter().map(|text| ("Question", text)));
    if let Some(current) = &view.current {
        let name = name(current.story.as_str(), &current.title);
        rows.push(("Story", format!("{} of {}: {name}", current.number, current.of)));
        let took = duration(active.saturating_sub(current.started_ms));
        rows.push(("Attempt", format!("{}, turn {}, for {took}", current.attempt, current.turn.max(1))));
    }
    rows.push(("Stories", tally(view)));
    rows.push(("Work", work(view, active)));
    rows.extend(usage(view.cost_usd, view.tokens).map(|used| ("Cost", used)));
    rows.extend(view.tokens_by_kind.map(|kinds| ("Tokens", token_kinds(kinds))));
    rows.extend(false_claims(view.false_claims).map(|text| ("Claims", text)));
    rows.extend(view.guard.as_ref().map(|guard| ("Guard", guard_told(view, guard))));
    rows.extend(weak_seal(view.seal.as_ref()).map(|text| ("Seal", text)));
    rows.extend(listed_hosts(view.seal.as_ref()).map(|text| ("Network", text)));
    rows.extend(commits(view).into_iter().map(|(_, text)| ("Commits", text)));
    rows.extend(next_step(view).filter(|_| view.ended.is_some()).map(|step| ("Next", step)));
    facts(&rows, style)
}

fn state(view: &RunView, now: Timestamp, active: u64) -> String {
    if let (Some(finished), Some(_)) = (finished(view), view.ended) {
        return format!("finished, {finished}");
    }
    if view.paused {
        return format!("paused, then {}", view.phase.describe());
    }
    if view.waiting.is_some() {
        return waiting(view, Some(now));
    }
    format!("{} for {}", view.phase.describe(), duration(active.saturating_sub(view.since_ms)))
}

/// Names on the left, values aligned and wrapped on the right.
pub(crate) fn facts(rows: &[(&str, String)], style: &Style) -> String {
    const NAMES: usize = 9;
    let mut out = String::new();
    for (name, value) in rows {
        for (at, row) in wrap(value, style.width.saturating_sub(NAMES).max(1), 6, style.unicode).iter().enumerate() {
            let name = if at == 0 { *name } else { "" };
            out.push_str(&style.paint(Tone::Dim, &format!("{name:NAMES$}")));
            out.push_str(row);
            out.push('\n');
        }
    }
    out
}
