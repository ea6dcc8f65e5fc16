//! `verdone config show`: every key with its value and where it comes from.

use serde_json::{Value, json};
use verdone_core::config::{Origin, flatten};
use verdone_runtime::project::config_file::{Flags, Settings};
use verdone_runtime::project::{Project, ProjectError, find_git_top};

use super::{Context, Outcome};
use crate::args::ConfigShowArgs;
use crate::error::CliError;
use crate::terminal::{Style, print, printable, say};

pub(super) fn run(args: &ConfigShowArgs, context: &Context) -> Outcome {
    let project = project(context)?;
    let settings = context.settings(&project, &Flags::default())?;
    let text = if args.json { in_json(&project, &settings) } else { in_columns(&settings, context) };
    print(&text)?;
    if !args.json {
        settings.warnings.iter().for_each(|text| say(&format!("note: {}\n", printable(text))));
    }
    Ok(0)
}

/// Settings can also be shown outside of a repository.
fn project(context: &Context) -> Result<Project, CliError> {
    match find_git_top(&context.start) {
        Ok(top) => Ok(Project::find(&context.start, &top)?),
        Err(ProjectError::NotARepository { .. } | ProjectError::Bare { .. }) => {
            Ok(Project::find(&context.start, &context.start)?)
        }
        Err(error @ ProjectError::Folder { .. }) => Err(error.into()),
    }
}

struct Row {
    key: String,
    value: String,
    origin: String,
}

fn in_columns(settings: &Settings, context: &Context) -> String {
    let mut rows = Vec::new();
    let row = |key: &str, value: String, origin: &Origin| Row {
        key: printable(key),
        value: printable(&value),
        origin: origin.to_string(),
    };
    for (key, value) in flatten(&settings.resolved.config) {
        let origin = settings.resolved.origin(&key);
        let value = without_secret(&key, value, settings);
        if key != "gate" || settings.resolved.config.gate.is_empty() {
            rows.push(row(&key, shown(&value), origin));
            continue;
        }
        for (n, gate) in settings.resolved.config.gate.iter().enumerate() {
            let limit = gate.timeout.map(|span| format!(" (at most {span})")).unwrap_or_default();
            let value = format!("{}: {}{limit}", gate.stage.name(), gate.command.display());
            rows.push(row(&format!("gate.{}", gate.name), value, settings.resolved.origin(&format!("gate[{n}]"))));
        }
    }
    if let Some(prd) = settings.prd {
        rows.push(row("PRD", prd.to_string(), &Origin::Env("PRD_NUMBER".to_owned())));
    }
    if let Some(path) = &settings.progress {
        rows.push(row("progress", path.display().to_string(), &Origin::Env("PROGRESS_PATH".to_owned())));
    }
    let widest = |pick: fn(&Row) -> &String| rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or(0);
    let (keys, origins) = (widest(|row| &row.key), widest(|row| &row.origin));
    // The value column gets the remaining width, so that one long command does not push all origins aside.
    let values = widest(|row| &row.value).min(context.terminal.width.saturating_sub(keys + origins + 4).max(16));
    let paint = context.terminal.out;
    let lines = rows.iter().map(|row| {
        let origin = if row.origin == "default" { paint.style(Style::Dim, &row.origin) } else { row.origin.clone() };
        format!("{}{}  {:<values$}  {origin}\n", paint.style(Style::Heading, &row.key), pad(&row.key, keys), row.value)
    });
    lines.collect()
}

fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// The address of a webhook often is a secret, so only its host is shown.
fn without_secret(key: &str, value: Value, settings: &Settings) -> Value {
    match &settings.resolved.config.notify.webhook.url {
        Some(url) if key == "notify.webhook.url" => Value::String(format!("{url} (the rest is hidden)")),
        Some(_) | None => value,
    }
}

/// Formats a value as in the config file.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "(not set)".to_owned(),
        Value::Array(list) if list.is_empty() => "(none)".to_owned(),
        Value::Object(table) if table.is_empty() => "(none)".to_owned(),
        Value::String(_) | Value::Array(_) | Value::Object(_) | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn in_json(project: &Project, settings: &Settings) -> String {
    let rows: Vec<Value> = flatten(&settings.resolved.config)
        .into_iter()
        .map(|(key, value)| {
            let (kind, place) = match settings.resolved.origin(&key) {
                Origin::Default => ("default", None),
                Origin::File(name) => ("file", Some(name)),
                Origin::Env(name) => ("env", Some(name)),
                Origin::Flag(name) => ("flag", Some(name)),
            };
            let value = without_secret(&key, value, settings);
            json!({ "key": key, "value": value, "origin": kind, "place": place })
        })
        .collect();
    let value = json!({
        "root": project.root,
        "config": settings.has_file.then_some(&project.config_path),
        "ralph_home": settings.ralph_home,
        "prd": settings.prd,
        "progress": settings.progress,
        "settings": rows,
        "warnings": settings.warnings,
    });
    format!("{value:#}\n")
}
