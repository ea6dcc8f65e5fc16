//! A process that serves many turns and communicates in lines. Like any other, it has its own process group. The caller applies the limits,
//! because they belong to a turn and not to the process.
//!
//! Threads read and write the pipes, so a companion that does not read its input or floods its output blocks no one. Its output is held in
//! a bounded queue, and its input is written when it reads.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write as _;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::job_control;
use super::launch::{self, Prepared, prepare};
use super::supervise::{QUEUE, Report, read, wait_without_reaping};
use super::tree::{self, Process, Spared};
use super::{Spawn, SpawnError};
use crate::base::active_clock::Stopwatch;
use crate::launcher::{Inside, LaunchReport};
use crate::process::output::Stream;
use crate::process::signal::{Signals, Stop, Subscription};

/// A longer line is not a message. It is cut, so that the following lines can be parsed again.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
const POLL: Duration = Duration::from_millis(20);
const ALIVE: &str = "still running";
/// A killed process that still exists after this is stuck in the kernel.
const STUCK: Duration = Duration::from_secs(5);

pub struct LineProcess {
    child: Child,
    /// Where the workspace's launcher reports why the process was not started.
    launch: Option<LaunchReport>,
    group: Pid,
    in_view: bool,
    to: Option<Sender<Vec<u8>>>,
    reports: Receiver<Report>,
    lines: [PartLine; 2],
    heard: VecDeque<Received>,
    exited: bool,
    killed: bool,
    /// Its own helper processes, which no turn started.
    household: Vec<Process>,
    /// Processes that do not belong to it.
    strangers: Vec<Process>,
    _subscription: Subscription,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A line without its line end.
    Line(Stream, Vec<u8>),
    /// It has exited, and all of its output was read.
    Exited,
    /// No output in this time, or a signal arrived.
    Nothing,
}

