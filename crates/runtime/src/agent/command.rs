//! The `command` agent: any executable, with three ways to pass the prompt.

use std::ffi::OsString;
use std::path::Path;

use verdone_core::agent::PromptVia;
use verdone_core::check::CommandSpec;

use crate::process::{self, Stdin, argv_with};

/// The longest argument that Linux accepts (its limit includes the terminating zero).
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

pub(crate) fn start(run: &CommandSpec, via: PromptVia, prompt: &str, prompt_file: &Path) -> (Vec<OsString>, Stdin) {
    match via {
        PromptVia::Stdin => (process::argv(run), Stdin::Bytes(prompt.as_bytes().to_vec())),
        PromptVia::File => (argv_with(run, prompt_file.into()), Stdin::Null),
        PromptVia::Argument => (argv_with(run, argument(prompt, prompt_file)), Stdin::Null),
    }
}

/// If the prompt is too long for an argument, passes a sentence that points to the prompt file.
fn argument(prompt: &str, prompt_file: &Path) -> OsString {
    if prompt.len() < LONGEST_ARGUMENT {
        return prompt.replace('\0', "\u{fffd}").into();
    }
    let mut sentence = OsString::from("Your instructions are in the file ");
    sentence.push(prompt_file);
    sentence.push(" : read the whole file and do what it says.");
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(run: &CommandSpec, via: PromptVia, prompt: &str) -> Vec<String> {
        let (argv, _) = start(run, via, prompt, Path::new("/r/turns/1-prompt.md"));
        argv.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_prompt_goes_where_users_expect_it() {
        let shell = |text: &str| CommandSpec::Shell(text.to_owned());
        let list = CommandSpec::Argv(vec!["agent".to_owned(), "-p".to_owned()]);
        for (run, via, expected) in [
            (shell("agent -p"), PromptVia::Stdin, vec!["/bin/sh", "-c", "agent -p"]),
            (shell("agent -p\n"), PromptVia::Argument, vec!["/bin/sh", "-c", "agent -p \"$@\"", "verdone", "do 'it'"]),
            (
                shell("agent -p \"$1\" | tee x"),
                PromptVia::Argument,
                vec!["/bin/sh", "-c", "agent -p \"$1\" | tee x", "verdone", "do 'it'"],
            ),
            (shell("agent"), PromptVia::File, vec!["/bin/sh", "-c", "agent \"$@\"", "verdone", "/r/turns/1-prompt.md"]),
            (list.clone(), PromptVia::Stdin, vec!["agent", "-p"]),
            (list.clone(), PromptVia::Argument, vec!["agent", "-p", "do 'it'"]),
            (list, PromptVia::File, vec!["agent", "-p", "/r/turns/1-prompt.md"]),
        ] {
            assert_eq!(argv(&run, via, "do 'it'"), expected, "{run:?} {via:?}");
        }
    }

    #[test]
    fn a_prompt_that_fits_into_no_argument_goes_through_the_file() {
        let run = CommandSpec::Argv(vec!["agent".to_owned()]);
        assert_eq!(argv(&run, PromptVia::Argument, &"x".repeat(LONGEST_ARGUMENT - 1))[1].len(), LONGEST_ARGUMENT - 1);
        let sentence = &argv(&run, PromptVia::Argument, &"x".repeat(LONGEST_ARGUMENT))[1];
        assert!(sentence.contains("/r/turns/1-prompt.md") && sentence.len() < 200, "{sentence}");
    }
}
