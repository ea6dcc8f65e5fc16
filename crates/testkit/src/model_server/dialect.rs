//! The APIs that the server speaks. Requests of all of them are examined, and scripted, in the form of the Messages API.

use serde_json::Value;

use super::script::{ApiError, Turn};
use super::wire::{self, Event};
use super::{chat, gemini};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Messages,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's Chat Completions.
    Chat,
}

impl Dialect {
    /// `None` if the request is not for the model.
    pub(super) fn from_request(method: &str, path: &str) -> Option<Self> {
        match path {
            _ if method != "POST" => None,
            "/v1/messages" => Some(Self::Messages),
            _ if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The request in the form of the Messages API.
    pub(super) fn read(self, path: &str, body: Value) -> Value {
        match self {
            Self::Messages => body,
            Self::Gemini => gemini::read(path, &body),
            Self::Chat => chat::read(&body),
        }
    }

    pub(super) fn whole(self, turn: &Turn, model: &str, number: usize) -> Value {
        match self {
            Self::Messages => wire::message(turn, model, number),
            Self::Gemini => gemini::answer(turn, model, number),
            Self::Chat => chat::answer(turn, model, number),
        }
    }

    pub(super) fn events(self, turn: &Turn, model: &str, number: usize) -> Vec<Event> {
        match self {
            Self::Messages => wire::events(turn, model, number),
            Self::Gemini => gemini::events(turn, model, number),
            Self::Chat => chat::events(turn, model, number),
        }
    }

    pub(super) fn refusal(self, error: &ApiError) -> Value {
        match self {
            Self::Messages => wire::refusal(error),
            Self::Gemini => gemini::refusal(error),
            Self::Chat => chat::refusal(error),
        }
    }
}
