//! Tool calls as a client announces them, piece by piece: in updates and in permission requests, joined by their id.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// More calls than this at the same time are a fault of the client; the oldest are forgotten.
const MOST_CALLS: usize = 1_000;

/// Everything that is known about one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Announced {
    pub(super) id: String,
    pub(super) kind: Kind,
    /// The client's own name of the tool, where it gives one.
    pub(super) name: Option<String>,
    /// The first title, which is the tool's name in some clients.
    pub(super) first_title: String,
    /// The latest title.
    pub(super) title: String,
    pub(super) input: Map<String, Value>,
    pub(super) paths: Vec<String>,
    pub(super) diffs: Vec<Diff>,
    /// Text beside the call, or its output.
    pub(super) text: String,
    pub(super) verdict: Option<AskState>,
}

/// Whether the client asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskState {
    Waiting,
    Allowed,
    Denied,
}

/// What a call does, in the protocol's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Execute,
    Edit,
    /// Deletes or moves files.
    Delete,
    Read,
    Search,
    Fetch,
    Think,
    SwitchMode,
    #[default]
    Other,
}

impl Kind {
    fn named(name: &str) -> Self {
        match name {
            "execute" => Self::Execute,
            "edit" => Self::Edit,
            "delete" | "move" => Self::Delete,
            "read" => Self::Read,
            "search" => Self::Search,
            "fetch" => Self::Fetch,
            "think" => Self::Think,
            "switch_mode" => Self::SwitchMode,
            _ => Self::Other,
        }
    }
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diff {
    pub(super) path: String,
    pub(super) new: String,
}

impl Announced {
    /// Adds what a `tool_call`, a `tool_call_update` or the `toolCall` of a request says.
    fn add(&mut self, call: &Value) {
        if let Some(kind) = call["kind"].as_str().map(Kind::named).filter(|kind| *kind != Kind::Other) {
            self.kind = kind;
        }
        if let Some(name) = call["_meta"]["toolName"].as_str().or(call["name"].as_str()) {
            self.name = Some(name.to_owned());
        }
        if let Some(title) = call["title"].as_str() {
            if self.first_title.is_empty() {
                title.clone_into(&mut self.first_title);
            }
            title.clone_into(&mut self.title);
        }
        if let Some(input) = call["rawInput"].as_object() {
            self.input.extend(input.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        for location in array(&call["locations"]) {
            self.add_path(location["path"].as_str());
        }
        self.add_content(&call["content"]);
    }

    fn add_content(&mut self, content: &Value) {
        let mut text = String::new();
        for block in array(content) {
            match (block["type"].as_str(), block["path"].as_str(), block["newText"].as_str()) {
                (Some("diff"), Some(path), new) => {
                    self.add_path(Some(path));
                    self.diffs.retain(|diff| diff.path != path);
                    self.diffs.push(Diff { path: path.to_owned(), new: new.unwrap_or_default().to_owned() });
                }
                _ => text.push_str(block["content"]["text"].as_str().unwrap_or_default()),
            }
        }
        if !text.is_empty() {
            self.text = text;
        }
    }

    fn add_path(&mut self, path: Option<&str>) {
        if let Some(path) = path.filter(|path| !path.is_empty() && !self.paths.iter().any(|known| known == path)) {
            self.paths.push(path.to_owned());
        }
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The calls that have not ended yet.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCalls {
    calls: BTreeMap<String, Announced>,
}

impl OpenCalls {
    /// Adds what is said about a call. Returns everything known about it.
    pub(super) fn add(&mut self, call: &Value) -> &mut Announced {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        if self.calls.len() >= MOST_CALLS && !self.calls.contains_key(id) {
            self.calls.pop_first();
        }
        let known = self.calls.entry(id.to_owned()).or_default();
        id.clone_into(&mut known.id);
        known.add(call);
        known
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Announced> {
        self.calls.get_mut(id)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Announced> {
        self.calls.remove(id)
    }

    pub(super) fn clear(&mut self) {
        self.calls.clear();
    }
}
