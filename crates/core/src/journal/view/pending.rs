//! Requests from another terminal until they take effect: what a user asked for is visible at once, not only once it has happened.

use super::{Phase, RunView};
use crate::agent::{PromptUse, TurnOutcome};
use crate::journal::agent_tools::OpenQuestion;
use crate::journal::control::Request;
use crate::journal::event::Place;

impl RunView {
    /// Adds requests that the run has not recorded yet, oldest first.
    pub fn ask_all<'r>(&mut self, requests: impl IntoIterator<Item = &'r Request>) {
        requests.into_iter().for_each(|request| self.ask(request));
    }

    /// The text of notes that no finished turn has used, oldest first.
    pub fn unused_notes(&self) -> Vec<String> {
        let pending = self.pending.iter().filter_map(|request| {
            let Request::Note { text } = request else { return None };
            Some(text)
        });
        self.in_prompt.iter().chain(pending).cloned().collect()
    }

    pub(super) fn ask(&mut self, request: &Request) {
        // The next run gets notes and answers.
        let outlives_run = matches!(request, Request::Note { .. } | Request::Answer { .. });
        if self.ended.is_some() && !outlives_run {
            return;
        }
        match request {
            Request::Pause if self.phase == Phase::Waiting => self.paused = true,
            Request::Pause if self.paused => {}
            Request::Resume => self.forget_pause(),
            Request::Question { story, reason, question, .. } => {
                self.questions.retain(|known| known.story != *story);
                let (reason, question) = (reason.clone(), question.clone());
                self.questions.push(OpenQuestion { story: story.clone(), reason, question, answer: None });
            }
            Request::Answer { story, text } => {
                if let Some(known) = self.questions.iter_mut().find(|known| known.story == *story) {
                    known.answer = Some(text.clone());
                }
            }
            Request::Claim { .. } | Request::Merge { .. } => {}
            Request::Retry { story } => {
                self.questions.retain(|known| known.story != *story);
                self.pending.retain(|pending| !matches!(pending, Request::Skip { story: skipped, .. } if skipped == story));
            }
            // Takes effect at once for every story but the current one.
            Request::Skip { story, .. } if self.current.as_ref().is_none_or(|current| current.story != *story) => {}
            Request::Stop | Request::StopAfterStory => {
                self.forget_pause();
                self.push(request);
            }
            Request::Pause | Request::Skip { .. } | Request::Note { .. } => self.push(request),
        }
    }

    /// Questions that the user has not answered yet.
    pub fn open_questions(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.questions.iter().filter(|question| question.answer.is_none())
    }

    /// What a change of the phase settles.
    pub(super) fn settle_requests(&mut self) {
        let ends_attempt = matches!(self.phase, Phase::Selecting | Phase::Resetting | Phase::Stopping | Phase::Stopped);
        if ends_attempt {
            self.pending.retain(|request| !matches!(request, Request::Skip { .. }));
        }
        match self.phase {
            // A pause begins after these.
            Phase::Keeping | Phase::Landing => {}
            Phase::Stopping | Phase::Stopped => self.pending.retain(|request| *request != Request::Pause),
            Phase::Starting
            | Phase::Baseline
            | Phase::Selecting
            | Phase::Resetting
            | Phase::RedChecking
            | Phase::Prompting
            | Phase::Working
            | Phase::Waiting
            | Phase::Verifying
            | Phase::Committing
            | Phase::Regressing => {
                let before = self.pending.len();
                self.pending.retain(|request| *request != Request::Pause);
                self.paused |= self.pending.len() < before;
            }
        }
    }

    /// The prompt of a turn takes all notes. A repeated turn keeps those it had.
    pub(super) fn give_notes(&mut self, place: &Place) {
        let is_repeated = self.current.as_ref().is_some_and(|current| current.story == place.story && current.turn == place.turn);
        if !is_repeated {
            self.in_prompt.clear();
        }
        self.in_prompt = self.unused_notes();
        self.pending.retain(|request| !matches!(request, Request::Note { .. }));
    }

    pub(super) fn settle_notes(&mut self, outcome: &TurnOutcome) {
        match outcome.prompt_use() {
            PromptUse::Used => self.in_prompt.clear(),
            PromptUse::Repeated => {}
            PromptUse::Lost => self.return_notes(),
        }
    }

    /// After the end of a run, only its unused notes still wait: for the next run.
    pub(super) fn keep_unused_notes(&mut self) {
        self.return_notes();
        self.pending.retain(|request| matches!(request, Request::Note { .. }));
    }

    /// The next prompt gets the notes that no turn has used.
    pub(super) fn return_notes(&mut self) {
        let returned = std::mem::take(&mut self.in_prompt).into_iter().map(|text| Request::Note { text });
        self.pending = returned.chain(std::mem::take(&mut self.pending)).collect();
    }

    fn forget_pause(&mut self) {
        self.paused = false;
        self.pending.retain(|request| *request != Request::Pause);
    }

    fn push(&mut self, request: &Request) {
        if !self.pending.contains(request) {
            self.pending.push(request.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::StoryId;

    fn note(text: &str) -> Request {
        Request::Note { text: text.to_owned() }
    }

    fn place(turn: u32) -> Place {
        Place { story: StoryId::from("A"), attempt: 1, turn }
    }

    fn enter(view: &mut RunView, phase: Phase) {
        view.phase = phase;
        view.settle_requests();
    }

    #[test]
    fn a_pause_is_pending_until_the_step_has_ended() {
        let mut view = RunView { phase: Phase::Working, ..RunView::default() };
        view.ask(&Request::Pause);
        assert_eq!((view.paused, view.pending.as_slice()), (false, &[Request::Pause][..]));
        enter(&mut view, Phase::Keeping);
        assert!(!view.paused, "an attempt is kept before the pause begins");
        enter(&mut view, Phase::Selecting);
        assert_eq!((view.paused, view.pending.len()), (true, 0));
        view.ask(&Request::Resume);
        assert!(!view.paused);
        enter(&mut view, Phase::Waiting);
        view.ask(&Request::Pause);
        assert_eq!((view.paused, view.pending.len()), (true, 0), "a wait is interrupted at once");
    }

    #[test]
    fn a_resume_or_a_stop_takes_a_pending_pause_back() {
        for (request, left) in [(Request::Resume, vec![]), (Request::StopAfterStory, vec![Request::StopAfterStory])] {
            let mut view = RunView { phase: Phase::Working, ..RunView::default() };
            view.ask_all([&Request::Pause, &request]);
            assert_eq!(view.pending, left);
            enter(&mut view, Phase::Verifying);
            assert!(!view.paused);
        }
    }

    #[test]
    fn notes_are_used_by_a_turn_that_ends_and_by_no_other() {
        let limit = TurnOutcome::UsageLimit { reason: String::new(), resets_at: None };
        for (outcome, unused) in [(TurnOutcome::Ended, &[][..]), (TurnOutcome::Interrupted, &["a"]), (limit, &["a"])] {
            let mut view = RunView::default();
            view.ask(&note("a"));
            view.give_notes(&place(1));
            assert_eq!(view.pending, []);
            view.settle_notes(&outcome);
            assert_eq!(view.unused_notes(), unused, "{outcome:?}");
        }
    }

    #[test]
    fn only_notes_outlive_the_run() {
        let mut view = RunView { phase: Phase::Working, ..RunView::default() };
        view.ask(&note("in the prompt"));
        view.give_notes(&place(1));
        view.ask_all([&Request::Stop, &note("later")]);
        view.keep_unused_notes();
        assert_eq!(view.pending, [note("in the prompt"), note("later")]);
    }
}
