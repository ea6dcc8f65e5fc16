//! Questions of agents for the user, in words: the same in `status`, in the summary, in `show` and in `verdone answer`.

use verdone_core::base::id::StoryId;
use verdone_core::journal::agent_tools::OpenQuestion;
use verdone_core::journal::view::RunView;

use crate::result_text::argument;
use crate::style::Style;
use crate::width::{clean, wrap};
use crate::wording::because;

/// One line for each question that has no answer yet.
pub(crate) fn open_questions(view: &RunView) -> Vec<String> {
    view.open_questions().map(|question| format!("{}: {}", clean(question.story.as_str()), clean(&question.question))).collect()
}

/// The question about a story and its answer.
pub(crate) fn question_about(view: &RunView, story: &StoryId) -> Option<String> {
    let OpenQuestion { question, answer, reason, .. } = view.questions.iter().find(|question| question.story == *story)?;
    let asked = because(&format!("Asked: {}", clean(question)), &clean(reason));
    Some(match answer {
        Some(answer) => format!("{asked}; answered: {}", clean(answer)),
        None => format!("{asked}; to answer: {}", answer_command(story)),
    })
}

pub(crate) fn answer_command(story: &StoryId) -> String {
    format!("verdone answer {} TEXT", argument(story))
}

/// The page of `verdone answer` without a text.
pub fn questions(view: &RunView, style: &Style) -> String {
    if view.questions.is_empty() {
        return "No agent has asked a question.\n".to_owned();
    }
    let mut page = String::new();
    for question in &view.questions {
        let state = match &question.answer {
            Some(answer) => format!("answered: {}", clean(answer)),
            None => format!("to answer: {}", answer_command(&question.story)),
        };
        let head = format!("{}: {}", clean(question.story.as_str()), clean(&question.question));
        for (text, indent) in [(head, 0), (clean(&question.reason), 2), (state, 2)] {
            for row in wrap(&text, style.width.saturating_sub(indent).max(1), 8, style.unicode) {
                page.push_str(format!("{:indent$}{row}", "").trim_end());
                page.push('\n');
            }
        }
    }
    page
}
