//! What a commit message says about its evidence.

/// Verdone's trailers in a commit message. Untrusted: anyone can write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    pub story: Option<String>,
    pub run: Option<String>,
    /// The session whose loop made the commit, if it was not made by a run.
    pub session: Option<String>,
    pub proof: Option<String>,
    /// The digests it names. An honest commit names one.
    pub evidence: Vec<String>,
}

impl Trailers {
    /// Parses trailers as git lists them, one per line.
    pub fn read(lines: &str) -> Self {
        let mut trailers = Self::default();
        for (key, value) in lines.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim().to_owned();
            match key.trim().to_ascii_lowercase().as_str() {
                "verdone-story" => trailers.story = Some(value),
                "verdone-run" => trailers.run = Some(value),
                "verdone-session" => trailers.session = Some(value),
                "verdone-proof" | "verdone-verdict" => trailers.proof = Some(value),
                "verdone-evidence" => trailers.evidence.push(value),
                _ => {}
            }
        }
        trailers
    }

    /// Whether the commit claims to belong to a story.
    pub fn is_story(&self) -> bool {
        self.story.is_some() || !self.evidence.is_empty()
    }

    /// Whether the commit claims to come from a run but not from a story.
    pub fn is_bookkeeping(&self) -> bool {
        self.run.is_some() && !self.is_story()
    }
}
