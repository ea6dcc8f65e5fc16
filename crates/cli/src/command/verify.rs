//! `verdone verify`: checks by hand.

use serde_json::json;
use verdone_core::check::{CheckOutcome, CheckRun, Stage};
use verdone_core::event::VerifyOutcome;
use verdone_core::finish::StopSignal;
use verdone_core::id::StoryId;
use verdone_core::update::{Reporter, Update};
use verdone_runtime::signal::Signals;
use verdone_runtime::verify_now::{self, Ask, Report};

use super::{Context, Outcome};
use crate::args::VerifyArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable_line, say};

pub(super) fn run(args: &VerifyArgs, context: &Context) -> Outcome {
    let ask = Ask {
        root: context.start.clone(),
        story: args.story.as_deref().map(StoryId::from),
        stage: args.stage.clone().map(Stage::from),
        use_cache: !args.no_cache,
    };
    let signals = Signals::install().map_err(|error| CliError::error(format!("signals cannot be handled: {error}")))?;
    let report = verify_now::verify(&ask, &signals, &mut Progress { watched: context.terminal.live && !args.json })?;
    if args.json {
        print_json(&json!({
            "tree": report.tree,
            "story": ask.story,
            "stage": ask.stage,
            "verdict": report.verdict,
            "runs": report.runs,
            "flaky": report.flaky,
            "not_run": report.left,
        }))?;
    } else {
        let style = context.terminal.report_style();
        print(&verdone_report::verification(&report.tree, &report.verdict, &report.runs, &report.left, &style))?;
    }
    Ok(exit_code(&report, signals.requested()))
}

fn exit_code(report: &Report, stopped: Option<StopSignal>) -> u8 {
    let is_red = |run: &CheckRun| match run.outcome {
        CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } | CheckOutcome::TimedOut { .. } => !run.advisory,
        CheckOutcome::Passed | CheckOutcome::Unknown { .. } | CheckOutcome::Interrupted => false,
    };
    match (&report.verdict, stopped) {
        (VerifyOutcome::Passed, _) => 0,
        (VerifyOutcome::Interrupted, Some(signal)) => signal.exit_code(),
        _ if report.runs.iter().any(is_red) => Kind::Error.exit_code(),
        (VerifyOutcome::Failed | VerifyOutcome::NothingChanged | VerifyOutcome::Refused | VerifyOutcome::Interrupted, _) => {
            Kind::Human.exit_code()
        }
    }
}

/// Says what is being run, where somebody waits for it.
struct Progress {
    watched: bool,
}

impl Reporter for Progress {
    fn report(&mut self, update: Update<'_>) {
        match update {
            Update::Checking { name } if self.watched => say(&format!("checking {}\n", printable_line(name))),
            Update::Notice { text } => say(&format!("note: {}\n", printable_line(text))),
            Update::Checking { .. } | Update::Event(_) | Update::Output { .. } | Update::Tick { .. } | Update::Continued => {}
        }
    }
}
