//! Filters from the user's settings: programs through which git reads and writes files. A filter may execute a file of the tree,
//! so git runs filters on an agent's files only inside a view.

use std::collections::BTreeMap;

use super::Git;
use super::command::Call;
use super::error::GitError;
use crate::launcher::Inside;
use crate::process::EnvPlan;

/// How filters are handled when git reads or writes an agent's files.
#[derive(Debug, Clone, Default)]
pub enum Filters {
    /// No filters are configured.
    #[default]
    None,
    /// Git and the filters run in this view.
    Inside { inside: Inside, env: EnvPlan },
    /// There are no views, so these filters are disabled. Repositories that need them are refused.
    Off(Vec<String>),
}

/// A required filter and its commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredFilter {
    pub name: String,
    pub commands: Vec<String>,
}

impl Git {
    /// The filters that the settings require, whether files use them or not.
    pub fn required_filters(&self) -> Result<Vec<RequiredFilter>, GitError> {
        let required = self.all_filters()?.into_iter().filter(|(_, (required, _))| *required);
        Ok(required.map(|(name, (_, commands))| RequiredFilter { name, commands }).collect())
    }

    /// The names of all filters that start a program, whether files use them or not.
    pub fn filters(&self) -> Result<Vec<String>, GitError> {
        let working = self.all_filters()?.into_iter().filter(|(_, (_, commands))| !commands.is_empty());
        Ok(working.map(|(name, _)| name).collect())
    }

    fn all_filters(&self) -> Result<BTreeMap<String, (bool, Vec<String>)>, GitError> {
        let pattern = r"^filter\..*\.(clean|smudge|process|required)$";
        // Exit code 1: no such setting.
        let answer = self.plumbing("config").args(["-z", "--get-regexp", pattern]).answer()?;
        if !answer.status.success() && answer.status.code() != Some(1) {
            return Err(answer.failure("config"));
        }
        let mut filters: BTreeMap<String, (bool, Vec<String>)> = BTreeMap::new();
        for record in answer.stdout.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let text = String::from_utf8_lossy(record);
            // A setting without a value means true.
            let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
            let Some((name, what)) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) else { continue };
            let (required, commands) = filters.entry(name.to_owned()).or_default();
            match what {
                "required" => *required = matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"),
                _ if value.is_empty() => {}
                _ => commands.push(value.to_owned()),
            }
        }
        Ok(filters)
    }

    /// Whether any tracked file uses this filter.
    pub fn uses_filter(&self, name: &str) -> Result<bool, GitError> {
        // To be safe, a name that cannot be used in a pathspec unquoted counts as used.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Ok(true);
        }
        let spec = format!(":(top,attr:filter={name})");
        Ok(!self.plumbing("ls-files").args(["-z", "--", &spec]).run()?.is_empty())
    }
}

impl Filters {
    pub(super) fn apply(&self, call: Call) -> Result<Call, GitError> {
        match self {
            Self::None => Ok(call),
            Self::Inside { inside, env } => Ok(call.inside(inside)?.with_plan(env)),
            Self::Off(names) => Ok(call.settings(names.iter().flat_map(|name| {
                let set = |what: &str, value: &str| (format!("filter.{name}.{what}"), value.to_owned());
                [set("clean", ""), set("smudge", ""), set("process", ""), set("required", "false")]
            }))),
        }
    }
}
