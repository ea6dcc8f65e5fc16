//! The APIs that the server speaks. Requests of all of them are examined, and scripted, in the form of the Messages API.

use std::time::SystemTime;

use serde_json::Value;

use super::script::{ApiError, Limit, Turn};
use super::wire::{self, Event};
use super::{chat, gemini, responses};

/// The API of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code's.
    Messages,
    /// `OpenAI`'s Responses, which Codex speaks. Its requests are examined in their own form.
    Responses,
    /// Google's `generateContent`.
    Gemini,
    /// `OpenAI`'s Chat Completions.
    Chat,
}

impl Dialect {
    /// `None` if the request is not for the model.
    pub(super) fn from_request(method: &str, path: &str) -> Option<Self> {
        match path {
            _ if method != "POST" => None,
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses),
            _ if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The request in the form of the Messages API.
    pub(super) fn read(self, path: &str, body: Value) -> Value {
        match self {
            Self::Messages | Self::Responses => body,
            Self::Gemini => gemini::read(path, &body),
            Self::Chat => chat::read(&body),
        }
    }

    pub(super) fn whole(self, turn: &Turn, model: &str, number: usize) -> Value {
        match self {
            Self::Messages | Self::Responses => wire::message(turn, model, number),
            Self::Gemini => gemini::answer(turn, model, number),
            Self::Chat => chat::answer(turn, model, number),
        }
    }

    /// The events of a turn, each with whether the client has seen part of the answer once it is sent.
    pub(super) fn events(self, turn: &Turn, model: &str, number: usize) -> Vec<(bool, Vec<u8>)> {
        let events = match self {
            Self::Responses => return responses::events(turn, model, number),
            Self::Messages => wire::events(turn, model, number),
            Self::Gemini => gemini::events(turn, model, number),
            Self::Chat => chat::events(turn, model, number),
        };
        events.iter().map(|event| (event.is_content(), event.bytes())).collect()
    }

    /// An error in the middle of a stream.
    pub(super) fn error_event(self, kind: &str, message: &str) -> Vec<u8> {
        match self {
            Self::Responses => responses::failed(kind, message),
            Self::Messages | Self::Gemini | Self::Chat => Event::error(kind, message).bytes(),
        }
    }

    /// The headers from which a client reads its limits.
    pub(super) fn limit_headers(self, limit: &Limit, now: SystemTime) -> Vec<(String, String)> {
        match self {
            Self::Responses => responses::limit_headers(limit, now),
            Self::Messages | Self::Gemini | Self::Chat => wire::limit_headers(limit, now),
        }
    }

    pub(super) fn refusal(self, error: &ApiError) -> Value {
        match self {
            Self::Messages => wire::refusal(error),
            Self::Responses => responses::refusal(error),
            Self::Gemini => gemini::refusal(error),
            Self::Chat => chat::refusal(error),
        }
    }
}