impl LineProcess {
    /// Starts it. The limits in `spawn` do not apply.
    pub fn start(spawn: &Spawn<'_>, signals: &Signals) -> Result<Self, SpawnError> {
        tree::adopt_orphans();
        let strangers = tree::descendants();
        let Prepared { mut command, report } = prepare(spawn)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = launch::spawn(&mut command)?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child's pid is a positive pid_t");
        let (to, from) = channel::<Vec<u8>>();
        let (sender, reports) = sync_channel(QUEUE);
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (first, second, third) = (sender.clone(), sender.clone(), sender.clone());
        let threads: [Box<dyn FnOnce() + Send>; 4] = [
            // Closes the pipe once all senders are gone. Write errors are ignored: the companion may stop reading.
            Box::new(move || {
                let Some(mut stdin) = stdin else { return };
                while let Ok(line) = from.recv() {
                    if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            }),
            Box::new(move || read(out, Stream::Stdout, &first)),
            Box::new(move || read(err, Stream::Stderr, &second)),
            Box::new(move || wait_without_reaping(group, &third)),
        ];
        for body in threads {
            if let Err(source) = thread::Builder::new().name("companion".to_owned()).spawn(body) {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                return Err(SpawnError::Failed { program: spawn.argv[0].to_string_lossy().into_owned(), source });
            }
        }
        let wake = move || match sender.try_send(Report::Woken) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        };
        Ok(Self {
            child,
            launch: report,
            group,
            in_view: matches!(spawn.inside, Some(Inside::View { .. })),
            to: Some(to),
            reports,
            lines: Default::default(),
            heard: VecDeque::new(),
            exited: false,
            killed: false,
            household: Vec::new(),
            strangers,
            _subscription: signals.subscribe(wake),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line, including its line end. There is no confirmation that it was read.
    pub fn say(&self, line: Vec<u8>) {
        if let Some(to) = &self.to {
            let _ = to.send(line);
        }
    }

    /// A sender for threads that write later. The pipe stays open as long as one exists.
    pub fn stdin_sender(&self) -> Option<Sender<Vec<u8>>> {
        self.to.clone()
    }

    /// Waits for its next output.
    pub fn receive(&mut self, patience: Duration) -> Received {
        let until = Instant::now() + patience;
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            // Output without line ends must not extend the wait.
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && !patience.is_zero() {
                return Received::Nothing;
            }
            match self.reports.recv_timeout(left) {
                Ok(Report::Output(stream, bytes)) => {
                    let heard = &mut self.heard;
                    self.lines[stream as usize].push(&bytes, &mut |line| heard.push_back(Received::Line(stream, line)));
                }
                Ok(Report::Exited) => {
                    self.exited = true;
                    self.hear_the_rest();
                }
                // A companion that wants the terminal is stopped and silent, so the caller's limits end it.
                Ok(Report::Closed | Report::WantsTerminal) => {}
                Ok(Report::Woken) | Err(RecvTimeoutError::Timeout) => return Received::Nothing,
                Err(RecvTimeoutError::Disconnected) => return Received::Exited,
            }
        }
    }

    /// Reads what is left in the pipes after it exited. Other processes may hold them open, so this has a time limit.
    fn hear_the_rest(&mut self) {
        let begin = Stopwatch::start();
        while begin.elapsed() < Duration::from_millis(250) {
            match self.reports.recv_timeout(POLL) {
                Ok(Report::Output(stream, bytes)) => {
                    let heard = &mut self.heard;
                    self.lines[stream as usize].push(&bytes, &mut |line| heard.push_back(Received::Line(stream, line)));
                }
                Ok(Report::Closed | Report::WantsTerminal | Report::Exited | Report::Woken) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        for (stream, lines) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&mut self.lines) {
            if let Some(line) = lines.rest() {
                self.heard.push_back(Received::Line(stream, line));
            }
        }
        self.heard.push_back(Received::Exited);
    }

    /// Records which processes running now do not belong to the companion. Call this when a turn starts.
    pub fn begin_turn(&mut self) {
        let all = tree::all();
        let own: Vec<Process> = all.iter().filter(|process| process.pid == self.pid()).copied().collect();
        self.strangers = tree::below(std::process::id(), &all, &Spared { alone: Vec::new(), families: own });
    }

    /// Records everything that runs below the companion now as its own, such as servers
    /// from its configuration. Call this before it starts anything for a turn.
    pub fn adopt_children(&mut self) {
        let all = tree::all();
        let alone = self.own(&all);
        self.household = tree::below(self.pid(), &all, &Spared { alone, families: Vec::new() });
    }

    /// The companion itself. In a view, that is the launcher, its only child, and the first process started by that child: orphans also
    /// become its children, but later.
    fn own(&self, all: &[Process]) -> Vec<u32> {
        let first_child = |parent: &u32| {
            let children = all.iter().filter(|process| process.parent == *parent);
            children.min_by_key(|process| (process.start, process.pid)).map(|process| process.pid)
        };
        let generations = if self.in_view { 3 } else { 1 };
        std::iter::successors(Some(self.pid()), first_child).take(generations).collect()
    }

    /// Ends processes left by a turn. Returns how many there were.
    pub fn end_leftovers(&self, grace: Duration, signals: &Signals) -> u32 {
        let families = self.strangers.iter().chain(&self.household).copied().collect();
        tree::end_leftovers(&Spared { alone: self.own(&tree::all()), families }, grace, signals)
    }

    /// Lets it exit by itself, then sends TERM, then KILL. Returns its exit status and how many processes it left behind.
    pub fn end(mut self, grace: Duration, signals: &Signals) -> (Option<ExitStatus>, u32) {
        self.to = None;
        // While it is alive, whatever is not below it does not belong to it. Afterwards
        // we adopt its orphans, and only processes from before can be told apart.
        if !self.killed && !self.exited && self.exit_words() == ALIVE {
            self.begin_turn();
        }
        let insisted = || matches!(signals.stop(), Some(Stop::Insisted(_)));
        for (signal, patience) in [(None, grace), (Some(Signal::TERM), grace), (Some(Signal::KILL), STUCK)] {
            if let Some(signal) = signal {
                let _ = kill_process_group(self.group, signal);
                let _ = kill_process_group(self.group, Signal::CONT);
            }
            let begin = Stopwatch::start();
            while !self.exited && begin.elapsed() < patience && (!insisted() || signal == Some(Signal::KILL)) {
                // Keep reading, or it could not exit.
                drop(self.receive(POLL));
                self.heard.clear();
            }
            if self.exited {
                break;
            }
        }
        let status = if self.exited { self.child.wait().ok() } else { None };
        let spared = Spared { alone: Vec::new(), families: std::mem::take(&mut self.strangers) };
        (status, tree::end_leftovers(&spared, grace, signals))
    }

    /// Stops its group; [`LineProcess::go_on`] continues it. Both wait during a standstill: a process stopped now would be taken for one that
    /// the standstill stopped, and a process continued now would run alone.
    pub fn stop(&self) {
        let _gate = job_control::gate();
        let _ = kill_process_group(self.group, Signal::STOP);
    }

    pub fn go_on(&self) {
        let _gate = job_control::gate();
        let _ = kill_process_group(self.group, Signal::CONT);
    }

    /// How it ended, if it has. Does not reap it.
    pub fn exit_words(&self) -> String {
        let events = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.group), events) {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => match self.launch.as_ref().and_then(|report| report.failure_of(code)) {
                    Some(failure) => failure.to_string(),
                    None => format!("exit code {code}"),
                },
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "gone".to_owned(),
            },
            Ok(None) => ALIVE.to_owned(),
            Err(_) => "gone".to_owned(),
        }
    }

    /// Kills it immediately. [`LineProcess::end`] then finds it gone.
    pub fn kill(&mut self) {
        self.killed = true;
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

impl fmt::Debug for LineProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineProcess").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

/// An incomplete line.
#[derive(Debug, Default)]
struct PartLine {
    bytes: Vec<u8>,
    too_long: bool,
}

impl PartLine {
    fn push(&mut self, mut bytes: &[u8], on: &mut dyn FnMut(Vec<u8>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.feed(&bytes[..end]);
            self.too_long = false;
            on(std::mem::take(&mut self.bytes));
            bytes = &bytes[end + 1..];
        }
        self.feed(bytes);
    }

    fn feed(&mut self, bytes: &[u8]) {
        if !self.too_long {
            let room = LONGEST_LINE.saturating_sub(self.bytes.len());
            self.too_long = bytes.len() > room;
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.bytes)).filter(|bytes| !bytes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut part = PartLine::default();
        let mut lines = Vec::new();
        for _ in 0..65 {
            part.push(&vec![b'x'; 1024 * 1024], &mut |line| lines.push(line.len()));
        }
        part.push(b"\nnext\n", &mut |line| lines.push(line.len()));
        assert_eq!(lines, [LONGEST_LINE, 4]);
    }
}
