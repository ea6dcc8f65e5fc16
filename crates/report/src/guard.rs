//! Failures of Verdone's own hooks, worded the same in lines, pages, summary and report.

use jiff::tz::TimeZone;
use verdone_core::journal::view::{GuardView, RunView};
use verdone_text::sentence::capitalise;

use crate::width::clean;
use crate::wording::{because, moment, plural};

/// How often Verdone's hooks could not judge a call, as part of a sentence.
pub(crate) fn guard_failed(failures: u64, denied: u64, cause: &str) -> String {
    let times = plural(usize::try_from(failures).unwrap_or(usize::MAX), "time", "times");
    because(&format!("the guard failed {times} ({denied} denied)"), cause)
}

/// The same for a whole run or attempt, with the last time and the file that lists every case.
pub(crate) fn guard_told(view: &RunView, guard: &GuardView) -> String {
    let said = guard_failed(u64::from(guard.failures), u64::from(guard.denied), &guard.cause);
    let file = guard_file(view, &guard.file).map_or_else(String::new, |path| format!(", see {path}"));
    let said = capitalise(&said);
    format!("{said}, last at {} UTC{file}", moment(guard.last, &TimeZone::UTC))
}

pub(crate) fn guard_file(view: &RunView, file: &str) -> Option<String> {
    view.run.as_ref().map(|run| clean(&format!(".verdone/runs/{run}/{file}")))
}
