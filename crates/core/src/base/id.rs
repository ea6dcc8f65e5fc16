//! Names that come from outside (plans, hook input) and names that we make, kept apart from plain strings.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The id of a story as its plan spells it. Hostile: encode it before it becomes a path or a ref.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StoryId(pub String);

/// The id of a run: `20261115-020338-5f3a`, made by us, sortable by start time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RunId(pub String);

/// A git object id in hexadecimal, SHA-1 or SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Oid(pub String);

impl StoryId {
    /// The story that a person means by this id: the one with exactly this id, else the only one that differs in case alone.
    pub fn meant_among<'a>(&self, known: impl IntoIterator<Item = &'a Self>) -> Option<&'a Self> {
        let mut alike: Vec<&Self> = Vec::new();
        for id in known {
            if id == self {
                return Some(id);
            }
            if id.0.eq_ignore_ascii_case(&self.0) && !alike.contains(&id) {
                alike.push(id);
            }
        }
        if let [only] = alike[..] { Some(only) } else { None }
    }
}

impl Oid {
    /// The abbreviation shown to people.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

macro_rules! string_id {
    ($($name:ident),*) => {$(
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
string_id!(StoryId, RunId, Oid);

/// A name that is safe as one path component and as one component of a ref, and differs for different input.
///
/// Letters, digits, `-` and `_` stay; everything else becomes `%XX`. Long names are cut and get a digest of the whole.
pub fn encode_component(name: &str) -> String {
    const LONGEST: usize = 80;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex(&[byte]).to_ascii_uppercase());
        }
        if out.len() > LONGEST {
            break;
        }
    }
    if out.is_empty() {
        return "%".to_owned();
    }
    if out.len() > LONGEST {
        out.truncate(LONGEST - 20);
        out.push_str("%-");
        out.push_str(&digest(name.as_bytes())[..16]);
    }
    out
}

/// A folder's name for a branch: readable, harmless to tools that take `%`, spaces or capitals badly, different for different input
/// also where the file system does not tell capitals apart.
pub fn folder_name(name: &str) -> String {
    const LONGEST: usize = 48;
    const DIGITS: usize = 10;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    // A plain name that looks like one of ours gets its own digest, so that it cannot be taken for it.
    let looks_made =
        name.rsplit_once('-').is_some_and(|(_, end)| end.len() == DIGITS && end.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('-') && !looks_made {
        return name.to_owned();
    }
    let mut out = String::new();
    for byte in name.bytes().map(|byte| byte.to_ascii_lowercase()) {
        if is_plain(byte) && byte != b'-' {
            out.push(char::from(byte));
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() == LONGEST {
            break;
        }
    }
    let gap = if out.is_empty() || out.ends_with('-') { "" } else { "-" };
    format!("{out}{gap}{}", &digest(name.as_bytes())[..DIGITS])
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(bytes))
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        use fmt::Write as _;
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_whatever_its_case_if_only_one_story_can_be_meant() {
        let known = ["US-001", "us-002", "US-002", "Us-003", "Us-003"].map(StoryId::from);
        for (asked, expected) in [
            ("US-001", Some("US-001")),
            ("us-001", Some("US-001")),
            ("US-002", Some("US-002")),
            ("Us-002", None),
            ("us-003", Some("Us-003")),
            ("us-01", None),
        ] {
            assert_eq!(StoryId::from(asked).meant_among(&known).map(StoryId::as_str), expected, "{asked}");
        }
    }

    #[test]
    fn hostile_names_become_one_harmless_component() {
        for name in ["../x", "", "a/b", "\0", "..", ".", "-rf", "a b", "é", "x.lock", "@{", &"long".repeat(2560)] {
            let encoded = encode_component(name);
            assert!(!encoded.is_empty() && encoded.len() <= 100, "{name:?} -> {encoded:?}");
            assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_%".contains(&b)), "{encoded:?}");
        }
    }

    #[test]
    fn different_names_stay_different() {
        let long = "x".repeat(10_000);
        let names = ["US-001", "us/001", "us%2F001", "", "%", &long, &format!("{long}y")];
        let encoded: std::collections::BTreeSet<_> = names.iter().map(|n| encode_component(n)).collect();
        assert_eq!(encoded.len(), names.len());
    }

    #[test]
    fn a_branch_becomes_one_readable_folder() {
        assert_eq!(folder_name("fix-login_2"), "fix-login_2");
        assert!(folder_name("verdone/PLAN").starts_with("verdone-plan-"));
        let long = "x".repeat(300);
        let names = [
            "a",
            "A",
            "a/b",
            "a-b",
            "a.b",
            "a b",
            "..",
            "../a",
            "-a",
            "",
            "/",
            "\0",
            "é",
            "è",
            "a%2Fb",
            &long,
            &long[1..],
            "AUX",
            "main-0123456789",
            &folder_name("a/b"),
            &folder_name("../a"),
        ];
        let folders: std::collections::BTreeSet<_> = names.iter().map(|name| folder_name(name)).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        for folder in folders {
            assert!(!folder.starts_with('-') && (1..=60).contains(&folder.len()), "{folder}");
            assert!(folder.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_'), "{folder}");
        }
    }
}
