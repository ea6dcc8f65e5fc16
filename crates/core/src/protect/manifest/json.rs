//! JSON as a `Document`.

use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};
use verdone_text::json::{Node, Value as Read, read_whole};

use super::ManifestError;
use super::split::Document;

impl Document for Value {
    fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    fn keys(&self) -> Option<Vec<&str>> {
        Some(self.as_object()?.keys().map(String::as_str).collect())
    }

    fn items(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn table(entries: Vec<(String, Self)>) -> Self {
        Self::Object(Map::from_iter(entries))
    }

    fn list(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn string(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

/// Uses two parsers: ours detects duplicate keys, of which tools may use either.
pub(super) fn read(text: &str) -> Result<Value, ManifestError> {
    let node = read_whole(text).map_err(|fault| ManifestError::Syntax(fault.message.clone()))?;
    if let Some(key) = duplicate_key(&node) {
        return Err(ManifestError::DuplicateKey(key));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| ManifestError::Syntax(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(ManifestError::Syntax("not an object".to_owned())) }
}

fn duplicate_key(node: &Node<'_>) -> Option<String> {
    match &node.value {
        Read::Object(members) => {
            let mut keys: Vec<&str> = members.iter().map(|member| &*member.key).collect();
            keys.sort_unstable();
            let twice = keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned());
            twice.or_else(|| members.iter().find_map(|member| duplicate_key(&member.node)))
        }
        Read::List(items) => items.iter().find_map(duplicate_key),
        Read::Null | Read::Bool | Read::Number(_) | Read::Text(_) | Read::Unread => None,
    }
}

/// Serialises the value with the indentation of an existing text.
pub(super) fn write(value: &Value, like: &str) -> Result<String, ManifestError> {
    let first = like.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or("  \"");
    let indent: String = first.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
    let indent = if indent.is_empty() { "  " } else { &indent };
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(indent.as_bytes()));
    value.serialize(&mut serializer).map_err(|error| ManifestError::Syntax(error.to_string()))?;
    out.push(b'\n');
    String::from_utf8(out).map_err(|_| ManifestError::NotText)
}
