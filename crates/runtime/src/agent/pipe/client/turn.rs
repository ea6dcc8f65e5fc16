//! One turn: everything between a prompt and the client's answer that it is over.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use verdone_core::agent::claude::ContextUse;
use verdone_core::agent::protocol::{FinishedCall, GuardedCall, PermissionRequest, Step, TurnEnd, Verdict, prompt_after_denial};
use verdone_core::agent::{AllowanceUse, TurnOutcome, Usage};
use verdone_core::base::redact::Redactor;
use verdone_core::hook::Answer;

use super::super::judge::CallJudge;
use super::{Client, TICK};
use crate::base::active_clock::Stopwatch;
use crate::process::output::{Capture, Stream};
use crate::process::signal::{Signals, Stop};
use crate::process::{FloodLimit, HeldUp, Moment, Received};

/// How often a turn that a denial ended is continued. An agent that repeats denied calls must not go on for ever.
const MOST_CONTINUED: u32 = 10;
/// How many texts are kept for the next prompt.
const MOST_KEPT: usize = 20;

/// Time limits for a turn, and for ending it gracefully.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TurnLimits {
    pub(in super::super) wall: Option<Duration>,
    pub(in super::super) idle: Option<Duration>,
    pub(in super::super) grace: Duration,
}

/// Why we ended a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum TurnAbort {
    Wall,
    Idle,
    Stopped,
    /// The guard ended it, and has recorded why.
    Asked,
    /// A call ran that policy denies, for this reason.
    Unguarded(String),
}

/// A finished turn.
#[derive(Debug, Default)]
pub(in super::super) struct Turn {
    pub(in super::super) end: Option<TurnEnd>,
    pub(in super::super) cut: Option<TurnAbort>,
    pub(in super::super) duration: Duration,
    pub(in super::super) leftovers: u32,
    pub(in super::super) usage: Usage,
    pub(in super::super) context: Option<ContextUse>,
    pub(in super::super) allowance: Option<AllowanceUse>,
    pub(in super::super) compactions: u32,
    /// Texts for the next prompt.
    pub(in super::super) kept: Vec<String>,
    /// Why the turn must end, until the client was told.
    must_end: Option<TurnAbort>,
    continued: u32,
    /// Whether the client ran something.
    ran: bool,
}

/// Callbacks and buffers for the lines of a turn.
pub(in super::super) struct TurnHandlers<'a> {
    pub(in super::super) judge: CallJudge<'a>,
    pub(in super::super) on: &'a mut dyn FnMut(Moment<'_>),
    pub(in super::super) held_up: &'a HeldUp,
    pub(in super::super) capture: Capture<'a>,
    pub(in super::super) flow: FloodLimit,
    pub(in super::super) redactor: &'a Redactor,
}

impl TurnHandlers<'_> {
    fn show(&mut self, stream: Stream, text: &str) {
        let text = self.redactor.redact(text);
        self.flow.line(stream, &text, &mut |stream, text| (self.on)(Moment::Line { stream, text }));
    }

    fn record(&mut self, stream: Stream, bytes: &[u8]) {
        self.capture.push(stream, bytes, &mut |_, _| {});
        self.capture.push(stream, b"\n", &mut |_, _| {});
    }

    fn tick(&mut self, now: Duration) {
        self.capture.flush();
        self.flow.fill(now, &mut |stream, text| (self.on)(Moment::Line { stream, text }));
        (self.on)(Moment::Tick);
    }
}

impl Client {
    /// Sends one prompt and processes everything until the client stops.
    pub(in super::super) fn turn(
        &mut self,
        prompt: &str,
        limits: TurnLimits,
        signals: &Signals,
        handlers: &mut TurnHandlers<'_>,
    ) -> Turn {
        self.thaw();
        self.process.begin_turn();
        let mut turn = Turn::default();
        let clock = Stopwatch::start();
        let steps = self.protocol.prompt(prompt);
        self.perform(steps, &mut turn, handlers);
        self.until_over(&clock, limits, signals, handlers, &mut turn);
        self.after_tool.end(turn.cut.is_some());
        turn.duration = clock.elapsed();
        // Freeze before ending leftovers: a background command that ends would wake the agent.
        self.freeze();
        if !self.gone && turn.ran {
            turn.leftovers = self.process.end_leftovers(limits.grace.min(Duration::from_secs(1)), signals);
        }
        turn
    }

    fn until_over(
        &mut self,
        clock: &Stopwatch,
        limits: TurnLimits,
        signals: &Signals,
        handlers: &mut TurnHandlers<'_>,
        turn: &mut Turn,
    ) {
        let (mut last_output, mut last_tick) = (Duration::ZERO, Duration::ZERO);
        let mut deadline: Option<Duration> = None;
        while turn.end.is_none() {
            let received = self.process.receive(TICK);
            let mut now = clock.elapsed();
            if self.after_tool.heed(signals) {
                // A command of the user's is running, so the client is not idle.
                last_output = now;
            }
            match received {
                Received::Line(stream, bytes) => {
                    last_output = now;
                    self.line(stream, &bytes, turn, handlers);
                }
                Received::Exited => return self.exited(turn),
                Received::Nothing => {}
            }
            self.pass_on_results(turn, handlers);
            if now.saturating_sub(last_tick) >= TICK {
                last_tick = now;
                handlers.tick(now);
                now = clock.elapsed();
                if handlers.held_up.take_waited() {
                    last_output = now;
                }
            }
            let over = |limit: Option<Duration>, since: Duration| limit.is_some_and(|limit| now.saturating_sub(since) >= limit);
            let why = match signals.stop() {
                Some(_) => Some(TurnAbort::Stopped),
                None if turn.must_end.is_some() => turn.must_end.take(),
                None if over(limits.wall, handlers.held_up.time()) => Some(TurnAbort::Wall),
                None if over(limits.idle, last_output) => Some(TurnAbort::Idle),
                None => None,
            };
            match (deadline, why) {
                (None, Some(why)) if turn.end.is_none() => {
                    turn.cut = Some(why);
                    deadline = Some(now + limits.grace);
                    let steps = self.protocol.interrupt();
                    self.perform(steps, turn, handlers);
                }
                (Some(until), _) if now >= until || matches!(signals.stop(), Some(Stop::Insisted(_))) => {
                    self.process.kill();
                    self.gone = true;
                    return;
                }
                (Some(_) | None, _) => {}
            }
        }
        // What ended the turn may have come with its last line.
        if turn.cut.is_none() {
            turn.cut = turn.must_end.take();
        }
    }

