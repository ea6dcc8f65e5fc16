//! Explains in the user's terms why settings were rejected. Runs only after serde failed, or for rules that serde cannot check.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};
use verdone_text::pattern::{PatternError, check_name};
use verdone_text::suggest::nearest;

use super::Config;
use super::shape::{Field, Shape};
use crate::base::span::Span;

/// One step from the root of a config to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A fault: its path, message and hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) path: Vec<Step>,
    pub(super) on_key: bool,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Finding {
    /// Prefixes the path of the finding.
    pub(super) fn below(self, mut path: Vec<Step>) -> Self {
        path.extend(self.path);
        Self { path, ..self }
    }
}

/// The first fault of a table that serde rejected; `None` if only serde's own message explains it.
pub(super) fn refused(table: &Table) -> Option<Finding> {
    let root = Shape::of_config();
    let mut path = Vec::new();
    in_value(&Value::Table(table.clone()), &root, &mut path, &root)
}

/// The first fault in settings of the right types.
pub(super) fn unusable(config: &Config) -> Option<Finding> {
    but_examples(config).or_else(|| super::policy::broken_example(&config.policy))
}

/// Like [`unusable`], but does not check the rules' examples.
pub(super) fn but_examples(config: &Config) -> Option<Finding> {
    let key = |text: &str| Step::Key(text.to_owned());
    if config.agent.command.run.as_ref().is_some_and(crate::check::CommandSpec::is_empty) {
        let path = vec![key("agent"), key("command"), key("run")];
        return Some(Finding { path, on_key: false, message: "the agent's command is empty".to_owned(), hint: None });
    }
    let clients = super::claude::unusable(&config.agent.claude)
        .or_else(|| super::codex::unusable(&config.agent.codex))
        .or_else(|| super::acp::unusable(&config.agent));
    if let Some(finding) = clients {
        return Some(finding);
    }
    if config.merge.command.as_ref().is_some_and(crate::check::CommandSpec::is_empty) {
        let message = "the command is empty".to_owned();
        return Some(Finding { path: vec![key("merge"), key("command")], on_key: false, message, hint: None });
    }
    if config.merge.timeout.limit().is_none() {
        let message = "the merge command needs a timeout".to_owned();
        return Some(Finding { path: vec![key("merge"), key("timeout")], on_key: false, message, hint: None });
    }
    if config.commit.subject.trim().is_empty() || config.commit.subject.contains('\n') {
        let message = "the commit subject must be one line of text".to_owned();
        return Some(Finding { path: vec![key("commit"), key("subject")], on_key: false, message, hint: None });
    }
    super::gate::unusable(&config.gate)
        .or_else(|| super::policy::unusable(&config.policy))
        .or_else(|| super::after_tool::unusable(&config.after_tool))
        .or_else(|| {
            let finding = unreadable(&config.stop.subagents, check_name)?;
            Some(finding.below(vec![key("stop"), key("subagents")]))
        })
        .or_else(|| super::done::unusable(&config.done))
        .or_else(|| super::notify::unusable(&config.notify))
        .or_else(|| super::workspace::unusable(&config.workspace))
        .or_else(|| super::seal::unusable(&config.seal))
        .or_else(|| super::protect::unusable(&config.protect))
}

/// The first invalid pattern of a list.
pub(super) fn unreadable(patterns: &[String], check: fn(&str) -> Result<(), PatternError>) -> Option<Finding> {
    let (number, error) = patterns.iter().enumerate().find_map(|(n, pattern)| Some((n, check(pattern).err()?)))?;
    let (message, hint) = (error.to_string(), Some(error.hint.to_owned()));
    Some(Finding { path: vec![Step::Index(number)], on_key: false, message, hint })
}

/// The bytes of a key or value in the text of its file. If the file does not contain the path, those of the nearest ancestor.
pub(super) fn locate(text: &str, finding: &Finding) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let mut found = None;
    let (mut table, mut array): (Option<&DeTable<'_>>, Option<&[Spanned<DeValue<'_>>]>) = (Some(root.get_ref()), None);
    for (n, step) in finding.path.iter().enumerate() {
        let last = n + 1 == finding.path.len();
        let value = match step {
            Step::Key(name) => {
                let Some((key, value)) = table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name)) else {
                    break;
                };
                found = Some(if last && finding.on_key { key.span() } else { value.span() });
                value
            }
            Step::Index(n) => {
                let Some(value) = array.and_then(|array| array.get(*n)) else { break };
                found = Some(value.span());
                value
            }
        };
        (table, array) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(array) => (None, Some(array.as_ref())),
            DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
                (None, None)
            }
        };
    }
    found
}

