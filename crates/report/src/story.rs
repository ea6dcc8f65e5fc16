//! Everything about one story, for `verdone show STORY`.

use verdone_core::agent::{SessionUse, TurnOutcome};
use verdone_core::base::id::StoryId;
use verdone_core::check::CheckRun;
use verdone_core::done::JudgeRecord;
use verdone_core::journal::view::{AttemptView, RunView, StoryView, TurnView, VerificationView};
use verdone_core::verify::{Outcome, Tree, VerifyReport};
use verdone_text::sentence::capitalise;

use crate::event_lines::{files, judged, kept as kept_line, name};
use crate::guard::guard_told;
use crate::questions::question_about;
use crate::result_text::{
    argument, changed_label, committed_as, outcome_and_proof, reason_mark, report_mark, report_words, result_mark, tree_words,
};
use crate::style::{Mark, Style, Tone};
use crate::summary::{result_of, story_mark};
use crate::width::{clean, wrap};
use crate::wording::{
    WITH_STORY, because, check_mark, compacted, context, cut_commands, duration, ended, facts, is_verified, last_words, plural,
    red, rejected, short_digest, token_kinds, usage,
};

/// `None` if the run never worked on it.
pub fn story(view: &RunView, id: &StoryId, style: &Style) -> Option<String> {
    let story = view.story(id)?;
    let now = view.active_ms();
    let mut page = Page { out: String::new(), style };
    page.head(view, story, now);
    for attempt in &story.attempts {
        page.attempt(view, attempt, now);
    }
    page.review(story);
    page.takeover(story);
    Some(page.out)
}

struct Page<'a> {
    out: String,
    style: &'a Style,
}

