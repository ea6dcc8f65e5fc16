//! Message and session ids, in the only form that the client accepts. The caller provides the randomness.

use std::fmt::{self, Write as _};

/// A UUID in its text form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(String);

impl Uuid {
    /// A version 4 UUID from these random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (n, byte) in bytes.iter().enumerate() {
            if matches!(n, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Parses another program's UUID; `None` for anything else, so that no journal text can become an option of the client.
    pub fn parse(text: &str) -> Option<Self> {
        let shaped = text.len() == 36
            && text.bytes().enumerate().all(|(n, byte)| match n {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        shaped.then(|| Self(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_become_an_id_that_is_read_back() {
        for byte in [0, 0x7f, 0xff] {
            let id = Uuid::from_random([byte; 16]);
            assert_eq!(Uuid::parse(id.as_str()), Some(id.clone()));
            assert_eq!((&id.as_str()[14..15], id.as_str().len()), ("4", 36));
        }
        assert_eq!(Uuid::from_random([0; 16]).to_string(), "00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn nothing_else_is_an_id() {
        let long = "a".repeat(36);
        for text in
            ["", "--resume", "../../x", &long, "00000000-0000-4000-8000-00000000000g", "00000000-0000-4000-8000-0000000000é"]
        {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
    }
}
