//! The loop that supervises one child from its start until all of its processes are gone.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::flood_limit::FloodLimit;
use super::launch::{self, Launched, Prepared, prepare};
use super::{Ended, Exit, HeldUp, Moment, Spawn, SpawnError, Stdin, tree};
use crate::base::active_clock::Stopwatch;
use crate::launcher::Inside;
use crate::process::output::{Capture, Captured, Stream, create_fresh};
use crate::process::signal::{Signals, Stop};

const TICK: Duration = Duration::from_millis(125);
/// How long the pipes may stay open after the exit before the processes holding them are ended, and how long after that.
const DRAIN: Duration = Duration::from_millis(250);
const DRAIN_AGAIN: Duration = Duration::from_secs(1);
/// A killed process that still exists after this is stuck in the kernel, and waiting longer does not help.
const STUCK: Duration = Duration::from_secs(5);
/// Leftovers are unwanted, so they get less grace than the process itself.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// The length of the report queue. A flood blocks the child instead of filling memory.
pub(super) const QUEUE: usize = 32;
const CHUNK: usize = 32 * 1024;

/// Starts a process and waits until it and everything it started is gone.
pub fn run(spawn: &Spawn<'_>, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> Result<Ended, SpawnError> {
    run_excusing(spawn, signals, &HeldUp::default(), on)
}

/// Like [`run`], but `on` may make the process wait and excuse it for that.
pub fn run_excusing(
    spawn: &Spawn<'_>,
    signals: &Signals,
    held_up: &HeldUp,
    on: &mut dyn FnMut(Moment<'_>),
) -> Result<Ended, SpawnError> {
    if ends_by_itself(spawn) {
        return watch(spawn, signals, held_up, on, &After::Namespace);
    }
    let sweep = Sweep::begin();
    watch(spawn, signals, held_up, on, &After::Sweep(&sweep))
}

/// Like [`run`], but while other processes of ours are running: ends only its own group. Processes that escape from the group are ended by
/// the caller's [`Sweep`] at the end.
pub fn run_without_sweep(spawn: &Spawn<'_>, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> Result<Ended, SpawnError> {
    let after = if ends_by_itself(spawn) { After::Namespace } else { After::Group };
    watch(spawn, signals, &HeldUp::default(), on, &after)
}

/// Like [`run_without_sweep`], but immediately ends leftovers that still have this environment
/// variable. Leftovers that removed it are found by the next full sweep.
pub fn run_and_end_marked(spawn: &Spawn<'_>, mark: (&str, &str), signals: &Signals) -> Result<Ended, SpawnError> {
    tree::adopt_orphans();
    let after = if ends_by_itself(spawn) { After::Namespace } else { After::Marked(mark) };
    watch(spawn, signals, &HeldUp::default(), &mut |_| {}, &after)
}

fn ends_by_itself(spawn: &Spawn<'_>) -> bool {
    spawn.inside.as_ref().is_some_and(Inside::ends_all)
}

/// What to end after the process has exited.
enum After<'a> {
    Sweep(&'a Sweep),
    Group,
    Marked((&'a str, &'a str)),
    /// Nothing: it was alone in a pid namespace, which the kernel ends with it.
    Namespace,
}

/// The processes that exist before something is started. All others are its leftovers afterwards.
#[derive(Debug)]
pub struct Sweep(tree::Spared);

impl Sweep {
    pub fn begin() -> Self {
        tree::adopt_orphans();
        Self(tree::Spared { alone: Vec::new(), families: tree::descendants() })
    }

    /// Ends the leftovers. No other thread may be waiting for a child at the same time.
    pub fn end(&self, grace: Duration, signals: &Signals) -> u32 {
        tree::end_leftovers(&self.0, grace.min(LEFTOVER_GRACE), signals)
    }
}

fn watch(
    spawn: &Spawn<'_>,
    signals: &Signals,
    held_up: &HeldUp,
    on: &mut dyn FnMut(Moment<'_>),
    after: &After<'_>,
) -> Result<Ended, SpawnError> {
    if let Some(signal) = signals.requested() {
        let output = Captured { digest: verdone_core::base::id::digest(b""), ..Captured::default() };
        return Ok(Ended { exit: Exit::Interrupted(signal), output, duration: Duration::ZERO, leftovers: 0 });
    }
    let keep = |path: &std::path::PathBuf| create_fresh(path).map_err(|source| SpawnError::Keep { path: path.clone(), source });
    let file = spawn.keep.as_ref().map(keep).transpose()?;
    let Launched { mut child, report } = start(spawn)?;
    let mut watch = Watch::begin(spawn, signals, held_up, &mut child, file, on)?;
    let why = watch.until_exit();
    watch.drain(DRAIN);
    if matches!(after, After::Group) {
        watch.ask_group();
    }
    let status = watch.end_group(&mut child);
    let leftovers = match after {
        After::Sweep(sweep) => sweep.end(spawn.grace, signals),
        After::Group => 0,
        After::Namespace => {
            watch.wait_for_namespace();
            0
        }
        After::Marked((name, value)) => tree::end_marked(name, value, spawn.grace.min(LEFTOVER_GRACE), signals),
    };
    watch.drain(DRAIN_AGAIN);
    let (output, duration) = watch.finish();
    if let (Some(report), Some(status)) = (report, status)
        && let Some(error) = launch::error(&report, status, spawn)
    {
        return Err(error);
    }
    let exit = why.or_else(|| status.map(exit_of)).unwrap_or(Exit::Signal(Signal::KILL.as_raw()));
    Ok(Ended { exit, output, duration, leftovers })
}

fn start(spawn: &Spawn<'_>) -> Result<Launched, SpawnError> {
    let Prepared { mut command, report } = prepare(spawn)?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(match spawn.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Bytes(_) => Stdio::piped(),
    });
    Ok(Launched { child: launch::spawn(&mut command)?, report })
}

/// What the threads report to the loop.
pub(super) enum Report {
    Output(Stream, Vec<u8>),
    Closed,
    /// Stopped because a background process tried to use the terminal.
    WantsTerminal,
    Exited,
    /// A signal arrived: check [`Signals`].
    Woken,
}

/// The phase of ending a process, with the time of the next step.
enum Phase {
    Running,
    Asked { why: Exit, until: Duration },
    Killed { why: Exit, until: Duration },
}

struct Watch<'w, 'a> {
    spawn: &'w Spawn<'a>,
    signals: &'w Signals,
    on: &'w mut dyn FnMut(Moment<'_>),
    group: Pid,
    reports: Receiver<Report>,
    capture: Capture<'a>,
    flow: FloodLimit,
    clock: Stopwatch,
    last_output: Duration,
    last_tick: Duration,
    held_up: &'w HeldUp,
    open_pipes: u8,
    exited: bool,
    phase: Phase,
    _subscription: crate::process::signal::Subscription,
}