    fn exited(&mut self, turn: &mut Turn) {
        self.gone = true;
        let reason = format!("{} ended during the turn: {}", self.title, self.last_line());
        turn.end = Some(TurnEnd { spent: true, ..TurnEnd::with_outcome(TurnOutcome::Crashed { reason }) });
    }

    /// Stores a line, and does what it requests.
    fn line(&mut self, stream: Stream, bytes: &[u8], turn: &mut Turn, handlers: &mut TurnHandlers<'_>) {
        handlers.record(stream, bytes);
        match stream {
            Stream::Stderr => {
                self.remember(bytes);
                handlers.show(stream, &String::from_utf8_lossy(bytes));
            }
            Stream::Stdout => {
                let steps = self.protocol.line(bytes, Timestamp::now());
                self.perform(steps, turn, handlers);
            }
        }
    }

    fn perform(&mut self, steps: Vec<Step>, turn: &mut Turn, handlers: &mut TurnHandlers<'_>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Send(line) => self.send(line),
                Step::Said(text) => text.lines().for_each(|line| handlers.show(Stream::Stdout, line)),
                Step::Ask(question) => steps.extend(self.decide(&question, turn, handlers)),
                Step::Unasked(call) => self.check_unasked(&call, turn, handlers),
                Step::Finished(ended) => self.finished(&ended, turn, handlers),
                Step::Keep(text) => keep(turn, text),
                Step::Context(context) => turn.context = Some(context),
                Step::Allowance(allowance) => turn.allowance = Some(allowance),
                Step::Compacted => turn.compactions += 1,
                Step::TurnOver(end) => steps.extend(self.over(*end, turn)),
                // A session opens only between turns.
                Step::Opened { .. } | Step::NotOpened(_) => {}
            }
        }
    }

    fn decide(&mut self, question: &PermissionRequest, turn: &mut Turn, handlers: &mut TurnHandlers<'_>) -> Vec<Step> {
        self.adopt_children_once();
        turn.ran = true;
        // While a turn is being ended, nothing new may start.
        let verdict = if turn.cut.is_some() {
            Verdict::Deny { reason: "the turn is being ended".to_owned() }
        } else {
            handlers.judge.verdict(&self.session, question)
        };
        self.protocol.answer(&question.request, &verdict)
    }

    /// A call that was not asked for counts as guarded only if policy would have allowed it.
    fn check_unasked(&self, call: &GuardedCall, turn: &mut Turn, handlers: &TurnHandlers<'_>) {
        turn.ran = true;
        if let Verdict::Deny { reason } = handlers.judge.about(&self.session, call) {
            let reason = format!("{} ran a call without asking: {reason}", self.title);
            turn.must_end.get_or_insert(TurnAbort::Unguarded(reason));
        }
    }

    fn finished(&mut self, ended: &FinishedCall, turn: &mut Turn, handlers: &mut TurnHandlers<'_>) {
        turn.ran = true;
        let judged = handlers.judge.finished(&self.session, ended);
        match judged.pending {
            Some(pending) => self.after_tool.begin(pending),
            None => self.pass_on(&judged.answer, turn, handlers),
        }
    }

    fn pass_on_results(&mut self, turn: &mut Turn, handlers: &mut TurnHandlers<'_>) {
        for answer in self.after_tool.answers() {
            self.pass_on(&answer, turn, handlers);
        }
    }

    /// Does what the guard answered after a call.
    fn pass_on(&mut self, answer: &Answer, turn: &mut Turn, handlers: &mut TurnHandlers<'_>) {
        match answer {
            Answer::EndTurn { .. } => {
                turn.must_end.get_or_insert(TurnAbort::Asked);
            }
            Answer::Context { text, .. } | Answer::Block { reason: text } => {
                let steps = self.protocol.inform(text);
                self.perform(steps, turn, handlers);
            }
            Answer::Silent | Answer::ToolUse(_) | Answer::PermissionRequest(_) | Answer::Refuse { .. } | Answer::Tell { .. } => {}
        }
    }

    /// Ends the turn, or continues it if only a denial ended it.
    fn over(&mut self, end: TurnEnd, turn: &mut Turn) -> Vec<Step> {
        turn.usage = turn.usage.and(end.usage);
        let ended_by_denial = end.by_denial && end.outcome == TurnOutcome::Ended && !turn.kept.is_empty();
        if ended_by_denial && turn.cut.is_none() && turn.must_end.is_none() && turn.continued < MOST_CONTINUED {
            turn.continued += 1;
            return self.protocol.prompt(&prompt_after_denial(&std::mem::take(&mut turn.kept)));
        }
        turn.end = Some(end);
        Vec::new()
    }
}

fn keep(turn: &mut Turn, text: String) {
    if turn.kept.len() < MOST_KEPT && !turn.kept.contains(&text) {
        turn.kept.push(text);
    }
}
