//! What the version of an installed client means.

use std::fmt;

use super::Profile;

/// A version of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientVersion([u32; 3]);

impl ClientVersion {
    /// The first version in a client's words, such as `GitHub Copilot CLI 1.0.102.`.
    pub fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::parse)
    }

    fn parse(word: &str) -> Option<Self> {
        let plain = word.trim_start_matches('v').trim_end_matches('.');
        let mut numbers = plain.split(['-', '+']).next()?.split('.').map(str::parse);
        let version = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
        numbers.next().is_none().then_some(Self(version))
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// What the user should know about the version that is installed, and what to do about it. `None` if it is the tested one or newer.
pub fn version_advice(profile: &Profile, found: ClientVersion) -> Option<(String, String)> {
    let package = profile.package?;
    let tested = ClientVersion::parse(package.tested)?;
    if found >= tested {
        return None;
    }
    let title = profile.title;
    let message = format!("{title} {found} is older than {tested}, with which Verdone is tested");
    let install = format!("npm install -g {}@{tested}", package.npm);
    let hint = match package.node {
        Some(node) => format!("{install}; with a Node older than {node}, npm installs an old version without a word"),
        None => install,
    };
    Some((message, hint))
}

#[cfg(test)]
mod tests {
    use super::super::{profile_of, profiles};
    use super::*;
    use crate::agent::AgentKind;

    #[test]
    fn versions_are_found_in_what_clients_print() {
        for (text, expected) in [
            ("0.61.0\n", Some("0.61.0")),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.", Some("1.0.102")),
            ("v1.18.33-beta.1", Some("1.18.33")),
            ("no version 1.2", None),
            ("1.2.3.4", None),
        ] {
            assert_eq!(ClientVersion::find(text).map(|version| version.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_old_client_on_an_old_node_gets_a_hint() {
        let qwen = profile_of(AgentKind::Qwen).unwrap();
        let (message, hint) = version_advice(qwen, ClientVersion([0, 15, 10])).unwrap();
        assert!(message.contains("Qwen Code 0.15.10 is older than 0.24.4"), "{message}");
        assert!(hint.contains("npm install -g @qwen-code/qwen-code@0.24.4") && hint.contains("Node older than 22"), "{hint}");
        assert_eq!(version_advice(qwen, ClientVersion([0, 24, 4])), None);
        assert_eq!(version_advice(qwen, ClientVersion([1, 0, 0])), None);
    }

    #[test]
    fn every_tested_version_is_a_version() {
        for package in profiles().filter_map(|profile| profile.package) {
            assert!(ClientVersion::parse(package.tested).is_some(), "{package:?}");
        }
    }
}
