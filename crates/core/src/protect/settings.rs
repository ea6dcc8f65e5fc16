//! `[protect]`: which files judge the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which files judge the work. Tests, test data, and the configuration of tests, linters, builds and CI are protected by default;
/// `verdone protect` lists them. Patterns are relative to the project: `*` matches within a folder, `**` across folders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectSettings {
    /// Further protected files, for example `["checks/**", "scripts/verify.sh"]`.
    pub files: Vec<String>,
    /// Files that would be protected by default but are not.
    pub work: Vec<String>,
    /// Protected files that every story may change, such as snapshots or golden files: as if each story named them in `Scope:`.
    pub release: Vec<String>,
    /// Further files that run outside of the workspace later. A story that changes one without naming it in `Scope:` needs a review.
    pub autorun: Vec<String>,
}

impl ProtectSettings {
    pub(crate) fn lists(&self) -> [(&'static str, &[String]); 4] {
        [("files", &self.files), ("work", &self.work), ("release", &self.release), ("autorun", &self.autorun)]
    }
}
