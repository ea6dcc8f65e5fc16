//! An open view: the process that keeps its namespaces alive until this is dropped.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use super::proxy::{Gateway, Proxy};
use crate::launcher::{self, ARGUMENT, EMPTY_FILE, Failure, HOLD, READY};
use crate::launcher::{Inside, Network, ViewPlan};
use crate::process;

/// Mounting takes milliseconds. A holder that is silent for this long hangs on a dead file system.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for a holder to end, before killing it and again afterwards.
const CLOSING: Duration = Duration::from_secs(2);
/// A view is made from scratch, so the holder needs nothing else of our environment. Coverage builds need the second one.
const KEPT_VARIABLES: [&str; 2] = [launcher::FAULT_VARIABLE, "LLVM_PROFILE_FILE"];

/// A view in which processes can be started.
#[derive(Debug)]
pub struct View {
    holder: Child,
    /// The holder ends when this is closed, and so also when we are killed.
    leash: Option<UnixStream>,
    /// Where the holder reports that the view is ready; `None` once it has.
    said: Option<ChildStdout>,
    way_out: WayOut,
    /// The plan and the file that is mounted over hidden files.
    _files: TempDir,
}

/// How processes of a view reach other hosts.
#[derive(Debug)]
enum WayOut {
    /// Over the network of the plan, which may lead nowhere.
    Network,
    /// Through a proxy that starts when the view is ready.
    Planned(Gateway),
    Proxy(#[expect(dead_code, reason = "it serves until it is dropped")] Proxy),
}

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("the view of the workspace could not be built: {0}")]
    Refused(Failure),
    #[error("{}: could not be written: {source}", path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error("{}: could not be started: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("the view of the workspace was not ready within {} seconds: a file system does not answer", PATIENCE.as_secs())]
    Silent,
    #[error("the proxy of the workspace's network could not be started: {0}")]
    Proxy(io::Error),
    #[error("the process that builds the view of the workspace ended without giving a reason")]
    Ended,
}

impl View {
    /// Builds the view. `scratch` is an existing folder for the view's own small files, which the plan should not show.
    pub fn open(plan: &ViewPlan, scratch: &Path) -> Result<Self, ViewError> {
        Self::open_with(plan, scratch, None)
    }

    /// Like [`Self::open`]. The gateway decides which hosts can be reached through the ports of the plan.
    pub(super) fn open_with(plan: &ViewPlan, scratch: &Path, gateway: Option<Gateway>) -> Result<Self, ViewError> {
        let mut view = Self::begin(plan, scratch, gateway)?;
        view.wait_until_ready()?;
        Ok(view)
    }

    /// Starts building the view. No process may be started in it before [`Self::wait_until_ready`].
    pub(super) fn begin(plan: &ViewPlan, scratch: &Path, gateway: Option<Gateway>) -> Result<Self, ViewError> {
        let unwritable = |source: io::Error| ViewError::Files { path: scratch.to_owned(), source };
        let files = tempfile::Builder::new().prefix("view-").tempdir_in(scratch).map_err(unwritable)?;
        let plan_file = files.path().join("plan.json");
        let text = serde_json::to_vec(plan).map_err(|error| unwritable(error.into()))?;
        fs::write(&plan_file, text).and_then(|()| File::create(files.path().join(EMPTY_FILE))).map_err(unwritable)?;

        let program = launcher::program();
        let mut command = Command::new(&program);
        command.args([ARGUMENT, HOLD]).arg(&plan_file).current_dir("/").process_group(0);
        command.env_clear().envs(kept_variables());
        let not_started = |source: io::Error| ViewError::Start { program: program.clone(), source };
        let (leash, held) = UnixStream::pair().map_err(not_started)?;
        command.stdin(OwnedFd::from(held)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = process::start_spared(&mut command).map_err(not_started)?;
        let said = holder.stdout.take();
        let way_out = match (&plan.network, gateway) {
            (Network::ListenOn(_), Some(gateway)) => WayOut::Planned(gateway),
            (Network::ListenOn(_) | Network::Open | Network::Off, _) => WayOut::Network,
        };
        Ok(Self { holder, leash: Some(leash), said, way_out, _files: files })
    }

    pub(super) fn wait_until_ready(&mut self) -> Result<(), ViewError> {
        let Some(said) = self.said.take() else { return Ok(()) };
        let line = read_line(said, PATIENCE)?;
        if line == READY { self.start_proxy() } else { Err(Failure::parse(&line).map_or(ViewError::Ended, ViewError::Refused)) }
    }

    fn start_proxy(&mut self) -> Result<(), ViewError> {
        let WayOut::Planned(gateway) = std::mem::replace(&mut self.way_out, WayOut::Network) else { return Ok(()) };
        let leash = self.leash.as_ref().ok_or(ViewError::Ended)?;
        let listeners = launcher::receive_listeners(leash).map_err(ViewError::Proxy)?;
        self.way_out = WayOut::Proxy(Proxy::start(listeners, gateway).map_err(ViewError::Proxy)?);
        Ok(())
    }

    /// How processes enter. Valid until the view is dropped.
    pub fn inside(&self) -> Inside {
        Inside::View { holder: self.holder.id() }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.way_out = WayOut::Network;
        drop(self.leash.take());
        if !ends_within(&mut self.holder, CLOSING) {
            let _ = self.holder.kill();
            ends_within(&mut self.holder, CLOSING);
        }
        process::forget_spared(self.holder.id());
    }
}

/// The variables of our environment that the launcher's own processes get.
pub(super) fn kept_variables() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    KEPT_VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

fn ends_within(holder: &mut Child, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    let mut nap = Duration::from_micros(100);
    // An error means that it was already reaped.
    while let Ok(None) = holder.try_wait() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(5));
    }
    true
}

/// Reads one line, without its newline.
fn read_line(mut from: ChildStdout, patience: Duration) -> Result<String, ViewError> {
    let until = Instant::now() + patience;
    let mut line = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(ViewError::Silent),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Err(ViewError::Ended),
        }
        let mut chunk = [0; 512];
        match from.read(&mut chunk) {
            Ok(0) => return Err(ViewError::Ended),
            Ok(count) => line.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(ViewError::Ended),
        }
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
        }
    }
}
