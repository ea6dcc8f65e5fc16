//! All keys with their values, in the order of the docs, for `config show`.

use serde_json::Value;

use super::Config;
use super::shape::Shape;

/// All keys with their values; null if not set. A list is one value.
pub fn flatten(config: &Config) -> Vec<(String, Value)> {
    let values = serde_json::to_value(config).unwrap_or_default();
    let mut out = Vec::new();
    walk(&Shape::of_config(), &values, "", &mut out);
    out
}

fn walk(shape: &Shape, value: &Value, path: &str, out: &mut Vec<(String, Value)>) {
    match shape {
        Shape::Table(fields) => {
            for field in fields {
                let path = if path.is_empty() { field.key.clone() } else { format!("{path}.{}", field.key) };
                walk(&field.shape, value.get(&field.key).unwrap_or(&Value::Null), &path, out);
            }
        }
        Shape::Map(_) if value.as_object().is_some_and(|entries| !entries.is_empty()) => {
            let entries = value.as_object().into_iter().flatten();
            out.extend(entries.map(|(key, value)| (format!("{path}.{key}"), value.clone())));
        }
        Shape::List(_)
        | Shape::Map(_)
        | Shape::WordOr { .. }
        | Shape::ChoiceOr { .. }
        | Shape::Command
        | Shape::Duration
        | Shape::Choice(_)
        | Shape::Whole { .. }
        | Shape::Number
        | Shape::Text
        | Shape::Flag
        | Shape::Any => {
            out.push((path.to_owned(), value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_listed_once_also_when_unset() {
        let flat = flatten(&Config::default());
        let get = |key: &str| flat.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        assert_eq!(get("plan"), Some(Value::Null));
        assert_eq!(get("agent.command.run"), Some(Value::Null));
        assert_eq!(get("limits.turns"), Some(5.into()));
        assert_eq!(get("limits.turn_time"), Some("1h".into()));
        assert_eq!(get("gate"), Some(Value::Array(Vec::new())));
        let mut keys: Vec<_> = flat.iter().map(|(key, _)| key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), flat.len());
    }
}