/// `limits.turns`, `gate[2].name`.
pub(super) fn spelled(path: &[Step]) -> String {
    path.iter().fold(String::new(), |mut out, step| {
        match step {
            Step::Key(name) if out.is_empty() => out.push_str(name),
            Step::Key(name) => {
                out.push('.');
                out.push_str(name);
            }
            Step::Index(n) => out.push_str(&["[", &n.to_string(), "]"].concat()),
        }
        out
    })
}

fn in_value(value: &Value, shape: &Shape, path: &mut Vec<Step>, root: &Shape) -> Option<Finding> {
    let wrong = |path: &[Step]| {
        let message = format!("`{}` must be {}, not {}", spelled(path), shape.describe(), kind(value));
        Some(Finding { path: path.to_vec(), on_key: false, message, hint: None })
    };
    match (shape, value) {
        (Shape::Table(fields), Value::Table(table)) => in_table(table, fields, path, root),
        (Shape::List(item), Value::Array(values)) => values.iter().enumerate().find_map(|(n, value)| {
            path.push(Step::Index(n));
            let finding = in_value(value, item, path, root);
            path.pop();
            finding
        }),
        (Shape::Map(item), Value::Table(table)) => table.iter().find_map(|(key, value)| {
            path.push(Step::Key(key.clone()));
            let finding = in_value(value, item, path, root);
            path.pop();
            finding
        }),
        // `[[gates]]` instead of `[[gate]]`.
        (Shape::Table(_), Value::Array(values)) if values.iter().all(Value::is_table) => {
            let mut finding = Finding { on_key: true, ..wrong(path)? };
            let lists = |field: &&Field| matches!(&field.shape, Shape::List(item) if matches!(item.as_ref(), Shape::Table(_)));
            let Shape::Table(fields) = root else { return Some(finding) };
            let known = fields.iter().filter(lists).map(|field| field.key.as_str());
            finding.hint = nearest(&spelled(path), known).map(|name| format!("did you mean `{name}`? Write [[{name}]]"));
            Some(finding)
        }
        // `[gate]` instead of `[[gate]]`.
        (Shape::List(item), Value::Table(_)) if matches!(item.as_ref(), Shape::Table(_)) => {
            let name = spelled(path);
            let message = format!("`{name}` must be a list of tables");
            Some(Finding {
                path: path.clone(),
                on_key: true,
                message,
                hint: Some(format!("write [[{name}]] instead of [{name}]")),
            })
        }
        (Shape::WordOr { word, .. }, Value::String(text)) if text == word => None,
        (Shape::WordOr { word, .. }, Value::String(text)) => {
            let message = format!("`{}` cannot be {text:?}, expected {}", spelled(path), shape.describe());
            let hint = nearest(text, [word.as_str()]).map(|name| format!("did you mean {name:?}?"));
            Some(Finding { path: path.clone(), on_key: false, message, hint })
        }
        (Shape::WordOr { or, .. }, Value::Table(_)) | (Shape::ChoiceOr { or, .. }, Value::Array(_) | Value::Table(_)) => {
            in_value(value, or, path, root)
        }
        (Shape::Command, Value::Array(words)) if words.iter().all(Value::is_str) => None,
        (Shape::Command | Shape::Text, Value::String(_)) | (Shape::Flag, Value::Boolean(_)) | (Shape::Any, _) => None,
        (Shape::Duration, Value::String(text)) => {
            let message = text.parse::<Span>().err()?;
            Some(Finding { path: path.clone(), on_key: false, message: format!("`{}`: {message}", spelled(path)), hint: None })
        }
        (Shape::Duration, Value::Integer(number)) => {
            let mut finding = wrong(path)?;
            finding.hint = Some(format!("write \"{number}s\" for seconds or \"{number}m\" for minutes"));
            Some(finding)
        }
        (Shape::ChoiceOr { choices, .. }, Value::String(text)) if choices.iter().any(|choice| choice.name == *text) => None,
        (Shape::Choice(choices), Value::String(text)) if choices.iter().any(|choice| choice.name == *text) => None,
        (Shape::Choice(choices) | Shape::ChoiceOr { choices, .. }, Value::String(text)) => {
            let message = format!("`{}` cannot be {text:?}, expected {}", spelled(path), shape.describe());
            let hint =
                nearest(text, choices.iter().map(|choice| choice.name.as_str())).map(|name| format!("did you mean {name:?}?"));
            Some(Finding { path: path.clone(), on_key: false, message, hint })
        }
        (Shape::Whole { most }, Value::Integer(number)) => match u64::try_from(*number) {
            Ok(number) if number <= *most => None,
            Ok(_) => {
                let message = format!("`{}` can be at most {most}", spelled(path));
                Some(Finding { path: path.clone(), on_key: false, message, hint: None })
            }
            Err(_) => {
                let message = format!("`{}` must be {}, not {number}", spelled(path), shape.describe());
                Some(Finding { path: path.clone(), on_key: false, message, hint: None })
            }
        },
        (Shape::Number, Value::Integer(number)) if *number >= 0 => None,
        (Shape::Number, Value::Float(number)) if number.is_finite() && *number >= 0.0 => None,
        (
            Shape::Table(_)
            | Shape::List(_)
            | Shape::Map(_)
            | Shape::WordOr { .. }
            | Shape::ChoiceOr { .. }
            | Shape::Command
            | Shape::Duration
            | Shape::Choice(_)
            | Shape::Whole { .. }
            | Shape::Number
            | Shape::Text
            | Shape::Flag,
            _,
        ) => wrong(path),
    }
}

