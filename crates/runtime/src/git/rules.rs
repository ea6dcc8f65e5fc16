//! The user's own files that tell git what to ignore, outside of the repository. They are not ours to put back; what matters is
//! whether they changed during an attempt, because then files may be missing from its commit.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::Git;
use super::error::GitError;
use super::files::Stat;

impl Git {
    /// What tells that one of them was changed.
    pub(super) fn rules_of_the_user(&self) -> Result<Vec<Option<Stat>>, GitError> {
        if self.user_rules.get().is_none() {
            let files = self.files_with_rules()?;
            let _ = self.user_rules.set(files);
        }
        let files = self.user_rules.get().map(Vec::as_slice).unwrap_or_default();
        Ok(files.iter().map(|path| std::fs::metadata(path).ok().as_ref().map(Stat::of)).collect())
    }

    /// Settings and rules at their usual places, and where the settings say the rules are.
    fn files_with_rules(&self) -> Result<Vec<PathBuf>, GitError> {
        let home = self.variable("HOME").map(PathBuf::from);
        let config = self.variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".config")));
        let mut files: Vec<PathBuf> = home.iter().map(|home| home.join(".gitconfig")).collect();
        files.extend(config.iter().flat_map(|config| ["git/config", "git/ignore"].map(|name| config.join(name))));
        // Not set: exit code 1.
        let named = self.plumbing("config").args(["--type=path", "-z", "core.excludesFile"]).answer()?;
        let path = named.stdout.strip_suffix(b"\0").unwrap_or_default();
        files.extend((!path.is_empty()).then(|| self.top.join(OsStr::from_bytes(path))));
        Ok(files)
    }

    /// As git's processes see it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.environment.iter().rfind(|(given, _)| given == name).map(|(_, value)| value.clone());
        given.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
    }
}
