//! The environment of a child process: ours, without variables of an outer session, an outer run or another repository.

use std::ffi::{OsStr, OsString};

use verdone_core::agent::client_variables::is_of_outer_session;
use verdone_core::base::redact::Redactor;

/// Changes to the cleaned environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvPlan {
    pub set: Vec<(OsString, OsString)>,
    pub unset: Vec<OsString>,
}

impl EnvPlan {
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn without(mut self, name: impl Into<OsString>) -> Self {
        self.unset.push(name.into());
        self
    }
}

/// The variables that a child inherits, sorted by name.
pub(crate) fn inherited() -> Vec<(String, String)> {
    let lossy = |(name, value): (OsString, OsString)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
    let mut all: Vec<(String, String)> = std::env::vars_os().filter(|(name, _)| !is_removed(name)).map(lossy).collect();
    all.sort();
    all
}

/// A redactor that knows the secrets in our environment and in the added variables.
pub fn redactor_from_environment(added: &[(String, String)]) -> Redactor {
    let lossy = |(name, value): (OsString, OsString)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
    Redactor::new(std::env::vars_os().map(lossy).chain(added.iter().cloned()))
}

/// These name a repository, an index or a run unrelated to the child. They can be set because a git hook or alias started us.
const REMOVED: [&str; 21] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "VERDONE_ATTEMPT",
    "VERDONE_FAULT",
    "VERDONE_ITERATION",
    "VERDONE_PLAN",
    "VERDONE_PROMPT_FILE",
    "VERDONE_RUN",
    "VERDONE_STORY",
    "VERDONE_TURN",
    "VERDONE_VERIFY",
];

pub(super) fn is_removed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    is_of_outer_session(name) || REMOVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outer_session_and_another_repository_do_not_shine_through() {
        for (name, removed) in [
            ("CLAUDECODE", true),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", false),
            ("CLAUDE_CODE_SIMPLE", true),
            ("CLAUDE_CODE_OAUTH_TOKEN", false),
            ("CLAUDE_CONFIG_DIR", false),
            ("ANTHROPIC_API_KEY", false),
            ("GIT_DIR", true),
            ("GIT_INDEX_FILE", true),
            ("GIT_AUTHOR_NAME", false),
            ("VERDONE_RUN", true),
            ("VERDONE_VERIFY", true),
            (crate::base::fault::VARIABLE, true),
            ("PATH", false),
            ("LC_ALL", false),
        ] {
            assert_eq!(is_removed(OsStr::new(name)), removed, "{name}");
        }
    }
}
