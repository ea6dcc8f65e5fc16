//! `verdone status`.

use jiff::Timestamp;

use super::latest::{latest, view};
use super::{Context, Outcome};
use crate::args::StatusArgs;
use crate::terminal::print;

pub(super) fn run(args: &StatusArgs, context: &Context) -> Outcome {
    let (_, stored) = latest(context)?;
    let view = view(&stored);
    let text = if args.json {
        format!("{:#}\n", serde_json::json!(view))
    } else {
        verdone_report::status(&view, Timestamp::now(), &context.terminal.report_style())
    };
    print(&text)?;
    Ok(0)
}
