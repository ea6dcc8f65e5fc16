//! Answers the client exactly once, whatever happens. On a panic, or past our own deadline, it answers like a guard that cannot judge,
//! because a hook that dies or hangs would let the call through.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use verdone_core::hook::{Answer, Cause, Role, fail};
use verdone_core::policy::{Mode, OnFailure};

use crate::guard::{FAULTS, HookProject, append_fault};
use crate::session::{self, Loops, SessionFiles};

/// Far above what any call takes, and far below the client's timeout.
const DEADLINE: Duration = Duration::from_secs(5);
/// The client treats this code as a denial, with standard error as the reason.
const BLOCKS: u8 = 2;

#[derive(Debug, Clone)]
pub(super) struct Responder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    mode: Mode,
    spoken: AtomicBool,
    judged: AtomicBool,
    event: Mutex<Option<String>>,
    on_failure: OnceLock<OnFailure>,
    sessions: OnceLock<PathBuf>,
    /// The session held by a loop, and whether the turn continues because of it.
    gate: OnceLock<(SessionFiles, bool)>,
}

impl Responder {
    /// From now on, handles panics and the deadline.
    pub(super) fn start(mode: Mode, event: Option<&str>) -> Self {
        let shared = Shared {
            mode,
            spoken: AtomicBool::new(false),
            judged: AtomicBool::new(false),
            event: Mutex::new(event.map(str::to_owned)),
            on_failure: OnceLock::new(),
            sessions: OnceLock::new(),
            gate: OnceLock::new(),
        };
        let responder = Self(Arc::new(shared));
        let panicked = responder.clone();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let code = panicked.fail(&format!("it panicked at {place}"));
            std::process::exit(code.into());
        }));
        let late = responder.clone();
        // Without a second thread there is no deadline, but the answer does not depend on it.
        let _ = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            thread::sleep(DEADLINE);
            if late.0.judged.load(Ordering::SeqCst) {
                return;
            }
            let code = late.fail("there was no answer within 5 seconds");
            std::process::exit(code.into());
        });
        responder
    }

    /// Sets the event that the input names. A guard stays a guard: the input cannot downgrade the event that we were started for.
    pub(super) fn is_about(&self, event: Option<String>) {
        let mut known = self.0.event.lock().unwrap_or_else(PoisonError::into_inner);
        let guards = |event: &Option<String>| event.as_deref().is_some_and(|event| Role::from_event(event) == Role::Guard);
        if event.is_some() && (guards(&event) || !guards(&known)) {
            *known = event;
        }
    }

    pub(super) fn fails_by(&self, on_failure: OnFailure) {
        let _ = self.0.on_failure.set(on_failure);
    }

    pub(super) fn records_at(&self, home: &HookProject) {
        let _ = self.0.sessions.set(home.sessions().to_owned());
    }

    /// The event asks whether the session's turn may end. If a loop holds the session, a failure of ours does not release it immediately.
    pub(super) fn gates(&self, home: &HookProject, session: &str, active: bool) {
        let files = Loops::new(&home.root).session(session);
        if files.is_held() {
            let _ = self.0.gate.set((files, active));
        }
    }

    /// Turns off the deadline: the remaining work has its own.
    pub(super) fn has_judged(&self) {
        self.0.judged.store(true, Ordering::SeqCst);
    }

    /// Prints the answer and returns the exit code. Later answers are dropped.
    pub(super) fn say(&self, answer: &Answer) -> u8 {
        if self.0.spoken.swap(true, Ordering::SeqCst) {
            return 0;
        }
        if let Answer::Refuse { reason } = answer {
            let _ = writeln!(std::io::stderr(), "{}", for_stderr(reason));
            return BLOCKS;
        }
        let Some(value) = answer.to_json() else { return 0 };
        let mut out = std::io::stdout().lock();
        let written = out.write_all(format!("{value}\n").as_bytes()).and_then(|()| out.flush());
        // Blocking the end of a turn applies in every session; denying a tool call only in a run, where we alone decide.
        let counts = matches!(answer, Answer::Block { .. }) || (self.0.mode == Mode::Run && self.guards());
        match answer.refusal().filter(|_| counts) {
            Some(reason) if written.is_err() || is_nowhere(&out) => {
                // If standard error fails, the exit code alone blocks.
                let _ = writeln!(std::io::stderr(), "{}", for_stderr(reason));
                BLOCKS
            }
            // A client that is gone needs no answer.
            Some(_) | None => 0,
        }
    }

    fn guards(&self) -> bool {
        let event = self.0.event.lock().unwrap_or_else(PoisonError::into_inner);
        Role::from_event(event.as_deref().unwrap_or("PreToolUse")) == Role::Guard
    }

    /// Answers an event that cannot be judged, and records the failure.
    pub(super) fn fail(&self, cause: &str) -> u8 {
        let event = self.0.event.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let on_failure = self.0.on_failure.get().copied().unwrap_or_default();
        let sessions = self.0.sessions.get();
        let faults = sessions.map_or_else(|| FAULTS.to_owned(), |sessions| sessions.join(FAULTS).display().to_string());
        let mut response = fail(event.as_deref(), self.0.mode, on_failure, &Cause { text: cause, kept: &faults });
        if let Some((files, active)) = self.0.gate.get() {
            response.answer = session::fault(files, *active, cause).answer("Stop");
        }
        let code = self.say(&response.answer);
        if let Some(sessions) = sessions {
            // If recording fails, there is no other place to report it.
            let _ = append_fault(sessions, event.as_deref(), &response.records);
        }
        code
    }
}

/// Some clients take these phrases on standard error to mean that the hook could not be started, and let the event through.
fn for_stderr(reason: &str) -> String {
    reason.replace("No such file", "No file").replace("no such file", "no file").replace("can't open", "cannot open")
}

/// Whether output is discarded: a closed standard output is replaced by the null device before we start.
fn is_nowhere(out: &impl AsFd) -> bool {
    let null = std::fs::metadata("/dev/null").map(|meta| meta.rdev());
    let here = out.as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    matches!((null, here), (Ok(null), Ok(here)) if here.file_type().is_char_device() && here.rdev() == null)
}
