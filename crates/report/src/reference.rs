//! The reference page of the event stream, generated from its schema so that the two cannot disagree.

use serde_json::{Map, Value};

use crate::stream::stream_schema;

/// Markdown for `docs/events.md`.
pub fn events_reference() -> String {
    let schema = stream_schema();
    let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
    let mut page = Page { out: INTRODUCTION.to_owned() };
    page.events("Journal events", &definitions, "Recorded");
    page.events("Lines that are not stored", &definitions, "TransientLine");
    page.out.push_str("\n## Types\n");
    // Events whose fields are a separate type are already documented under the event's name.
    let shown: Vec<&str> = events(&definitions["Recorded"]).filter_map(referenced).chain(["Recorded", "TransientLine"]).collect();
    for (name, definition) in definitions.iter().filter(|(name, _)| !shown.contains(&name.as_str())) {
        page.definition(name, definition);
    }
    page.out
}

const INTRODUCTION: &str = "\
# Events

`verdone run --json` and `verdone log --json` print one JSON object per line. Events are printed exactly as they are in the run's
journal (`.verdone/runs/<run>/journal.jsonl`); output and notices are not stored there. Fields are added, never
renamed: ignore what you do not know. `v` changes when an old reader could misread a line. The JSON Schema is
[`events.schema.json`](events.schema.json). This page is generated from it.
";

struct Page {
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn events(&mut self, title: &str, definitions: &Map<String, Value>, name: &str) {
        let Some(definition) = definitions.get(name) else { return };
        self.line(&format!("\n## {title}\n\nEach has these fields, and those of its event:"));
        self.fields(definition);
        for event in events(definition) {
            let name = event["properties"]["event"]["const"].as_str().unwrap_or_default();
            self.line(&format!("\n### `{name}`\n\n{}", description(event)));
            self.fields(referenced(event).and_then(|name| definitions.get(name)).unwrap_or(event));
        }
    }

    fn definition(&mut self, name: &str, definition: &Value) {
        self.line(&format!("\n### {name}\n\n{}", description(definition)));
        self.fields(definition);
        let choices = ["oneOf", "anyOf"].iter().filter_map(|key| definition[*key].as_array()).flatten();
        let named = definition["enum"].as_array().into_iter().flatten();
        let mut first = true;
        for choice in choices {
            if std::mem::take(&mut first) {
                self.line("");
            }
            let meaning = description(choice);
            let meaning = if meaning.is_empty() { String::new() } else { format!(": {meaning}") };
            self.line(&format!("- {}{meaning}", shape(choice)));
        }
        for value in named {
            if std::mem::take(&mut first) {
                self.line("");
            }
            self.line(&format!("- `{value}`"));
        }
    }

    fn fields(&mut self, schema: &Value) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let fields: Vec<_> = properties.iter().filter(|(name, _)| *name != "event").collect();
        if fields.is_empty() {
            return;
        }
        self.line("\n| field | type | meaning |\n|---|---|---|");
        for (name, field) in fields {
            self.line(&format!("| `{name}` | {} | {} |", shape(field), description(field)));
        }
    }
}

fn events(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["oneOf"].as_array().into_iter().flatten()
}

/// The name of the definition that a schema refers to.
fn referenced(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|path| path.rsplit('/').next())
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// A type in a few words.
fn shape(schema: &Value) -> String {
    if let Some(name) = referenced(schema) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(shape).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(kind) if kind == "array" => format!("list of {}", shape(&schema["items"])),
        Value::String(kind) if kind == "object" => object(schema),
        Value::String(kind) => kind.clone(),
        _ => "any".to_owned(),
    }
}

/// `{"failed": {"code": integer}}`: how a variant with data is serialised.
fn object(schema: &Value) -> String {
    if schema["additionalProperties"].is_object() {
        return format!("map to {}", shape(&schema["additionalProperties"]));
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields: Vec<String> = fields.map(|(name, field)| format!("`{name}`: {}", shape(field))).collect();
    format!("{{{}}}", fields.join(", "))
}
