//! The type of each key, derived from the JSON Schema: one source for error messages, the config template and the docs.

use serde_json::{Map, Value};

use super::Config;

impl Config {
    /// The JSON Schema of `.verdone/config.toml`.
    pub fn schema() -> Value {
        schemars::schema_for!(Config).to_value()
    }
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Fields in declaration order.
    Table(Vec<Field>),
    List(Box<Shape>),
    /// A table with user-defined keys.
    Map(Box<Shape>),
    /// A fixed word, or a value of another type.
    WordOr {
        word: String,
        or: Box<Shape>,
    },
    /// One of several words, or a value of another type.
    ChoiceOr {
        choices: Vec<Choice>,
        or: Box<Shape>,
    },
    /// A string for `sh -c`, or a list of words.
    Command,
    Duration,
    Choice(Vec<Choice>),
    /// A non-negative integer.
    Whole {
        most: u64,
    },
    /// A non-negative number.
    Number,
    Text,
    Flag,
    /// A type that this module cannot describe; serde still checks it.
    Any,
}

/// One possible value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub name: String,
    /// Empty if the name is self-explanatory.
    pub meaning: String,
}

/// One key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub key: String,
    pub shape: Shape,
    /// The meaning in one or two sentences.
    pub meaning: String,
    pub default: Option<Value>,
    pub required: bool,
}

impl Shape {
    /// The shape of the whole config.
    pub fn of_config() -> Self {
        let schema = Config::schema();
        shape_of(&schema, &schema)
    }

    /// The possible values, if there are only a few. For a table with user-defined keys, the possible values of each key.
    pub fn choices(&self) -> Option<&[Choice]> {
        match self {
            Self::Choice(choices) | Self::ChoiceOr { choices, .. } => Some(choices),
            Self::Map(item) => item.choices(),
            Self::Table(_)
            | Self::List(_)
            | Self::WordOr { .. }
            | Self::Command
            | Self::Duration
            | Self::Whole { .. }
            | Self::Number
            | Self::Text
            | Self::Flag
            | Self::Any => None,
        }
    }

    /// Describes the expected value, for error messages and docs.
    pub fn describe(&self) -> String {
        match self {
            Self::Table(_) => "a table".to_owned(),
            Self::List(item) if matches!(item.as_ref(), Self::Table(_)) => "a list of tables".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(item) => format!("a table of names, each with {}", item.describe()),
            Self::WordOr { word, or } => match or.as_ref() {
                Self::Table(fields) => {
                    let keys: Vec<_> = fields.iter().map(|field| format!("`{}`", field.key)).collect();
                    format!("\"{word}\", or a table with {}", keys.join(" or "))
                }
                Self::List(_)
                | Self::Map(_)
                | Self::WordOr { .. }
                | Self::ChoiceOr { .. }
                | Self::Command
                | Self::Duration
                | Self::Choice(_)
                | Self::Whole { .. }
                | Self::Number
                | Self::Text
                | Self::Flag
                | Self::Any => format!("\"{word}\", or {}", or.describe()),
            },
            Self::Command => "a command: a string for `sh -c`, or a list of strings".to_owned(),
            Self::Duration => "a duration such as \"30m\", \"1h 30m\", \"45s\" or \"off\"".to_owned(),
            Self::Choice(choices) => format!("one of {}", quoted(choices)),
            Self::ChoiceOr { choices, or } => format!("one of {}, or {}", quoted(choices), or.describe()),
            Self::Whole { .. } => "a whole number, 0 or more".to_owned(),
            Self::Number => "a number, 0 or more".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Any => "another type".to_owned(),
        }
    }
}

fn quoted(choices: &[Choice]) -> String {
    choices.iter().map(|choice| format!("\"{}\"", choice.name)).collect::<Vec<_>>().join(", ")
}

