use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use proptest::prelude::*;
use verdone_core::journal::update::{Reporter as _, Speaker, Stream, Update};
use verdone_report::{Style, Terminal};

use crate::expected::same_as_file;
use crate::fixture::{Journal, half_a_run, whole_run};
use crate::screen::{Closed, Screen};

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The screen after the last step, before the reporter is dropped.
fn watch(journal: &Journal, style: Style) -> Screen {
    let out = Shared::default();
    let mut terminal = Terminal::new(out.clone(), style, || style.width);
    for step in &journal.steps {
        step.show(&mut terminal);
    }
    let mut screen = Screen::new(style.width);
    screen.feed(&out.0.borrow());
    screen
}

#[test]
fn a_run_in_the_middle_shows_its_live_line_below_the_output() {
    for width in [20, 80, 200] {
        let screen = watch(&half_a_run(), Style { color: true, width, unicode: true });
        assert!(!screen.wrapped, "wrapped at {width}");
        same_as_file(&format!("terminal-middle-{width}.txt"), &screen.text());
    }
}

#[test]
fn a_finished_run_ends_with_the_summary_and_without_a_live_line() {
    for width in [20, 80, 200] {
        let screen = watch(&whole_run(), Style { color: true, width, unicode: true });
        assert!(!screen.wrapped, "wrapped at {width}");
        same_as_file(&format!("terminal-end-{width}.txt"), &screen.text());
    }
}

#[test]
fn a_wait_for_the_service_is_counted_down() {
    let mut journal = Journal::new();
    journal.start(1).select("US-001", "Greet", 1, (1, 1, 1)).turn().waits(90);
    journal.tick(30);
    let text = watch(&journal, Style::default()).text();
    assert!(text.contains("Usage limit · waiting until 2026-11-15T") && text.contains(" · 01:00 to wait: "), "{text}");
    journal.tick(89);
    assert!(watch(&journal, Style::default()).text().contains("00:01 to wait"));
}

#[test]
fn an_outage_says_how_often_the_service_has_failed() {
    let mut journal = Journal::new();
    journal.start(1).select("US-001", "Greet", 1, (1, 1, 1)).turn();
    journal.waits_for_service(9).goes_on().waits_for_service(9).goes_on().waits_for_service(90);
    journal.tick(10);
    let text = watch(&journal, Style::default()).text();
    assert!(text.contains("The agent's service failed · waiting until"), "the first time\n{text}");
    assert!(text.contains("The agent's service failed 3 times · waiting until 2026"), "{text}");
    let wide = watch(&journal, Style { width: 200, ..Style::default() }).text();
    assert!(wide.contains("to wait: the agent's service failed 3 times"), "{wide}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    for unicode in [true, false] {
        let style = Style { color: true, width: 80, unicode };
        assert_eq!(watch(&whole_run(), style).text(), watch(&whole_run(), Style { color: false, ..style }).text());
    }
}

#[test]
fn ascii_terminals_get_ascii() {
    let text = watch(&whole_run(), Style { color: false, width: 80, unicode: false }).text();
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn dropping_the_reporter_takes_the_live_line_away() {
    let out = Shared::default();
    let mut terminal = Terminal::new(out.clone(), Style::default(), || 80);
    for step in &half_a_run().steps {
        step.show(&mut terminal);
    }
    drop(terminal);
    let mut screen = Screen::new(80);
    screen.feed(&out.0.borrow());
    assert!(screen.text().ends_with("its tests…\n"), "{}", screen.text());
}

#[test]
fn the_cursor_is_never_hidden() {
    let out = Shared::default();
    let mut terminal = Terminal::new(out.clone(), Style { color: true, ..Style::default() }, || 80);
    for step in &whole_run().steps {
        step.show(&mut terminal);
    }
    assert!(!String::from_utf8_lossy(&out.0.borrow()).contains("\x1b[?"));
}

#[test]
fn a_tick_that_changes_nothing_writes_nothing() {
    let out = Shared::default();
    let mut terminal = Terminal::new(out.clone(), Style::default(), || 80);
    let journal = half_a_run();
    for step in &journal.steps {
        step.show(&mut terminal);
    }
    let before = out.0.borrow().len();
    journal.steps.last().unwrap().show(&mut terminal);
    assert_eq!(out.0.borrow().len(), before);
}

#[test]
fn a_resize_redraws_in_the_new_width() {
    let out = Shared::default();
    let width = Rc::new(RefCell::new(200));
    let asked = Rc::clone(&width);
    let mut terminal = Terminal::new(out.clone(), Style::default(), move || *asked.borrow());
    let journal = half_a_run();
    for step in &journal.steps {
        step.show(&mut terminal);
    }
    out.0.borrow_mut().clear();
    *width.borrow_mut() = 40;
    journal.steps.last().unwrap().show(&mut terminal);
    let mut screen = Screen::new(40);
    screen.feed(&out.0.borrow());
    assert!(!screen.wrapped && screen.text().contains("US-002"), "{}", screen.text());
    assert!(String::from_utf8_lossy(&out.0.borrow()).starts_with("\r\x1b[J"));
}

#[test]
fn a_closed_terminal_is_remembered_and_the_run_goes_on() {
    let mut terminal = Terminal::new(Closed, Style::default(), || 80);
    assert!(!terminal.broken());
    for step in &whole_run().steps {
        step.show(&mut terminal);
    }
    assert!(terminal.broken());
    assert_eq!(terminal.view().counts.verified, 2);
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(
        id in "\\PC{0,30}",
        title in any::<String>(),
        said in any::<String>(),
        width in 0_usize..220,
        numbers in (0_usize..200_000, 0_usize..200_000, 0_usize..200_000),
        unicode: bool,
    ) {
        let mut journal = Journal::new();
        journal.start(numbers.1).select(&id, &title, 1, numbers).turn();
        let (out, style) = (Shared::default(), Style { color: true, width, unicode });
        let mut terminal = Terminal::new(out.clone(), style, || width);
        for step in &journal.steps {
            step.show(&mut terminal);
        }
        terminal.report(Update::Output { speaker: Speaker::Agent, stream: Stream::Stdout, line: &said });
        let bytes = out.0.borrow();
        // A finding keeps its symbol and indent at any width.
        let mut screen = Screen::new(width.max(4));
        screen.feed(&bytes);
        prop_assert!(!screen.wrapped, "{:?}", screen.text());
        let text = String::from_utf8_lossy(&bytes);
        let live = text.rsplit("\x1b[K").next().unwrap();
        let mut screen = Screen::new(width);
        screen.feed(live.as_bytes());
        prop_assert!(!screen.wrapped, "{:?}", live);
    }
}
