//! In a manifest some keys are work and others are protected. Manifests are parsed, split by key, and combined again with one part
//! from the base and the other from the attempt.

mod cargo_toml;
mod composer_json;
mod json;
mod package_json;
mod pyproject;
mod split;
mod toml;

use std::fmt;

use serde::{Deserialize, Serialize};

use split::{Document, Merger, Side};

pub(super) use package_json::runs_on_install;

/// A kind of manifest, recognised by its file name in any folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manifest {
    PackageJson,
    CargoToml,
    Pyproject,
    ComposerJson,
}

/// The path of a key: `target.'cfg(unix)'.runner`. An empty path means the whole file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyPath(pub Vec<String>);

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the whole file");
        }
        let plain = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        for (n, key) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "." })?;
            if plain(key) { f.write_str(key)? } else { write!(f, "{key:?}")? }
        }
        Ok(())
    }
}

/// The content of a manifest in the pristine or the proof tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// As in the base, including its absence.
    Base,
    /// As in the attempt, including its absence.
    Attempt,
    Text(String),
}

/// A manifest that cannot be split. All of it counts as protected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("not UTF-8")]
    NotText,
    #[error("the key {0:?} appears twice")]
    DuplicateKey(String),
    #[error("does not parse: {0}")]
    Syntax(String),
}

impl Manifest {
    /// The kind of manifest with this file name.
    pub fn of_path(path: &str) -> Option<Self> {
        match path.rsplit('/').next()? {
            "package.json" => Some(Self::PackageJson),
            "Cargo.toml" => Some(Self::CargoToml),
            "pyproject.toml" => Some(Self::Pyproject),
            "composer.json" => Some(Self::ComposerJson),
            _ => None,
        }
    }

    /// The base's protected keys with the attempt's work keys. `None` means that the file does not exist.
    pub fn for_pristine(self, base: Option<&[u8]>, attempt: Option<&[u8]>) -> Result<Merged, ManifestError> {
        if attempt.is_none() {
            // Protected keys alone do not make a manifest that tools can read.
            let unchanged = self.protected_change(base, attempt).is_none();
            return Ok(if unchanged { Merged::Attempt } else { Merged::Base });
        }
        self.merge(base, attempt, Side::Attempt).map(|(merged, _)| merged)
    }

    /// The base's work keys with the attempt's protected keys.
    pub fn for_proof(self, base: Option<&[u8]>, attempt: Option<&[u8]>) -> Result<Merged, ManifestError> {
        self.merge(base, attempt, Side::Base).map(|(merged, _)| merged)
    }

    /// The protected keys that the attempt changed, if any. If the manifest cannot be split, the whole file counts as one such key.
    pub fn protected_change(self, base: Option<&[u8]>, attempt: Option<&[u8]>) -> Option<Vec<KeyPath>> {
        if base == attempt {
            return None;
        }
        match self.merge(base, attempt, Side::Base) {
            Ok((_, changed)) => (!changed.is_empty()).then_some(changed),
            Err(_) => Some(vec![KeyPath(Vec::new())]),
        }
    }

    fn merge(
        self,
        base: Option<&[u8]>,
        attempt: Option<&[u8]>,
        work_from: Side,
    ) -> Result<(Merged, Vec<KeyPath>), ManifestError> {
        match self {
            Self::PackageJson => merge(package_json::part, base, attempt, work_from, json::read, json::write),
            Self::ComposerJson => merge(composer_json::part, base, attempt, work_from, json::read, json::write),
            Self::CargoToml => merge(cargo_toml::part, base, attempt, work_from, toml::read, toml::write),
            Self::Pyproject => merge(pyproject::part, base, attempt, work_from, toml::read, toml::write),
        }
    }
}

fn merge<D: Document>(
    part: fn(&[&str]) -> split::Part,
    base: Option<&[u8]>,
    attempt: Option<&[u8]>,
    work_from: Side,
    read: fn(&str) -> Result<D, ManifestError>,
    write: fn(&D, &str) -> Result<String, ManifestError>,
) -> Result<(Merged, Vec<KeyPath>), ManifestError> {
    let text = |bytes: Option<&[u8]>| match bytes.map(std::str::from_utf8) {
        Some(Ok(text)) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        Some(Err(_)) => Err(ManifestError::NotText),
        None => Ok(String::new()),
    };
    let document = |text: &str, bytes: Option<&[u8]>| if bytes.is_some() { read(text) } else { Ok(D::table(Vec::new())) };
    let (base_text, attempt_text) = (text(base)?, text(attempt)?);
    let (before, after) = (document(&base_text, base)?, document(&attempt_text, attempt)?);
    let (merged, changed) = Merger::merge(part, work_from, &before, &after);
    // Using one side's text as it is keeps its formatting and comments.
    let merged = match work_from {
        Side::Base if merged == before => Merged::Base,
        _ if merged == after => Merged::Attempt,
        _ if merged == before => Merged::Base,
        Side::Attempt => Merged::Text(write(&merged, &attempt_text)?),
        Side::Base => Merged::Text(write(&merged, &base_text)?),
    };
    Ok((merged, changed))
}

#[cfg(test)]
mod tests;
