use jiff::tz::TimeZone;
use verdone_report::{Plain, Style, Verbosity};

use crate::expected::same_as_file;
use crate::fixture::whole_run;
use crate::screen::Closed;

fn watch(loudness: Verbosity, zone: Option<TimeZone>) -> String {
    let mut out = Vec::new();
    let mut plain = Plain::new(&mut out, Style::default(), loudness);
    if let Some(zone) = zone {
        plain = plain.with_times(zone);
    }
    for step in &whole_run().steps {
        step.show(&mut plain);
    }
    assert!(!plain.broken());
    drop(plain);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_log_file_has_the_same_lines_and_no_escape() {
    let text = watch(Verbosity::Normal, None);
    assert!(!text.contains(['\x1b', '\r']));
    same_as_file("plain.txt", &text);
}

#[test]
fn quiet_leaves_problems_under_their_story_and_the_summary() {
    same_as_file("plain-quiet.txt", &watch(Verbosity::Quiet, None));
}

#[test]
fn times_are_local() {
    let text = watch(Verbosity::Normal, Some(TimeZone::UTC));
    assert!(text.starts_with("02:03:38 · Run 20261115-020338-5f3a"), "{}", &text[..80]);
}

#[test]
fn a_reader_that_went_away_is_remembered_and_the_run_goes_on() {
    let mut plain = Plain::new(Closed, Style::default(), Verbosity::Normal);
    for step in &whole_run().steps {
        step.show(&mut plain);
    }
    assert!(plain.broken());
    assert_eq!(plain.view().commits, 4);
}
