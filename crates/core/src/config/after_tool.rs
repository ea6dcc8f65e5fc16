//! Validates `[[after_tool]]` of a config file: a command that could never run, or not as intended, is an error.

use verdone_text::pattern;

use super::diagnose::{Finding, Step, unreadable};
use crate::base::span::Span;
use crate::check::CommandSpec;
use crate::hook::{AfterTool, FILE_WORD, MOST_TIME};
use crate::policy::{ToolKind, kind_of};

/// The first fault in commands of the right types.
pub(super) fn unusable(all: &[AfterTool]) -> Option<Finding> {
    all.iter().enumerate().find_map(|(n, after)| {
        let key = |text: &str| Step::Key(text.to_owned());
        let place = |field: &str| vec![key("after_tool"), Step::Index(n), key(field)];
        if let Some((field, message, hint)) = fault(after) {
            return Some(Finding { path: place(field), on_key: false, message, hint });
        }
        unreadable(&after.tools, pattern::check_name)
            .map(|finding| finding.below(place("tools")))
            .or_else(|| unreadable(&after.paths, pattern::check).map(|finding| finding.below(place("paths"))))
    })
}

fn fault(after: &AfterTool) -> Option<(&'static str, String, Option<String>)> {
    let is_shell = |tool: &String| kind_of(tool) == ToolKind::Shell;
    match &after.run {
        run if run.is_empty() => return Some(("run", "the after_tool command is empty".to_owned(), None)),
        CommandSpec::Shell(text) if text.contains(FILE_WORD) => {
            let hint = "write \"$VERDONE_FILE\" with its quotes, or make the command a list of words".to_owned();
            return Some(("run", format!("`{FILE_WORD}` stands for the file in a list of words, not in a string"), Some(hint)));
        }
        CommandSpec::Argv(words) if words.iter().any(|word| word != FILE_WORD && word.contains(FILE_WORD)) => {
            return Some(("run", format!("`{FILE_WORD}` must be a separate word"), None));
        }
        CommandSpec::Shell(_) | CommandSpec::Argv(_) => {}
    }
    let most = Span::from_millis(MOST_TIME.as_millis() as u64);
    match after.timeout.limit() {
        None => return Some(("timeout", "an after_tool command needs a timeout: the agent waits for it".to_owned(), None)),
        Some(limit) if limit > MOST_TIME => {
            return Some(("timeout", format!("an after_tool command can take at most {most}: the agent waits for it"), None));
        }
        Some(_) => {}
    }
    if !after.paths.is_empty() && !after.tools.is_empty() && after.tools.iter().all(is_shell) {
        let hint = Some("leave `paths` out, or name tools that change one file: \"Edit\", \"Write\"".to_owned());
        return Some(("paths", format!("`{}` does not change a single file, so `paths` never matches", after.tools[0]), hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::config::config_of_one_file;

    #[test]
    fn commands_that_cannot_work_are_faults_of_their_line() {
        for (keys, said) in [
            ("run = \" \"", "c.toml:2:7: the after_tool command is empty"),
            ("run = \"fmt {file}\"", "c.toml:2:7: `{file}` stands for the file in a list of words, not in a string"),
            ("run = [\"fmt\", \"--in={file}\"]", "c.toml:2:7: `{file}` must be a separate word"),
            ("run = \"fmt\"\ntimeout = \"2m\"", "c.toml:3:11: an after_tool command can take at most 50s"),
            ("run = \"fmt\"\ntimeout = \"0s\"", "c.toml:3:11: an after_tool command needs a timeout"),
            ("run = \"fmt\"\ntools = [\"Bash\"]\npaths = [\"*.rs\"]", "c.toml:4:9: `Bash` does not change a single file"),
            ("run = \"fmt\"\npaths = [\"a\", \"[b\"]", "c.toml:3:15: \"[b\" is not a valid pattern: `[` is not closed"),
            ("run = \"fmt\"\ntools = [\"{Edit\"]", "c.toml:3:10: \"{Edit\" is not a valid pattern: `{` is not closed"),
            ("run = \"fmt\"\nfeedback = \"alwais\"", "c.toml:3:12: `after_tool[0].feedback` cannot be \"alwais\""),
            ("tools = [\"Edit\"]", "c.toml:1:1: `after_tool[0]` needs the key `run`"),
            ("run = \"fmt\"\ntool = [\"Edit\"]", "c.toml:3:1: unknown key `tool` in `after_tool[0]`"),
        ] {
            let problem = config_of_one_file("c.toml", &format!("[[after_tool]]\n{keys}\n")).unwrap_err().to_string();
            assert!(problem.starts_with(said), "{problem}\n{keys}");
        }
        let config =
            config_of_one_file("c.toml", "[[after_tool]]\nrun = [\"fmt\", \"{file}\"]\npaths = [\"**/*.rs\"]\n").unwrap();
        assert_eq!(config.after_tool[0].timeout.to_string(), "10s");
    }

    #[test]
    fn failing_tests_are_told_or_end_the_attempt() {
        for (keys, patience) in [
            ("", None),
            ("on_failure = \"rollback\"", Some(1)),
            ("rollback_after = 3", Some(3)),
            ("on_failure = \"rollback\"\nrollback_after = 2", Some(2)),
        ] {
            let config = config_of_one_file("c.toml", &format!("[policy.tests]\n{keys}\n")).unwrap();
            assert_eq!(config.policy.tests.patience(), patience, "{keys}");
        }
        for (keys, said) in [
            ("on_failure = \"rolback\"", "c.toml:2:14: `policy.tests.on_failure` cannot be \"rolback\""),
            ("rollback_afer = 3", "c.toml:2:1: unknown key `rollback_afer` in `policy.tests`"),
            ("rollback_after = -1", "c.toml:2:18: `policy.tests.rollback_after` must be a whole number"),
        ] {
            let problem = config_of_one_file("c.toml", &format!("[policy.tests]\n{keys}\n")).unwrap_err();
            assert!(problem.to_string().starts_with(said), "{problem}");
        }
    }
}
