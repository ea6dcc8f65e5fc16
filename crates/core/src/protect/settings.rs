//! What a project says about its protected files.

use serde::{Deserialize, Serialize};

/// Patterns are relative to the project: `*` matches within a folder, `**` across folders. They add to what is protected by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectSettings {
    /// Further protected files, for example `["checks/**", "scripts/verify.sh"]`.
    pub files: Vec<String>,
    /// Files that are not protected although they are by default.
    pub work: Vec<String>,
    /// Protected files that every story may change, such as snapshots or golden files: as if each story named them in `Scope:`.
    pub release: Vec<String>,
    /// Further files that run outside of the workspace later.
    pub autorun: Vec<String>,
}
