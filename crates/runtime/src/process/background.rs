//! A background process that is not waited for. Like any other, it has its own process
//! group and bounded output. It ends together with the process that started it.

use std::fmt;
use std::io::{self, PipeReader, Read as _};
use std::process::Child;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use verdone_core::base::redact::Redactor;

use super::launch::{self, Prepared, prepare};
use super::{Spawn, SpawnError, tree};
use crate::base::active_clock::Stopwatch;
use crate::launcher::LaunchReport;
use crate::process::output::{Capture, Stream, create_fresh};
use crate::process::signal::{Signals, Stop};

const CHUNK: usize = 32 * 1024;
const POLL: Duration = Duration::from_millis(20);
/// By then its output is complete, unless another process keeps the pipe open.
const DRAIN: Duration = Duration::from_secs(1);

/// A running process and the thread that stores its output.
pub struct Background {
    child: Child,
    reader: JoinHandle<()>,
    /// Kept alive because the file must exist when the workspace's launcher opens it.
    _report: Option<LaunchReport>,
}

impl Background {
    /// Starts it. Of the limits in `spawn`, only the cap applies: it runs until it exits or [`Background::end`] is called.
    pub fn start(spawn: &Spawn<'_>, redactor: Redactor) -> Result<Self, SpawnError> {
        let keep =
            |path: &std::path::PathBuf| create_fresh(path).map_err(|source| SpawnError::Keep { path: path.clone(), source });
        let file = spawn.keep.as_ref().map(keep).transpose()?;
        let failed = |source: io::Error| {
            let program = spawn.argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
            SpawnError::Failed { program, source }
        };
        tree::adopt_orphans();
        let (pipe, writer) = io::pipe().map_err(failed)?;
        let Prepared { mut command, report } = prepare(spawn)?;
        command.stdin(std::process::Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let child = launch::spawn(&mut command)?;
        // The command holds our write end of the pipe. Close it, or the reader would never see the end.
        drop(command);
        let cap = spawn.cap;
        let reader = thread::Builder::new().name("background".to_owned()).spawn(move || {
            let mut capture = Capture::new(&redactor, cap, file);
            read(pipe, &mut capture);
            capture.finish(&mut |_, _| {});
        });
        match reader {
            Ok(reader) => Ok(Self { child, reader, _report: report }),
            Err(source) => {
                signal_group(&child, Signal::KILL);
                Err(failed(source))
            }
        }
    }

    pub fn has_ended(&mut self) -> bool {
        // An error means that someone else has reaped it.
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// TERM, grace, KILL for the whole group.
    pub fn end(mut self, grace: Duration, signals: &Signals) {
        let insisted = || matches!(signals.stop(), Some(Stop::Insisted(_)));
        let begin = Stopwatch::start();
        if !self.has_ended() {
            signal_group(&self.child, Signal::TERM);
            signal_group(&self.child, Signal::CONT);
            while begin.elapsed() < grace && !insisted() && !self.has_ended() {
                thread::sleep(POLL);
            }
            if !self.has_ended() {
                signal_group(&self.child, Signal::KILL);
                let _ = self.child.wait();
            }
        }
        let begin = Stopwatch::start();
        while !self.reader.is_finished() && begin.elapsed() < DRAIN && !insisted() {
            thread::sleep(POLL);
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("pid", &self.child.id()).finish_non_exhaustive()
    }
}

/// Call this only before the child is reaped: until then its id cannot be reused.
fn signal_group(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

fn read(mut pipe: PipeReader, capture: &mut Capture<'_>) {
    let mut chunk = vec![0; CHUNK];
    loop {
        match pipe.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(n) => {
                capture.push(Stream::Stdout, &chunk[..n], &mut |_, _| {});
                capture.flush();
            }
        }
    }
}
