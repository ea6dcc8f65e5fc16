//! Pages about several runs or several stories: the list of runs, and the stories of one run with the reasons for their results.

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;
use verdone_core::journal::view::{RunView, StoryView};

use crate::result_text::{first_of, results};
use crate::style::{Style, Tone};
use crate::summary::{result_of, story_mark};
use crate::width::{clean, wrap};
use crate::wording::{because, plural};

/// A run in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedRun {
    pub run: String,
    /// `running`, `ended`, or `died` if it stopped without recording an end.
    pub state: String,
    #[schemars(with = "Option<String>")]
    pub started: Option<jiff::Timestamp>,
    pub plan: String,
    pub agent: String,
    /// `2 verified, 1 failed`
    pub results: String,
    pub commits: u32,
    /// Story commits that are not on the user's branch.
    pub unlanded: u32,
    /// Story commits that were undone.
    pub undone: u32,
    pub cost_usd: Option<f64>,
    /// How the run ended, or what it did last.
    pub reason: Option<String>,
    /// Whether it is a loop of the user's own session.
    pub session_loop: bool,
}

impl ListedRun {
    pub fn new(run: &str, view: &RunView, is_active: bool) -> Self {
        let state = match (is_active, view.ended) {
            (true, _) => "running",
            (false, Some(_)) => "ended",
            (false, None) => "died",
        };
        Self {
            run: run.to_owned(),
            state: state.to_owned(),
            started: view.started,
            plan: view.plan.clone(),
            agent: view.agent.clone(),
            results: found(view),
            commits: view.commits,
            unlanded: view.unlanded,
            undone: view.touched.iter().filter(|story| story.undone).count() as u32,
            cost_usd: view.cost_usd,
            reason: view.reason.clone(),
            session_loop: view.session.is_some(),
        }
    }

    fn sentence(&self) -> String {
        let mut parts = vec![self.results.clone()];
        if self.commits > 0 {
            let commits = plural(self.commits as usize, "commit", "commits");
            let landed = match self.unlanded {
                _ if self.undone >= self.commits => "undone".to_owned(),
                0 => "landed".to_owned(),
                unlanded if unlanded + self.undone == self.commits => "not landed".to_owned(),
                unlanded => format!("{unlanded} not landed"),
            };
            let undone =
                if (1..self.commits).contains(&self.undone) { format!(", {} undone", self.undone) } else { String::new() };
            parts.push(format!("{commits}, {landed}{undone}"));
        }
        if self.session_loop {
            parts.push("session loop".to_owned());
        }
        if self.state != "ended" {
            parts.push(self.state.clone());
        }
        parts.join("; ")
    }
}

/// The list of runs: two lines each, so that it can be read on a narrow terminal.
pub fn runs(list: &[ListedRun], zone: &TimeZone, style: &Style) -> String {
    let mut out = String::new();
    for run in list {
        let started = run.started.map(|at| at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        let head = format!("{}  {started}  {}", clean(&run.run), clean(&run.plan));
        out.push_str(&paragraph(Tone::Strong, head.trim_end(), "", style));
        out.push_str(&paragraph(Tone::Plain, &run.sentence(), "  ", style));
    }
    out
}

/// Every story that a run worked on, with its result and the first reason for it.
pub fn stories(view: &RunView, style: &Style) -> String {
    let mut out = String::new();
    let run = view.run.as_ref().map_or_else(String::new, |run| format!("Run {}: ", clean(run.as_str())));
    out.push_str(&paragraph(Tone::Strong, &format!("{run}{}", found(view)), "", style));
    for story in &view.touched {
        let title = clean(&story.title);
        let id = clean(story.id.as_str());
        let name = if title.is_empty() || title == id { id } else { format!("{id}  {title}") };
        let mark = style.mark(story_mark(story));
        out.push_str(&paragraph(Tone::Plain, &format!("{mark} {name}"), "", style));
        out.push_str(&paragraph(Tone::Plain, &because(result_of(view, story), &reason(story)), "    ", style));
    }
    out
}

/// What came of the stories.
fn found(view: &RunView) -> String {
    match (results(view), view.touched.len()) {
        (_, 0) => "no story was worked on".to_owned(),
        (found, touched) if found.is_empty() => format!("{} worked on, none done", plural(touched, "story", "stories")),
        (found, _) => found,
    }
}

/// Why the story has its result: the reasons of its last verification.
fn reason(story: &StoryView) -> String {
    let last = story.attempts.iter().rev().find_map(|attempt| attempt.verifications.last());
    let reasons: Vec<String> =
        last.map(|found| found.report.reasons.iter().map(ToString::to_string).collect()).unwrap_or_default();
    first_of(&reasons)
}

fn paragraph(tone: Tone, text: &str, indent: &str, style: &Style) -> String {
    let room = style.width.saturating_sub(indent.len() + 2).max(1);
    let rows = wrap(text, room, 6, style.unicode);
    let line = |(at, row): (usize, &String)| {
        let more = if at == 0 { "" } else { "  " };
        format!("{indent}{more}{}\n", style.paint(tone, row))
    };
    rows.iter().enumerate().map(line).collect()
}
