//! Checks, without contacting a service, whether a client that is driven over a pipe can be started.

use std::path::Path;
use std::time::Duration;

use verdone_core::agent::codex::{CodexAgent, TESTED};
use verdone_core::base::sanitise::sanitise_line;

use crate::base::finding::Finding;
use crate::process::{Exit, SpawnError, probe};

/// Allows for a cold start of a large program on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const NAME: &str = "agent";

pub(crate) fn check_codex(config: &CodexAgent, root: &Path) -> Finding {
    let install = format!("npm install -g @openai/codex@{TESTED}, or set agent.codex.command to its path");
    let bad = |message: String| Finding::bad(NAME, message, [install.as_str()]);
    match probe(vec![config.command.clone().into(), "--version".into()], root, PATIENCE) {
        Ok(ended) if ended.exit == Exit::Code(0) => match version_in(&ended.output.text) {
            Some(version) => Finding::good(NAME, format!("Codex {version}")),
            None => bad(format!("{} --version printed no version", config.command)),
        },
        Ok(ended) => {
            let said = sanitise_line(ended.output.tail(200).lines().next_back().unwrap_or_default());
            bad(format!("{} --version failed: {said}", config.command))
        }
        Err(SpawnError::NotFound { program }) => bad(format!("{program}: no such program")),
        Err(error) => bad(error.to_string()),
    }
}

/// The version in `codex-cli 0.166.0`.
fn version_in(text: &str) -> Option<&str> {
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    text.split_whitespace().find(is_version).filter(|word| word.len() < 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_the_clients_words() {
        assert_eq!(version_in("codex-cli 0.166.0\n"), Some("0.166.0"));
        assert_eq!(version_in("no version here. None"), None);
    }
}
