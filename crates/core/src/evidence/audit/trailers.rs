//! What a commit's message says about its evidence.

/// The trailers of ours in a message. Hostile: anybody can write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    pub story: Option<String>,
    pub run: Option<String>,
    /// The session whose loop made it, where no run did.
    pub session: Option<String>,
    pub proof: Option<String>,
    /// The digests that it names; an honest commit names one.
    pub evidence: Vec<String>,
}

impl Trailers {
    /// From the trailers as git lists them, one a line.
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

    /// Whether the commit says that it is a story's.
    pub fn is_story(&self) -> bool {
        self.story.is_some() || !self.evidence.is_empty()
    }

    /// Whether it says that a run made it, and not for a story.
    pub fn is_bookkeeping(&self) -> bool {
        self.run.is_some() && !self.is_story()
    }
}
