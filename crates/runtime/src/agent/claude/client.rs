//! One process of the client: starts it, exchanges lines with it, answers its tool calls, and freezes it between turns.
//!
//! Between two turns the process is frozen. Otherwise, a background command that ends could wake the agent while its work is being checked.

mod requests;

use std::time::Duration;

use jiff::Timestamp;
use verdone_core::agent::call_repeats::RepeatedCall;
use verdone_core::agent::claude::{
    ClientExit, ClientLine, CommandLine, ContextUse, Hooks, Session, ToClient, TurnEnd, Uuid, parse,
};
use verdone_core::base::redact::Redactor;

use super::after_tool_threads::Errands;
use crate::base::active_clock::Stopwatch;
use crate::guard::Judgement;
use crate::process::output::{Capture, Stream};
use crate::process::signal::{Signals, Stop};
use crate::process::{EnvPlan, FloodLimit, HeldUp, LineProcess, Moment, Received, Spawn, SpawnError, Stdin};

/// A client that is silent for this long after its start never answers.
const START: Duration = Duration::from_mins(1);
const TICK: Duration = Duration::from_millis(125);
/// How many bytes of standard error are kept to explain an exit.
const LAST_WORDS: usize = 2_000;

/// Time limits for a turn, and for ending it gracefully.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnLimits {
    pub(super) wall: Option<Duration>,
    pub(super) idle: Option<Duration>,
    pub(super) grace: Duration,
    /// The number of identical calls in a row that ends a turn; 0 means no limit.
    pub(super) identical_calls: u32,
}

/// Why we ended a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TurnAbort {
    Wall,
    Idle,
    /// The agent makes the same call again and again.
    Looping(RepeatedCall),
    Stopped,
    /// A hook ended it.
    Asked(String),
}

/// A finished turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) end: Option<TurnEnd>,
    pub(super) cut: Option<TurnAbort>,
    pub(super) duration: Duration,
    pub(super) leftovers: u32,
    pub(super) context: Option<ContextUse>,
}

#[derive(Debug)]
pub(super) struct Client {
    companion: LineProcess,
    pub(super) session: Session,
    pub(super) hooks: Hooks,
    requests: u64,
    last_words: String,
    errands: Errands,
    gone: bool,
    frozen: bool,
    /// Whether a tool call was made. By then the client's own servers are running.
    settled: bool,
    /// Whether the model has been asked in this turn.
    begun: bool,
    /// The session started without a hook noticing.
    pub(super) unguarded: bool,
    /// The budget that the client was started with.
    pub(super) budget: Option<f64>,
}

/// The effect of one line from the client.
enum LineEffect {
    Nothing,
    TurnOver(Box<TurnEnd>),
    Answered { request: String, ok: bool, context: Option<ContextUse>, guarded: bool },
}

/// Callbacks and buffers for the lines of a turn.
pub(super) struct TurnHandlers<'a> {
    pub(super) judge: &'a dyn Fn(&[u8]) -> Judgement,
    /// Whether our hook saw the session start.
    pub(super) saw_start: &'a dyn Fn(&str) -> bool,
    /// Called when a hook that runs as a process fails.
    pub(super) hook_failed: &'a dyn Fn(&str),
    pub(super) on: &'a mut dyn FnMut(Moment<'_>),
    pub(super) held_up: &'a HeldUp,
    pub(super) capture: Capture<'a>,
    pub(super) flow: FloodLimit,
    pub(super) redactor: &'a Redactor,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("cannot find Verdone's executable: {0}")]
    Program(std::io::Error),
    #[error("the client exited immediately: {0}")]
    Ended(String),
    #[error("the client did not answer for {} s", START.as_secs())]
    Silent,
    #[error("the client does not support hook callbacks")]
    NoCallbacks,
    #[error("stopped")]
    Stopped,
}

