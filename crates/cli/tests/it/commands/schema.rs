//! The subset of JSON Schema that our published schemas use.

use std::fs;

use serde_json::Value;

use crate::commands::stage::repository_root;

pub(crate) fn read(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(repository_root().join(path)).unwrap()).unwrap()
}

#[track_caller]
pub(crate) fn assert_valid(schema: &Value, value: &Value) {
    if let Err(problem) = check(schema, schema, value, "$") {
        panic!("{problem}\nin {value:#}");
    }
}

/// Returns the first error. An unknown keyword is an error, too, so that no rule is silently skipped.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    const TOLD: [&str; 11] = [
        "$schema",
        "$defs",
        "title",
        "description",
        "examples",
        "default",
        "format",
        "minimum",
        "maximum",
        "uniqueItems",
        "required",
    ];
    let Value::Object(rules) = schema else { return if schema == &Value::Bool(false) { Err(at.to_owned()) } else { Ok(()) } };
    for (rule, wanted) in rules {
        match rule.as_str() {
            "$ref" => check(root, resolve(root, wanted.as_str().unwrap()), value, at)?,
            "type" => of_type(wanted, value, at)?,
            "const" if wanted != value => return Err(format!("{at} is {value}, not {wanted}")),
            "enum" if !wanted.as_array().unwrap().contains(value) => return Err(format!("{at} is {value}, not one of {wanted}")),
            "const" | "enum" => {}
            "properties" => {
                for (name, rule) in wanted.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        check(root, rule, field, &format!("{at}.{name}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                for (name, field) in value.as_object().into_iter().flatten() {
                    if !known.is_some_and(|known| known.contains_key(name)) {
                        check(root, wanted, field, &format!("{at}.{name}"))?;
                    }
                }
            }
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}[{n}]"))?;
                }
            }
            "anyOf" | "oneOf" => {
                let results: Vec<_> = wanted.as_array().unwrap().iter().map(|rule| check(root, rule, value, at)).collect();
                let fitting = results.iter().filter(|result| result.is_ok()).count();
                if fitting == 0 || (rule == "oneOf" && fitting > 1) {
                    return Err(format!("{at} fits {fitting} of {rule}: {results:?}"));
                }
            }
            told if TOLD.contains(&told) => {}
            other => return Err(format!("{at}: the schema uses {other}, which this check does not know")),
        }
    }
    for name in rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            return Err(format!("{at}.{name} is missing"));
        }
    }
    Ok(())
}

fn of_type(wanted: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fits = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let names = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
    let fitting = names.iter().filter_map(Value::as_str).any(fits);
    if fitting { Ok(()) } else { Err(format!("{at} is {value}, not of type {wanted}")) }
}

fn resolve<'a>(root: &'a Value, reference: &str) -> &'a Value {
    root.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

#[test]
fn the_check_finds_what_is_wrong() {
    let schema = read("docs/events.schema.json");
    let good = serde_json::json!({"v": 1, "seq": 1, "at": "2026-01-01T00:00:00Z", "event": "stop_requested", "signal": "SIGINT"});
    assert_valid(&schema, &good);
    for (field, bad) in [("seq", Value::from("1")), ("event", Value::from("stopped")), ("signal", Value::from("SIGKILL"))] {
        let mut line = good.clone();
        line[field] = bad;
        assert!(check(&schema, &schema, &line, "$").is_err(), "{line}");
        line.as_object_mut().unwrap().remove(field);
        // Without the field, the line is invalid, too.
        assert!(check(&schema, &schema, &line, "$").is_err(), "{line}");
    }
}