fn shape_of(node: &Value, root: &Value) -> Shape {
    if let Some(name) = node.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/")) {
        return match name {
            "Duration" => Shape::Duration,
            "CommandSpec" => Shape::Command,
            other => root.get("$defs").and_then(|defs| defs.get(other)).map_or(Shape::Any, |def| shape_of(def, root)),
        };
    }
    let either = node.get("anyOf").and_then(Value::as_array).map(Vec::as_slice);
    if let Some([word, or]) = either
        && let Some(word) = word.get("const").and_then(Value::as_str)
    {
        return Shape::WordOr { word: word.to_owned(), or: Box::new(shape_of(or, root)) };
    }
    if let Some((choices, or)) = either.and_then(choices_and_another) {
        return Shape::ChoiceOr { choices, or: Box::new(shape_of(or, root)) };
    }
    // The schema of an optional value is `anyOf` the value and null.
    if let Some(some) = node.get("anyOf").and_then(Value::as_array).and_then(|any| any.iter().find(|one| !is_null(one))) {
        return shape_of(some, root);
    }
    if let Some(names) = choices(node) {
        return Shape::Choice(names);
    }
    if let Some(properties) = node.get("properties").and_then(Value::as_object) {
        return Shape::Table(fields(properties, node, root));
    }
    match type_name(node) {
        Some("array") => Shape::List(Box::new(node.get("items").map_or(Shape::Any, |items| shape_of(items, root)))),
        Some("integer") => Shape::Whole { most: if node["format"] == "uint32" { u64::from(u32::MAX) } else { i64::MAX as u64 } },
        Some("number") => Shape::Number,
        Some("string") => Shape::Text,
        Some("boolean") => Shape::Flag,
        Some("object") => match node.get("additionalProperties").filter(|item| item.is_object()) {
            Some(item) => Shape::Map(Box::new(shape_of(item, root))),
            None => Shape::Table(Vec::new()),
        },
        Some(_) | None => Shape::Any,
    }
}

fn fields(properties: &Map<String, Value>, table: &Value, root: &Value) -> Vec<Field> {
    let required = |key: &str| table["required"].as_array().is_some_and(|names| names.iter().any(|name| name == key));
    let field = |(key, node): (&String, &Value)| Field {
        key: key.clone(),
        shape: shape_of(node, root),
        meaning: meaning(node, root),
        default: node.get("default").cloned(),
        required: required(key),
    };
    properties.iter().map(field).collect()
}

/// The key's own description, or else that of its type.
fn meaning(node: &Value, root: &Value) -> String {
    let own = node.get("description").and_then(Value::as_str);
    let by_type = || {
        let name = node.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        root.get("$defs")?.get(name)?.get("description")?.as_str()
    };
    own.or_else(by_type).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn choices(node: &Value) -> Option<Vec<Choice>> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    if let Some(names) = node.get("enum").and_then(Value::as_array) {
        return names.iter().map(|name| Some(Choice { name: text(Some(name))?, meaning: String::new() })).collect();
    }
    let variants = node.get("oneOf").and_then(Value::as_array)?;
    // Variants without a description are grouped in one `enum`.
    let of_variant = |variant: &Value| {
        let plain = |name: &Value| Some(Choice { name: text(Some(name))?, meaning: String::new() });
        match variant.get("enum").and_then(Value::as_array) {
            Some(names) => names.iter().map(plain).collect::<Option<Vec<Choice>>>(),
            None => Some(vec![Choice {
                name: text(variant.get("const"))?,
                meaning: text(variant.get("description")).unwrap_or_default(),
            }]),
        }
    };
    variants.iter().map(of_variant).collect::<Option<Vec<_>>>().map(|lists| lists.into_iter().flatten().collect())
}

/// The words of an enum whose last variant is another type.
fn choices_and_another(any: &[Value]) -> Option<(Vec<Choice>, &Value)> {
    let (or, words) = any.split_last().filter(|(or, words)| !is_null(or) && !words.is_empty())?;
    let words = choices(&serde_json::json!({ "oneOf": words }))?;
    choices(&serde_json::json!({ "oneOf": [or] })).is_none().then_some((words, or))
}

fn type_name(node: &Value) -> Option<&str> {
    match node.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ => None,
    }
}

fn is_null(node: &Value) -> bool {
    node.get("type").is_some_and(|kind| kind == "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(shape: &Shape, path: &str, visit: &mut impl FnMut(&str, &Field)) {
        match shape {
            Shape::Table(fields) => {
                for field in fields {
                    let path = format!("{path}.{}", field.key);
                    visit(&path, field);
                    each(&field.shape, &path, visit);
                }
            }
            Shape::List(item) | Shape::Map(item) | Shape::WordOr { or: item, .. } | Shape::ChoiceOr { or: item, .. } => {
                each(item, path, visit);
            }
            Shape::Command
            | Shape::Duration
            | Shape::Choice(_)
            | Shape::Whole { .. }
            | Shape::Number
            | Shape::Text
            | Shape::Flag
            | Shape::Any => {}
        }
    }

    #[test]
    fn every_key_has_a_shape_and_a_meaning() {
        let mut seen = 0;
        each(&Shape::of_config(), "", &mut |path, field| {
            seen += 1;
            assert_ne!(field.shape, Shape::Any, "{path}");
            assert!(!field.meaning.is_empty(), "{path}");
        });
        assert!(seen > 25);
    }
}