impl<'w, 'a> Watch<'w, 'a> {
    fn begin(
        spawn: &'w Spawn<'a>,
        signals: &'w Signals,
        held_up: &'w HeldUp,
        child: &mut Child,
        file: Option<File>,
        on: &'w mut dyn FnMut(Moment<'_>),
    ) -> Result<Self, SpawnError> {
        let (sender, reports) = sync_channel(QUEUE);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child's pid is a positive pid_t");
        let mut threads: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        if let (Stdin::Bytes(bytes), Some(mut pipe)) = (&spawn.stdin, child.stdin.take()) {
            let bytes = bytes.clone();
            // A child may exit or close its stdin without reading everything; that is not an error.
            threads.push(Box::new(move || drop(pipe.write_all(&bytes))));
        }
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let to = sender.clone();
        threads.push(Box::new(move || read(out, Stream::Stdout, &to)));
        let to = sender.clone();
        threads.push(Box::new(move || read(err, Stream::Stderr, &to)));
        let to = sender.clone();
        threads.push(Box::new(move || wait_without_reaping(group, &to)));
        for body in threads {
            if let Err(source) = thread::Builder::new().name("child".to_owned()).spawn(body) {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                return Err(SpawnError::Failed { program: spawn.argv[0].to_string_lossy().into_owned(), source });
            }
        }
        // If the queue is full, the loop is awake anyway and checks the signals after every report.
        let wake = move || match sender.try_send(Report::Woken) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        };
        Ok(Self {
            spawn,
            signals,
            on,
            group,
            reports,
            capture: Capture::new(spawn.redactor, spawn.cap, file),
            flow: FloodLimit::new(),
            clock: Stopwatch::start(),
            last_output: Duration::ZERO,
            held_up,
            last_tick: Duration::ZERO,
            open_pipes: 2,
            exited: false,
            phase: Phase::Running,
            _subscription: signals.subscribe(wake),
        })
    }

    /// Waits until the process is gone. Returns why we ended it, if we did.
    fn until_exit(&mut self) -> Option<Exit> {
        while !self.exited {
            self.wait_for_output(TICK);
            if self.exited {
                break;
            }
            match self.phase {
                Phase::Running => self.watch_limits(),
                Phase::Asked { why, until } if self.clock.elapsed() >= until || self.insisted() => self.kill(why),
                Phase::Killed { until, .. } if self.clock.elapsed() >= until => break,
                Phase::Asked { .. } | Phase::Killed { .. } => {}
            }
        }
        match self.phase {
            Phase::Running => None,
            Phase::Asked { why, .. } | Phase::Killed { why, .. } => Some(why),
        }
    }

    fn watch_limits(&mut self) {
        let now = self.clock.elapsed();
        let over = |limit: Option<Duration>, since: Duration| limit.is_some_and(|limit| now.saturating_sub(since) >= limit);
        match self.signals.stop() {
            Some(Stop::Insisted(signal)) => self.kill(Exit::Interrupted(signal)),
            Some(Stop::Asked(signal)) => self.ask(Exit::Interrupted(signal)),
            None if over(self.spawn.wall, self.held_up.time()) => self.ask(Exit::Wall),
            None if over(self.spawn.idle, self.last_output) => self.ask(Exit::Idle),
            None => {}
        }
    }

    fn refuse_terminal(&mut self) {
        match self.phase {
            Phase::Running => self.ask(Exit::Terminal),
            Phase::Asked { .. } | Phase::Killed { .. } => {}
        }
    }

    fn insisted(&self) -> bool {
        matches!(self.signals.stop(), Some(Stop::Insisted(_)))
    }

    fn ask(&mut self, why: Exit) {
        let _ = kill_process_group(self.group, Signal::TERM);
        // A stopped process (one that tried to read from the terminal) receives TERM only after it is continued.
        let _ = kill_process_group(self.group, Signal::CONT);
        self.phase = Phase::Asked { why, until: self.clock.elapsed() + self.spawn.grace };
    }

    fn kill(&mut self, why: Exit) {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.phase = Phase::Killed { why, until: self.clock.elapsed() + STUCK };
    }

    /// Waits for the pipes to close: usually immediate, and never longer than `patience`.
    fn drain(&mut self, patience: Duration) {
        let until = self.clock.elapsed() + patience;
        while self.open_pipes > 0 && self.clock.elapsed() < until && !self.insisted() {
            self.wait_for_output(Duration::from_millis(20));
        }
    }

    /// Processes one report or a tick.
    fn wait_for_output(&mut self, patience: Duration) {
        let patience = patience.min(self.until_next_limit());
        match self.reports.recv_timeout(patience) {
            Ok(Report::Output(stream, bytes)) => {
                self.last_output = self.clock.elapsed();
                let mut show = |stream, text: &str| (self.on)(Moment::Line { stream, text });
                self.capture.push(stream, &bytes, &mut |stream, text| self.flow.line(stream, text, &mut show));
            }
            Ok(Report::Closed) => self.open_pipes -= 1,
            Ok(Report::WantsTerminal) => self.refuse_terminal(),
            Ok(Report::Exited) => self.exited = true,
            Ok(Report::Woken) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let now = self.clock.elapsed();
        if now.saturating_sub(self.last_tick) >= TICK {
            self.last_tick = now;
            self.capture.flush();
            self.flow.fill(now, &mut |stream, text| (self.on)(Moment::Line { stream, text }));
            (self.on)(Moment::Tick);
            if self.held_up.take_waited() {
                self.last_output = self.clock.elapsed();
            }
        }
    }

    fn until_next_limit(&mut self) -> Duration {
        let now = self.clock.elapsed();
        let wall = self.spawn.wall.map(|wall| (self.held_up.time() + wall).saturating_sub(now));
        let idle = self.spawn.idle.map(|idle| (self.last_output + idle).saturating_sub(now));
        let next = match self.phase {
            Phase::Running => wall.into_iter().chain(idle).min().unwrap_or(TICK),
            Phase::Asked { until, .. } | Phase::Killed { until, .. } => until.saturating_sub(now),
        };
        next.max(Duration::from_millis(1))
    }

    /// Sends TERM to the rest of the group.
    fn ask_group(&self) {
        if self.exited {
            let _ = kill_process_group(self.group, Signal::TERM);
        }
    }

    /// A killed launcher no longer waits for its namespace. We then adopt the namespace's first process, which is in the same group and
    /// exits only after everything else in the namespace.
    fn wait_for_namespace(&self) {
        let until = self.clock.elapsed() + STUCK;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        loop {
            match waitid(WaitId::Pgid(Some(self.group)), options) {
                Ok(None) if self.clock.elapsed() < until => thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Ends the rest of the group and reaps the process. Until then, the group id cannot be reused.
    fn end_group(&mut self, child: &mut Child) -> Option<ExitStatus> {
        if !self.exited {
            return None;
        }
        // If the process tree cannot be walked, only the group can be ended.
        if !tree::CAN_WALK || self.insisted() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
        child.wait().ok()
    }

    fn finish(self) -> (Captured, Duration) {
        let (on, mut flow) = (self.on, self.flow);
        let mut show = |stream, text: &str| on(Moment::Line { stream, text });
        flow.finish(&mut show);
        let output = self.capture.finish(&mut show);
        (output, self.clock.elapsed())
    }
}

pub(super) fn read(pipe: Option<impl Read>, stream: Stream, to: &SyncSender<Report>) {
    if let Some(mut pipe) = pipe {
        let mut chunk = vec![0; CHUNK];
        loop {
            match pipe.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(n) => {
                    if to.send(Report::Output(stream, chunk[..n].to_vec())).is_err() {
                        return;
                    }
                }
            }
        }
    }
    let _ = to.send(Report::Closed);
}

pub(super) fn wait_without_reaping(pid: Pid, to: &SyncSender<Report>) {
    loop {
        let events = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(pid), events) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some(status)) if status.stopped() => {
                // Consume this event, or it would be reported again immediately.
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
                let signal = status.stopping_signal();
                if [Signal::TTIN, Signal::TTOU].iter().any(|wanted| signal == Some(wanted.as_raw())) {
                    let _ = to.send(Report::WantsTerminal);
                }
            }
            Ok(_) | Err(_) => break,
        }
    }
    let _ = to.send(Report::Exited);
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}
