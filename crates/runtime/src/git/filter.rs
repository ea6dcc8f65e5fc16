//! Filters that the user's settings call required: without their program, git can neither read nor write the files they are for.

use std::collections::BTreeMap;

use super::Git;
use super::error::GitError;

/// A required filter and the commands that it consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredFilter {
    pub name: String,
    pub commands: Vec<String>,
}

impl Git {
    /// The filters that are required by the settings, whether files use them or not.
    pub fn required_filters(&self) -> Result<Vec<RequiredFilter>, GitError> {
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
        let required = filters.into_iter().filter(|(_, (required, _))| *required);
        Ok(required.map(|(name, (_, commands))| RequiredFilter { name, commands }).collect())
    }

    /// Whether any tracked file goes through this filter.
    pub fn uses_filter(&self, name: &str) -> Result<bool, GitError> {
        // Only names that can stand in a pathspec as they are; any other counts as used, which is the careful answer.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Ok(true);
        }
        let spec = format!(":(top,attr:filter={name})");
        Ok(!self.plumbing("ls-files").args(["-z", "--", &spec]).run()?.is_empty())
    }
}