impl Client {
    /// Starts the process and waits until its guard is in place.
    pub(super) fn start(
        line: CommandLine,
        spawn: &SpawnWith<'_>,
        session: Session,
        hooks: Hooks,
        budget: Option<f64>,
        signals: &Signals,
    ) -> Result<Self, ClientError> {
        let mut env = spawn.env.clone();
        env.unset.extend(line.unset.iter().map(Into::into));
        env.set.extend(line.set.into_iter().map(|(name, value)| (name.into(), value.into())));
        let spawn = Spawn {
            inside: spawn.inside.cloned(),
            argv: line.argv.into_iter().map(Into::into).collect(),
            cwd: spawn.cwd.to_owned(),
            env,
            stdin: Stdin::Null,
            wall: None,
            idle: None,
            grace: Duration::ZERO,
            cap: 0,
            keep: None,
            redactor: spawn.redactor,
        };
        let companion = LineProcess::start(&spawn, signals)?;
        let mut client = Self {
            companion,
            session,
            hooks,
            requests: 0,
            last_words: String::new(),
            errands: Errands::default(),
            gone: false,
            frozen: false,
            settled: false,
            unguarded: false,
            begun: false,
            budget,
        };
        if hooks == Hooks::Callbacks
            && let Err(error) = client.initialize(signals)
        {
            client.companion.kill();
            client.companion.end(Duration::ZERO, signals);
            return Err(error);
        }
        Ok(client)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Sends one prompt and processes everything until the client stops.
    pub(super) fn turn(
        &mut self,
        prompt: &str,
        uuid: &Uuid,
        limits: TurnLimits,
        signals: &Signals,
        ears: &mut TurnHandlers<'_>,
    ) -> Turn {
        self.thaw();
        self.companion.begin_turn();
        self.begun = false;
        self.session.sent(uuid);
        self.say(&ToClient::Prompt { uuid, text: prompt });
        let clock = Stopwatch::start();
        let (end, cut) = self.until_over(&clock, limits, signals, ears);
        // After the turn, no one reads their answers.
        self.errands.end();
        let duration = clock.elapsed();
        // Freeze before ending leftovers: a background command that ends would wake the agent.
        let context = if cut == Some(TurnAbort::Stopped) { None } else { self.measure(signals) }.or(self.session.context());
        self.freeze();
        Turn { end, cut, duration, leftovers: self.end_leftovers(limits.grace.min(Duration::from_secs(1)), signals), context }
    }

    /// Ends processes left by the turn. Without a tool call it started none, so any other process belongs to the client.
    fn end_leftovers(&mut self, grace: Duration, signals: &Signals) -> u32 {
        if self.gone || !self.settled {
            return 0;
        }
        self.companion.end_leftovers(grace, signals)
    }

    fn adopt_children_once(&mut self) {
        if !self.settled {
            self.settled = true;
            self.companion.adopt_children();
        }
    }

    fn until_over(
        &mut self,
        clock: &Stopwatch,
        limits: TurnLimits,
        signals: &Signals,
        ears: &mut TurnHandlers<'_>,
    ) -> (Option<TurnEnd>, Option<TurnAbort>) {
        let (mut last_output, mut last_tick) = (Duration::ZERO, Duration::ZERO);
        // Why the turn is being ended, and the deadline for that.
        let mut cutting: Option<(TurnAbort, Duration)> = None;
        loop {
            let heard = self.companion.receive(TICK);
            let mut now = clock.elapsed();
            let mut asked = None;
            if self.errands.heed(signals) {
                // The client is waiting for us, so it is not idle.
                last_output = now;
            }
            match heard {
                Received::Line(stream, bytes) => {
                    last_output = now;
                    match self.line(stream, &bytes, ears, &mut asked) {
                        LineEffect::TurnOver(end) => return (Some(*end), cutting.map(|(why, _)| why)),
                        LineEffect::Nothing | LineEffect::Answered { .. } => {}
                    }
                }
                Received::Exited => return (self.exited(), cutting.map(|(why, _)| why)),
                Received::Nothing => {}
            }
            if now.saturating_sub(last_tick) >= TICK {
                last_tick = now;
                ears.capture.flush();
                ears.flow.fill(now, &mut |stream, text| (ears.on)(Moment::Line { stream, text }));
                (ears.on)(Moment::Tick);
                now = clock.elapsed();
                if ears.held_up.take_waited() {
                    last_output = now;
                }
            }
            let over = |limit: Option<Duration>, since: Duration| limit.is_some_and(|limit| now.saturating_sub(since) >= limit);
            let why = match signals.stop() {
                Some(_) => Some(TurnAbort::Stopped),
                None if asked.is_some() => asked.map(TurnAbort::Asked),
                None if over(limits.wall, ears.held_up.time()) => Some(TurnAbort::Wall),
                None if over(limits.idle, last_output) => Some(TurnAbort::Idle),
                None => self.looping(limits).map(TurnAbort::Looping),
            };
            match (&cutting, why) {
                (None, Some(why)) => {
                    self.session.interrupt();
                    let request = self.request();
                    self.say(&ToClient::Interrupt { request: &request });
                    cutting = Some((why, now + limits.grace));
                }
                (Some((why, until)), _) if now >= *until || matches!(signals.stop(), Some(Stop::Insisted(_))) => {
                    let why = why.clone();
                    self.companion.kill();
                    self.gone = true;
                    let exit = ClientExit { how: "killed by Verdone".to_owned(), last_words: String::new() };
                    return (self.session.exited(&exit), Some(why));
                }
                (Some(_), _) | (None, None) => {}
            }
        }
    }

    fn looping(&self, limits: TurnLimits) -> Option<RepeatedCall> {
        let most = limits.identical_calls;
        self.session.repeated_call().filter(|repeated| most > 0 && repeated.times >= most).cloned()
    }

    /// Stores a line, shows the parts meant for people, and does what it requests.
    fn line(&mut self, stream: Stream, bytes: &[u8], ears: &mut TurnHandlers<'_>, asked: &mut Option<String>) -> LineEffect {
        ears.capture.push(stream, bytes, &mut |_, _| {});
        ears.capture.push(stream, b"\n", &mut |_, _| {});
        match stream {
            Stream::Stderr => {
                self.remember(bytes);
                let text = String::from_utf8_lossy(bytes);
                let text = ears.redactor.redact(&text);
                ears.flow.line(stream, &text, &mut |stream, text| (ears.on)(Moment::Line { stream, text }));
                LineEffect::Nothing
            }
            Stream::Stdout => self.handle_line(bytes, Some((ears, asked))),
        }
    }

    fn handle_line(&mut self, bytes: &[u8], ears: Option<(&mut TurnHandlers<'_>, &mut Option<String>)>) -> LineEffect {
        let Some(line) = parse(bytes) else { return LineEffect::Nothing };
        if let (ClientLine::Init(init), Some((ears, _))) = (&line, &ears) {
            // The hooks for the session start run before this line, and the model is asked after it.
            let unguarded = init.session_id.as_deref().is_some_and(|session| !(ears.saw_start)(session));
            if unguarded {
                self.unguarded = true;
                self.companion.kill();
            }
            // Calls judged by hook processes are not visible in time, and a turn may have
            // no calls. A turn can also start again within itself.
            if !self.settled && !self.begun {
                self.companion.adopt_children();
            }
            self.begun = true;
        }
        match (&line, ears) {
            (ClientLine::HookCallback(callback), Some((ears, asked))) => {
                if callback.callback == "PreToolUse" {
                    self.adopt_children_once();
                }
                let judged = (ears.judge)(callback.input.get().as_bytes());
                if let Some(call) = &judged.call {
                    self.session.judged(call);
                }
                if let (Some(pending), Some(voice)) = (judged.pending, self.companion.stdin_sender()) {
                    // If the answer ends the turn, that happens once the answer is sent.
                    self.errands.begin(pending, &callback.request, voice);
                } else {
                    self.say(&ToClient::Answer { request: &callback.request, answer: &judged.answer });
                    *asked = judged.ends_turn;
                }
            }
            // Deny tool calls outside a turn.
            (ClientLine::HookCallback(callback), None) => {
                self.say(&ToClient::Refuse { request: &callback.request, reason: "no turn is running" });
            }
            (ClientLine::ControlRequest { request, .. }, _) => {
                self.say(&ToClient::Refuse { request, reason: "not supported" });
            }
            (ClientLine::ControlAnswer(answer), _) => {
                return LineEffect::Answered {
                    request: answer.request.as_deref().unwrap_or_default().to_owned(),
                    ok: answer.succeeded(),
                    context: ContextUse::answered(&answer.context()).inspect(|_| self.session.measured(&answer.context())),
                    // Without `hook_on_failure_supported`, a failing callback lets the call through.
                    guarded: answer.initialize().hooks_applied && answer.initialize().hook_on_failure_supported,
                };
            }
            (line, Some((ears, _))) => {
                if uses_a_tool(line) {
                    self.adopt_children_once();
                }
                if let ClientLine::User(user) = line {
                    let faults = user.tool_results.iter().filter_map(|result| result.hook_fault.as_deref());
                    faults.for_each(|cause| (ears.hook_failed)(&ears.redactor.redact(cause)));
                }
                for said in line.said().iter().flat_map(|said| said.lines()) {
                    let text = ears.redactor.redact(said);
                    ears.flow.line(Stream::Stdout, &text, &mut |stream, text| (ears.on)(Moment::Line { stream, text }));
                }
            }
            (_, None) => {}
        }
        match self.session.feed(&line, Timestamp::now()) {
            Some(end) => LineEffect::TurnOver(Box::new(end)),
            None => LineEffect::Nothing,
        }
    }

    /// Ends the process gracefully. Returns how many other processes it left behind; those are ended as well.
    pub(super) fn end(mut self, grace: Duration, signals: &Signals) -> u32 {
        self.thaw();
        if self.gone {
            self.companion.kill();
        } else {
            // Closing the pipe is not enough if a background command is running: the client would wait for it.
            let request = self.request();
            self.say(&ToClient::EndSession { request: &request });
        }
        self.companion.end(grace, signals).1
    }

    fn exited(&mut self) -> Option<TurnEnd> {
        self.gone = true;
        let how = self.companion.exit_words();
        self.session.exited(&ClientExit { how, last_words: self.last_words.clone() })
    }

    fn freeze(&mut self) {
        if !self.gone && !self.frozen {
            self.frozen = true;
            self.companion.stop();
        }
    }

    fn thaw(&mut self) {
        if self.frozen {
            self.frozen = false;
            self.companion.go_on();
        }
    }

    fn say(&self, message: &ToClient<'_>) {
        self.companion.say(message.line().as_bytes().to_vec());
    }

    fn request(&mut self) -> String {
        self.requests += 1;
        format!("verdone-{}", self.requests)
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.last_words.push_str(&String::from_utf8_lossy(bytes));
        self.last_words.push('\n');
        let over = self.last_words.len().saturating_sub(LAST_WORDS);
        self.last_words.drain(..self.last_words.ceil_char_boundary(over));
    }

    pub(super) fn last_line(&self) -> String {
        let line = self.last_words.lines().map(str::trim).rfind(|line| !line.is_empty());
        line.map_or_else(|| self.companion.exit_words(), str::to_owned)
    }
}

fn uses_a_tool(line: &ClientLine<'_>) -> bool {
    let ClientLine::Assistant(assistant) = line else { return false };
    assistant.message.content.iter().any(|block| block.kind.as_deref() == Some("tool_use"))
}

/// Where and how to start the client.
pub(super) struct SpawnWith<'a> {
    pub(super) cwd: &'a std::path::Path,
    pub(super) inside: Option<&'a crate::launcher::Inside>,
    pub(super) env: EnvPlan,
    pub(super) redactor: &'a Redactor,
}
