//! `[run]`: what happens to a run's commits, and to the machine meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to the work of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunSettings {
    /// When the run's commits are merged into your branch. They are on the run's own branch in any case.
    pub land: LandMode,
    /// What happens to a story that needs a review. The default is `stack` if no story of the plan depends on another, otherwise
    /// `continue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_review: Option<OnReview>,
    /// Keep the machine awake while a run is active, with `systemd-inhibit` or, on macOS, `caffeinate`. Without either, this has no effect;
    /// `verdone doctor` says so.
    pub inhibit_sleep: bool,
    /// Let the agent add stories with its tool `add_story`, if the plan is not committed and the project has gates. Otherwise they wait in
    /// `.verdone/proposed-stories.md` until you move them to the plan. An added story cannot contain commands.
    pub add_stories: bool,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self { land: LandMode::default(), on_review: None, inhibit_sleep: true, add_stories: false }
    }
}

/// What happens to a story that needs a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnReview {
    /// Its work is kept aside, and the run continues with stories that do not depend on it.
    Continue,
    /// The run ends.
    Stop,
    /// Later stories build on it. None of them lands before you accept it.
    Stack,
}

/// When the run's commits are merged into the user's branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LandMode {
    /// Verdone asks once, at the end of the run. Without a terminal, it prints the command to type.
    #[default]
    Ask,
    /// After each story, without asking.
    Auto,
    /// Never, until you type `verdone land`.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_of_one_file;

    #[test]
    fn landing_asks_unless_told_otherwise() {
        for (text, mode) in [
            ("", LandMode::Ask),
            ("[run]\nland = \"ask\"\n", LandMode::Ask),
            ("[run]\nland = \"auto\"\n", LandMode::Auto),
            ("[run]\nland = \"off\"\n", LandMode::Off),
        ] {
            assert_eq!(config_of_one_file("c.toml", text).unwrap().run.land, mode, "{text}");
        }
        let problem = config_of_one_file("c.toml", "[run]\nland = \"of\"\n").unwrap_err();
        assert!(problem.to_string().starts_with("c.toml:2:8: `run.land` cannot be \"of\""), "{problem}");
        let problem = config_of_one_file("c.toml", "[run]\nlant = \"off\"\n").unwrap_err();
        assert_eq!(problem.hint.as_deref(), Some("did you mean `land`?"));
    }

    #[test]
    fn what_becomes_of_a_review_is_left_open_unless_it_is_said() {
        for (text, expected) in [
            ("", None),
            ("[run]\non_review = \"continue\"\n", Some(OnReview::Continue)),
            ("[run]\non_review = \"stop\"\n", Some(OnReview::Stop)),
            ("[run]\non_review = \"stack\"\n", Some(OnReview::Stack)),
        ] {
            assert_eq!(config_of_one_file("c.toml", text).unwrap().run.on_review, expected, "{text}");
        }
        let problem = config_of_one_file("c.toml", "[run]\non_review = \"stak\"\n").unwrap_err();
        assert!(problem.to_string().starts_with("c.toml:2:13: `run.on_review` cannot be \"stak\""), "{problem}");
    }
}
