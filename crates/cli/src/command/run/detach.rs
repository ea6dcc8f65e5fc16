//! `verdone run --detach`: the run as a process in a session without a terminal. Until it has started, its messages are shown here; from
//! then on they go to a file in the run's folder, and `verdone attach` shows its journal.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::process::ExitStatus;

use verdone_core::journal::event::Event;
use verdone_core::journal::update::{Reporter, Update};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{interrupt_process, own_session, redirect_output, start_detached_piped};
use verdone_runtime::store::Store;

use super::super::stop_announcer::StopAnnouncer;
use super::super::{Context, Outcome};
use crate::error::CliError;
use crate::terminal::{print, printable, say};

/// Starts the run and waits until it has really started, or has ended with an error.
pub(super) fn start() -> Outcome {
    let failed = |error: io::Error| CliError::error(format!("cannot start the run in the background: {error}"));
    let mut child = start_detached_piped(&arguments(std::env::args_os())).map_err(failed)?;
    // The terminal's Ctrl-C does not reach the run's session.
    let signals = Signals::install().map_err(failed)?;
    let pid = child.id();
    let _forward = signals.subscribe(move || {
        let _ = interrupt_process(pid);
    });
    let messages = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let _ = io::copy(&mut pipe, &mut io::stderr());
        })
    });
    let mut run = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut run).map_err(failed)?;
    }
    // Both pipes close when the run has started or ended.
    let _ = messages.map(std::thread::JoinHandle::join);
    if run.is_empty() {
        return Ok(exit_code(child.wait().map_err(failed)?));
    }
    print(&printable(&format!(
        "Run {} is running in the background.\n  verdone attach   watch it; Ctrl-C stops only the watching\n  verdone status   see its progress\n  verdone stop     end it\n",
        run.trim()
    )))?;
    Ok(0)
}

/// The same command line for the process in the background.
fn arguments(ours: impl Iterator<Item = OsString>) -> Vec<OsString> {
    ours.skip(1).map(|argument| if argument == "--detach" { "--detached".into() } else { argument }).collect()
}

fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// For the process in the background, which leaves the terminal's session first.
pub(super) fn reporter(signals: &Signals, context: &Context) -> Result<StopAnnouncer, CliError> {
    own_session();
    let store = Store::new(&context.project()?.root);
    Ok(StopAnnouncer::new(Box::new(InBackground { store }), signals.clone()))
}

/// Prints the run's id when it has started, and notices: before that for whoever started us, then to the run's file.
struct InBackground {
    store: Store,
}

impl Reporter for InBackground {
    fn report(&mut self, update: Update<'_>) {
        match update {
            Update::Notice { text } => say(&printable(&format!("note: {text}\n"))),
            Update::Event(recorded) => {
                if let Event::RunStarted { run, .. } = &recorded.event {
                    // Whoever started us may be gone; the run does not depend on it.
                    let _ = print(&format!("{run}\n"));
                    let _ = redirect_output(&self.store.run(run.clone()).output());
                }
            }
            Update::Output { .. }
            | Update::Checking { .. }
            | Update::Tick { .. }
            | Update::Continued
            | Update::Notification { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_process_gets_the_same_arguments() {
        let ours = ["verdone", "-C", "sub", "run", "PLAN.md", "--detach", "--story", "A"].map(OsString::from);
        assert_eq!(arguments(ours.into_iter()), ["-C", "sub", "run", "PLAN.md", "--detached", "--story", "A"]);
    }
}
