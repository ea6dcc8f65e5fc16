//! Requests from another terminal that have not taken effect yet, in words.

use verdone_core::journal::control::Request;
use verdone_core::journal::view::{Phase, RunView};

use crate::event_lines::asked;
use crate::width::clean;

/// One sentence for each, with the moment when it takes effect.
pub(crate) fn pending(view: &RunView) -> Vec<String> {
    let step = if view.phase == Phase::Working { "turn" } else { "step" };
    let sentence = |request: &Request| match request {
        Request::Stop => "stop, once all processes have ended".to_owned(),
        Request::StopAfterStory => "stop after this iteration".to_owned(),
        Request::Pause => format!("pause after this {step}"),
        Request::Skip { story, now: false } => format!("skip {} after this {step}", clean(story.as_str())),
        Request::Skip { story, now: true } => format!("skip {}, once its processes have ended", clean(story.as_str())),
        Request::Note { text } if view.ended.is_some() => format!("note for the next run: {}", clean(text)),
        Request::Note { text } => format!("note for the next prompt: {}", clean(text)),
        Request::Resume
        | Request::Retry { .. }
        | Request::Claim { .. }
        | Request::Question { .. }
        | Request::Answer { .. }
        | Request::Merge { .. } => asked(request),
    };
    view.pending.iter().map(sentence).collect()
}

/// All of them in a few words, for the live line.
pub(crate) fn pending_words(view: &RunView) -> Option<String> {
    let word = |request: &Request| match request {
        Request::Stop | Request::StopAfterStory => "stop",
        Request::Pause => "pause",
        Request::Skip { .. } => "skip",
        Request::Note { .. } => "note",
        Request::Resume => "resume",
        Request::Retry { .. } => "retry",
        Request::Claim { .. } => "claim",
        Request::Question { .. } => "question",
        Request::Answer { .. } => "answer",
        Request::Merge { .. } => "merge",
    };
    let mut words: Vec<&str> = view.pending.iter().map(word).collect();
    words.dedup();
    (!words.is_empty()).then(|| format!("pending: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{Activity, live_line};
    use crate::style::Style;

    #[test]
    fn the_live_line_names_what_is_pending_and_hostile_notes_stay_one_line() {
        let note = Request::Note { text: "a\u{1b}[2J\nb".to_owned() };
        let mut view = RunView::default();
        (view.phase, view.pending) = (Phase::Working, vec![Request::Pause, note]);
        let style = Style { color: false, width: 120, unicode: true };
        let line = live_line(&view, &Activity::Ours("agent working".to_owned()), 0, &style);
        assert!(line.contains("pending: pause, note"), "{line}");
        let told = pending(&view);
        assert_eq!(told[0], "pause after this turn");
        assert!(told[1].starts_with("note for the next prompt: a") && !told[1].contains(['\u{1b}', '\n']), "{}", told[1]);
        assert_eq!(pending_words(&RunView::default()), None);
    }
}
