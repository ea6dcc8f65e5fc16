//! Which patterns of `[protect]` cannot work.

use verdone_text::pattern;

use super::ProtectSettings;
use super::diagnose::{Finding, Step};

/// The first pattern that is invalid or cannot match anything in the project.
pub(super) fn unusable(settings: &ProtectSettings) -> Option<Finding> {
    for (name, patterns) in settings.lists() {
        for (n, pattern) in patterns.iter().enumerate() {
            let fault = match pattern::check(pattern) {
                Err(error) => Some((error.to_string(), Some(error.hint.to_owned()))),
                Ok(()) if leaves_project(pattern) => Some((
                    format!("{pattern:?} matches nothing inside the project"),
                    Some("write it relative to the project".to_owned()),
                )),
                Ok(()) => None,
            };
            if let Some((message, hint)) = fault {
                let path = vec![Step::Key("protect".to_owned()), Step::Key(name.to_owned()), Step::Index(n)];
                return Some(Finding { path, on_key: false, message, hint });
            }
        }
    }
    None
}

fn leaves_project(pattern: &str) -> bool {
    let pattern = pattern.trim();
    pattern.is_empty() || pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_of_one_file;

    #[test]
    fn every_list_is_read() {
        let text = "[protect]\nfiles = [\"checks/**\"]\nwork = [\"a\"]\nrelease = [\"**/*.snap\"]\nautorun = [\"tasks/**\"]\n";
        let found = config_of_one_file("c.toml", text).unwrap().protect;
        assert_eq!(found.lists().map(|(_, patterns)| patterns.concat()), ["checks/**", "a", "**/*.snap", "tasks/**"]);
        assert_eq!(config_of_one_file("c.toml", "").unwrap().protect, ProtectSettings::default());
    }

    #[test]
    fn patterns_that_cannot_match_are_errors() {
        for (line, message, hint) in [
            ("files = [\"a\", \"[\"]", "c.toml:2:15: \"[\" is not a valid pattern", "close it"),
            ("work = [\"../x\"]", "c.toml:2:9: \"../x\" matches nothing inside the project", "relative to the project"),
            ("release = [\"/x\"]", "c.toml:2:12: \"/x\" matches nothing", ""),
            ("autorun = [\"\"]", "c.toml:2:12: \"\" matches nothing", ""),
            ("fils = []", "c.toml:2:1: unknown key `fils` in `protect`", "did you mean `files`?"),
        ] {
            let problem = config_of_one_file("c.toml", &format!("[protect]\n{line}\n")).unwrap_err();
            assert!(problem.to_string().starts_with(message), "{problem}");
            assert!(problem.hint.as_deref().unwrap_or_default().contains(hint), "{:?}", problem.hint);
        }
    }
}