fn in_table(table: &Table, fields: &[Field], path: &mut Vec<Step>, root: &Shape) -> Option<Finding> {
    for (key, value) in table {
        path.push(Step::Key(key.clone()));
        let finding = match fields.iter().find(|field| field.key == *key) {
            Some(field) => in_value(value, &field.shape, path, root),
            None => Some(unknown(key, fields, path, root)),
        };
        path.pop();
        if finding.is_some() {
            return finding;
        }
    }
    let missing = fields.iter().find(|field| field.required && !table.contains_key(&field.key))?;
    let message = format!("`{}` needs the key `{}`: {}", spelled(path), missing.key, missing.shape.describe());
    Some(Finding { path: path.clone(), on_key: false, message, hint: None })
}

/// Keys of the first edition, and their replacements.
const RETIRED: [(&str, &str); 6] = [
    ("tamper", "tests and configuration are compared with those from before the work: set what is protected in [protect]"),
    ("own_check", "set the required proof in [done]: minimum = \"agent-tested\""),
    ("clean", "checks run in workspaces that include ignored folders: configure them in [workspace] folders"),
    ("gate.where", "every gate runs in a workspace with exactly the files to verify: remove this key, or see [workspace]"),
    ("gate.share", "ignored folders are available automatically: configure them in [workspace] folders"),
    ("gate.setup", "the checkout's dependency folders are available automatically: see [workspace] folders"),
];

fn unknown(key: &str, fields: &[Field], path: &[Step], root: &Shape) -> Finding {
    let here = spelled(&path[..path.len() - 1]);
    let whole = spelled(path);
    let keys: Vec<Step> = path.iter().filter(|step| matches!(step, Step::Key(_))).cloned().collect();
    if let Some((_, instead)) = RETIRED.iter().find(|(name, _)| *name == spelled(&keys)) {
        let message = format!("`{whole}` is no longer a setting");
        return Finding { path: path.to_vec(), on_key: true, message, hint: Some((*instead).to_owned()) };
    }
    let list = || {
        let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.key)).collect();
        let of = if here.is_empty() { String::new() } else { format!(" of `{here}`") };
        format!("Known keys{of}: {}", names.join(", "))
    };
    let near = || nearest(key, fields.iter().map(|field| field.key.as_str())).map(|name| format!("did you mean `{name}`?"));
    // A common key such as `timeout` may exist in an unrelated table, so the hint also lists the keys of this table.
    let hint = match whereabouts(key, root, "") {
        Some(home) if here.is_empty() => format!("did you mean `{home}`?"),
        Some(home) => near().unwrap_or_else(|| format!("did you mean `{home}`? {}", list())),
        None => near().unwrap_or_else(list),
    };
    let message = if here.is_empty() { format!("unknown key `{key}`") } else { format!("unknown key `{key}` in `{here}`") };
    Finding { path: path.to_vec(), on_key: true, message, hint: Some(hint) }
}

/// The full name of a key that exists in another table.
fn whereabouts(key: &str, shape: &Shape, prefix: &str) -> Option<String> {
    let Shape::Table(fields) = shape else { return None };
    let own = fields.iter().find(|field| !prefix.is_empty() && field.key == key && !matches!(field.shape, Shape::Table(_)));
    own.map(|field| format!("{prefix}{}", field.key))
        .or_else(|| fields.iter().find_map(|field| whereabouts(key, &field.shape, &format!("{prefix}{}.", field.key))))
}

fn kind(value: &Value) -> String {
    match value {
        Value::String(_) => "a string".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}
