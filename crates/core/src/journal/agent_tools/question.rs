//! Whether a question of an agent is a new one. Each new one reaches the user, so an agent that repeats itself must not.

use super::OpenQuestion;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionStatus {
    New,
    AlreadyAsked,
    Answered(String),
    /// Another one was asked in this turn.
    OneTooMany,
}

impl QuestionStatus {
    /// `known` is the last question about the story before this turn, `in_turn` the one that was asked in it.
    pub fn of(question: &str, known: Option<&OpenQuestion>, in_turn: Option<&str>) -> Self {
        match (in_turn, known.filter(|known| known.question == question)) {
            (Some(asked), _) if asked == question => Self::AlreadyAsked,
            (_, Some(OpenQuestion { answer: Some(answer), .. })) => Self::Answered(answer.clone()),
            (_, Some(OpenQuestion { answer: None, .. })) => Self::AlreadyAsked,
            (Some(_), None) => Self::OneTooMany,
            (None, None) => Self::New,
        }
    }
}
