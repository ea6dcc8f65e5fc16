//! The result of looking whether something is ready to be used.

/// The commands to type in a repository without a commit.
pub const FIRST_COMMIT: &str = "git add -A && git commit -m \"first commit\"";

/// Ordered from best to worst: the worst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    Good,
    /// Neither good nor bad: nothing has to be done.
    Neutral,
    Warning,
    Bad,
}

/// The result of one check.
#[derive(Debug, Clone)]
pub struct Finding {
    pub what: &'static str,
    pub health: Health,
    pub message: String,
    pub hints: Vec<String>,
}

impl Finding {
    pub fn good(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, health: Health::Good, message: message.into(), hints: Vec::new() }
    }

    pub fn neutral(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, health: Health::Neutral, message: message.into(), hints: Vec::new() }
    }

    pub fn warning(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, health: Health::Warning, message: message.into(), hints: Vec::new() }
    }

    /// The message, followed by its hints.
    pub fn in_a_line(&self) -> String {
        std::iter::once(&self.message).chain(&self.hints).map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    pub fn bad<const N: usize>(what: &'static str, message: impl Into<String>, hints: [&str; N]) -> Self {
        let hints = hints.into_iter().map(str::to_owned).collect();
        Self { what, health: Health::Bad, message: message.into(), hints }
    }
}
