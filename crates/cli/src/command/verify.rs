//! `verdone verify`: runs the verification engine on the checkout or a range of commits.

use std::fs::OpenOptions;
use std::io::Write as _;

use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::StoryId;
use verdone_core::check::Stage;
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::Verified;
use verdone_report::{github_commands, github_summary, junit, verification, verification_json};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::verify::on_demand::{self, CheckoutRequest, RangeRequest};

use super::{Context, Outcome};
use crate::args::{VerifyArgs, VerifyFormat};
use crate::error::CliError;
use crate::terminal::{print, print_json, print_verbatim, printable_line, say};

/// Names the file to which a step of a GitHub workflow writes its summary.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

pub(super) fn run(args: &VerifyArgs, context: &Context) -> Outcome {
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let watched = context.terminal.live && args.wanted() == VerifyFormat::Human;
    let found = ask(args, context, &signals, &mut Progress { watched })?;
    let code = exit_code(&found, signals.requested());
    match args.wanted() {
        VerifyFormat::Human => print(&verification(&found, &context.terminal.report_style()))?,
        VerifyFormat::Json => print_json(&verification_json(&found, code))?,
        VerifyFormat::Junit => print_verbatim(&junit(&found))?,
        VerifyFormat::Github => {
            print_verbatim(&github_commands(&found))?;
            write_summary(&found);
        }
    }
    Ok(code)
}

fn ask(args: &VerifyArgs, context: &Context, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Verified, CliError> {
    let (root, story) = (context.start.clone(), args.story.as_deref().map(StoryId::from));
    let stage = args.stage.clone().map(Stage::from);
    Ok(match &args.base {
        Some(base) => {
            let ask = RangeRequest { root, base: base.clone(), head: args.head.clone(), story, stage };
            on_demand::verify_range(&ask, signals, reporter)?
        }
        None => on_demand::verify(&CheckoutRequest { root, story, stage, use_cache: !args.no_cache }, signals, reporter)?,
    })
}

fn exit_code(found: &Verified, stopped: Option<StopSignal>) -> u8 {
    match stopped {
        Some(signal) if found.report.was_interrupted() => signal.exit_code(),
        Some(_) | None => found.exit_code(),
    }
}

/// Best effort: the result does not depend on it.
fn write_summary(found: &Verified) {
    let Some(path) = std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty()) else { return };
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(github_summary(found).as_bytes()));
    if let Err(error) = written {
        say(&format!("note: cannot write the step summary: {error}\n"));
    }
}

/// Says which check is running, if a person is watching.
struct Progress {
    watched: bool,
}

impl Reporter for Progress {
    fn report(&mut self, update: Update<'_>) {
        match update {
            Update::Checking { name } if self.watched => say(&format!("checking {}\n", printable_line(name))),
            Update::Notice { text } => say(&format!("note: {}\n", printable_line(text))),
            Update::Checking { .. }
            | Update::Event(_)
            | Update::Output { .. }
            | Update::Tick { .. }
            | Update::Continued
            | Update::Notification { .. } => {}
        }
    }
}