impl Page<'_> {
    fn put(&mut self, indent: usize, mark: Option<Mark>, tone: Tone, text: &str) {
        let lead = indent + 2;
        let sign = mark.map_or_else(|| " ".to_owned(), |mark| self.style.mark(mark));
        for (at, row) in wrap(text, self.style.width.saturating_sub(lead).max(1), 8, self.style.unicode).iter().enumerate() {
            let sign = if at == 0 { sign.as_str() } else { " " };
            let line = format!("{}{sign} {}", " ".repeat(indent), self.style.paint(tone, row));
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn note(&mut self, indent: usize, text: &str) {
        self.put(indent, None, Tone::Dim, text);
    }

    fn head(&mut self, view: &RunView, story: &StoryView, now: u64) {
        self.put(0, Some(story_mark(story)), Tone::Strong, &name(story.id.as_str(), &story.title));
        let dot = self.style.dot();
        let mut facts = vec![
            story.result.map_or_else(|| result_of(view, story).to_owned(), outcome_and_proof),
            plural(story.attempts.len(), "attempt", "attempts"),
            plural(story.turns(), "turn", "turns"),
            duration(story.duration_ms(now)),
        ];
        facts.extend(usage(story.cost_usd, story.tokens));
        if story.false_claims() > 0 {
            facts.push(plural(story.false_claims(), "false claim of done", "false claims of done"));
        }
        self.put(0, None, Tone::Plain, &facts.join(dot));
        if let Some(kinds) = story.tokens_by_kind {
            self.note(0, &format!("tokens: {}", token_kinds(kinds)));
        }
        self.reasons(story);
        if let Some(text) = question_about(view, &story.id) {
            self.put(0, None, Tone::Warn, &text);
        }
    }

    /// Why it failed, or why it needs or needed review.
    fn reasons(&mut self, story: &StoryView) {
        let outcome = story.result.map(|result| result.outcome);
        match (&story.review, outcome) {
            (Some(review), Some(Outcome::NeedsReview | Outcome::Accepted)) => {
                let by = review.settled_by.as_ref().map(|by| format!("Accepted by {}, who was shown:", clean(by)));
                self.put(0, None, Tone::Plain, by.as_deref().unwrap_or("Needs review, because:"));
                for reason in &review.reasons {
                    self.put(2, Some(Mark::Warn), Tone::Plain, &capitalise(&clean(reason)));
                }
            }
            (_, Some(Outcome::Failed)) => {
                self.put(0, None, Tone::Plain, &because("Failed", story.reason.as_deref().unwrap_or_default()));
            }
            (_, Some(Outcome::Done | Outcome::NeedsReview | Outcome::Accepted) | None) => {
                let reason = story.reason.as_deref().unwrap_or_default();
                if !reason.is_empty() {
                    self.put(0, None, Tone::Plain, &capitalise(&clean(reason)));
                }
            }
        }
    }

    /// The commands for work that waits for a review.
    fn review(&mut self, story: &StoryView) {
        let is_waiting = story.result.is_some_and(|result| result.outcome == Outcome::NeedsReview);
        let Some(review) = story.review.as_ref().filter(|_| is_waiting) else { return };
        let (id, work) = (argument(&story.id), clean(review.work.short()));
        self.out.push('\n');
        self.put(0, None, Tone::Strong, "To review it:");
        for (command, what) in [
            (format!("git show {work}"), "shows the work"),
            (format!("verdone accept {id}"), "checks it again and accepts it"),
            (format!("verdone reject {id}"), "drops it; the story fails"),
        ] {
            self.put(2, None, Tone::Plain, &format!("{command}{}{what}", self.style.dot()));
        }
    }

    fn attempt(&mut self, view: &RunView, attempt: &AttemptView, now: u64) {
        self.out.push('\n');
        let took = duration(attempt.duration_ms(now));
        self.put(0, None, Tone::Strong, &format!("Attempt {} (iteration {}, {took})", attempt.attempt, attempt.iteration));
        if let Some(found) = attempt.red {
            self.put(2, Some(Mark::Info), Tone::Plain, &capitalise(red(found)));
            self.runs(&attempt.red_runs, 4, |_| Mark::Info);
        }
        for turn in &attempt.turns {
            self.turn(turn);
            for seen in attempt.verifications.iter().filter(|seen| seen.turn == turn.turn) {
                self.verification(seen);
            }
        }
        for seen in attempt.verifications.iter().filter(|seen| attempt.turns.iter().all(|turn| turn.turn != seen.turn)) {
            self.verification(seen);
        }
        if let Some(guard) = &attempt.guard {
            self.put(2, Some(Mark::Warn), Tone::Plain, &guard_told(view, guard));
        }
        self.end(attempt);
    }

    fn turn(&mut self, turn: &TurnView) {
        let (mark, said) = match &turn.outcome {
            None => (Mark::Info, "agent working".to_owned()),
            Some(TurnOutcome::Ended) => (Mark::Info, format!("agent stopped after {}", duration(turn.duration_ms))),
            Some(end) => (Mark::Bad, format!("agent {}", clean(&end.describe()))),
        };
        let used =
            usage(turn.usage.cost_usd, turn.usage.tokens).map_or_else(String::new, |used| format!("{}{used}", self.style.dot()));
        self.put(2, Some(mark), Tone::Plain, &format!("Turn {}: {said}{used}", turn.turn));
        let kept = [("prompt", &turn.prompt), ("output", &turn.output)];
        let kept: Vec<String> =
            kept.iter().filter_map(|(what, file)| file.as_ref().map(|file| format!("{what} {}", clean(file)))).collect();
        if !kept.is_empty() {
            self.note(4, &kept.join(self.style.dot()));
        }
        if let Some(claim) = &turn.claim {
            self.note(4, &format!("claimed: {}", last_words(claim)));
        }
        if let Some(session) = &turn.session {
            self.session(session);
        }
    }

    fn session(&mut self, session: &SessionUse) {
        let how = session.fresh.as_ref().map_or_else(|| "same session".to_owned(), |why| format!("fresh: {}", clean(why)));
        let id = format!("session {}", clean(&session.id));
        let facts = [Some(id), Some(how), context(session), compacted(session), cut_commands(session)];
        self.note(4, &facts.into_iter().flatten().collect::<Vec<_>>().join(self.style.dot()));
    }

    /// How to talk to the agent about the story: in a fork, so that the run's session does not change.
    fn takeover(&mut self, story: &StoryView) {
        let turns = story.attempts.iter().flat_map(|attempt| &attempt.turns);
        // The client chose this id. Accept only plain ids, so that nothing else becomes part of a command.
        let plain =
            |id: &&str| !id.is_empty() && !id.starts_with('-') && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let Some(id) = turns.filter_map(|turn| turn.session.as_ref()).next_back().map(|last| last.id.as_str()).filter(plain)
        else {
            return;
        };
        self.out.push('\n');
        self.put(0, None, Tone::Plain, "To continue the agent's last session yourself (in a copy), run in the project folder:");
        self.out.push_str(&format!("    claude --resume {id} --fork-session\n"));
        self.note(0, "It runs without Verdone's guards; verdone install adds them to your own sessions.");
    }

    fn judge(&mut self, judge: &JudgeRecord) {
        let (mark, said) = judged(judge, self.style.dot());
        self.put(4, Some(mark), Tone::Plain, &said);
        if let Some(session) = &judge.session {
            self.note(6, &format!("session {}", clean(session)));
        }
        if judge.denied > 0 {
            self.note(
                6,
                &format!("{} that would have changed files", plural(judge.denied as usize, "denied call", "denied calls")),
            );
        }
        for looked in &judge.checked {
            self.note(6, &format!("looked at: {}", clean(looked)));
        }
    }

    fn verification(&mut self, seen: &VerificationView) {
        let claim = if seen.false_claim { ", though claimed done" } else { "" };
        let changed = plural(seen.changed as usize, "changed file", "changed files");
        let said = format!("Verification: {}{claim}{}{changed}", report_words(&seen.report), self.style.dot());
        self.put(2, Some(report_mark(&seen.report)), Tone::Plain, &said);
        self.report(&seen.report, 4);
        if let Some(judge) = &seen.judge {
            self.judge(judge);
        }
        if !seen.restored.is_empty() {
            self.note(4, &format!("ignored the agent's changes to {}", files(&seen.restored)));
        }
    }

    /// The reasons, then the checks on each tree that was needed.
    fn report(&mut self, report: &VerifyReport, indent: usize) {
        for reason in &report.reasons {
            self.put(indent, Some(reason_mark(reason)), Tone::Plain, &capitalise(&clean(&reason.to_string())));
        }
        if let Some(label) = changed_label(&report.protected) {
            self.put(indent, Some(Mark::Info), Tone::Plain, &capitalise(&label));
        }
        let ids = &report.trees;
        for (tree, id) in [
            (Tree::Base, ids.base.as_ref()),
            (Tree::Attempt, Some(&ids.attempt)),
            (Tree::Pristine, ids.pristine.as_ref()),
            (Tree::Proof, ids.proof.as_ref()),
        ] {
            let runs = report.runs_on(tree);
            let id = id.filter(|id| !id.as_str().is_empty());
            if runs.is_empty() && (tree != Tree::Attempt || id.is_none()) {
                continue;
            }
            let id = id.map_or_else(String::new, |id| format!(" (tree {})", clean(id.short())));
            let nothing = if runs.is_empty() { " no check ran" } else { "" };
            self.note(indent, &format!("{}{id}:{nothing}", tree_words(tree)));
            // Without the work, checks are expected to fail.
            let mark = match tree {
                Tree::Base | Tree::Proof => |_: &CheckRun| Mark::Info,
                Tree::Attempt | Tree::Pristine => check_mark,
            };
            self.runs(runs, indent, mark);
        }
    }

    /// The evidence, check by check.
    fn runs(&mut self, runs: &[CheckRun], indent: usize, mark: fn(&CheckRun) -> Mark) {
        for run in runs {
            let (command, name) = (clean(&run.command.display()), clean(&run.name));
            let command = if command == name { String::new() } else { format!(" ({command})") };
            let dot = self.style.dot();
            let said = format!("{name}{command}: {}{}", ended(run), facts(run, dot));
            self.put(indent, Some(mark(run)), Tone::Plain, &said);
            let digest: String = run.output_digest.chars().take(12).collect();
            let file = run.output.as_ref().map_or_else(String::new, |file| format!("{dot}{}", clean(file)));
            self.note(indent + 2, &format!("output sha256 {}{file}", clean(&digest)));
        }
    }

    /// The digests of the evidence, as in notes and trailers.
    fn evidence(&mut self, attempt: &AttemptView) {
        let named = [("evidence", &attempt.evidence), ("after", &attempt.previous), ("gates", &attempt.gates)];
        let named = named.iter().filter_map(|(what, digest)| Some(format!("{what} {}", short_digest(digest.as_ref()?))));
        let named = named.collect::<Vec<_>>().join(self.style.dot());
        if !named.is_empty() {
            self.note(4, &named);
        }
    }

    /// What proved each criterion, if anything did.
    fn criteria(&mut self, attempt: &AttemptView) {
        for each in &attempt.criteria {
            let (mark, prover) = match &each.prover {
                Some(prover) => (Mark::Good, clean(prover)),
                None if is_verified(attempt) => (Mark::Info, WITH_STORY.to_owned()),
                None => (Mark::Unproven, "not proven".to_owned()),
            };
            self.put(4, Some(mark), Tone::Plain, &format!("{} ({prover})", clean(&each.text)));
        }
    }

    fn end(&mut self, attempt: &AttemptView) {
        if let Some(message) = &attempt.refused {
            self.put(2, Some(Mark::Bad), Tone::Plain, &because("Commit refused", message));
        }
        if let (Some(commit), Some(result)) = (&attempt.commit, attempt.result) {
            let files = plural(attempt.files as usize, "file", "files");
            let (dot, commit) = (self.style.dot(), clean(commit.short()));
            self.put(
                2,
                Some(result_mark(result)),
                Tone::Plain,
                &format!("Committed {commit}{dot}{}{dot}{files}", committed_as(result)),
            );
            self.note(4, &format!("git show {commit}"));
            self.evidence(attempt);
            self.criteria(attempt);
        }
        if let Some(why) = &attempt.rejection {
            let (mark, said) = rejected(why, attempt.reason.as_deref().unwrap_or_default());
            self.put(2, Some(mark), Tone::Plain, &said);
        }
        if let Some(kept) = &attempt.kept {
            self.put(2, Some(Mark::Back), Tone::Plain, &kept_line(kept, attempt.files));
            if let Some(base) = &attempt.base {
                self.note(4, &format!("git diff {} {}", clean(base.short()), clean(kept.short())));
            }
        }
    }
}
