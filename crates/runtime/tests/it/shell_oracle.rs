//! Compares our shell parser with real bash: we must have seen every git command that bash runs.

#[path = "../../../core/tests/it/policy/table.rs"]
mod table;

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use table::{COMPUTED, DATA, DENIED, EVERYDAY};
use verdone_shell::{Variables, parse};
use verdone_testkit::{PATIENCE, Sandbox};

/// Separates the arguments of one recorded call.
const UNIT: char = '\u{1f}';
/// Ends one call.
const RECORD: char = '\u{1e}';

/// Harmless programs that the snippets use. Other programs are not found; git only records its arguments.
const TOOLS: &[&str] = &[
    "bash", "sh", "env", "cat", "tee", "xargs", "find", "timeout", "nice", "ionice", "stdbuf", "setsid", "nohup", "sed", "head",
    "sleep", "which", "true", "printf", "echo", "diff", "grep", "awk",
];

/// Endless loops, programs by full path, and programs that change the user or the folder.
const NOT_RUN: &[&str] = &["while", "until", "for ((", "select", "yes ", "coproc", "/git", "env -i", "env - ", "bin/env", "/tmp"];

struct Bash {
    sandbox: Sandbox,
    count: usize,
}

impl Bash {
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        // In a separate directory: the sandbox's git is a link to the real one.
        let tools = sandbox.root().join("only");
        std::fs::create_dir(&tools).expect("the sandbox is writable");
        for tool in TOOLS {
            let found = ["/bin", "/usr/bin"].iter().map(|folder| Path::new(folder).join(tool)).find(|path| path.exists());
            symlink(found.unwrap_or_else(|| panic!("`{tool}` is missing")), tools.join(tool)).expect("links can be made");
        }
        let git = "#!/bin/sh\nfor word; do printf '%s\\037' \"$word\"; done >> \"$VERDONE_RECORD\"\nprintf '\\036' >> \"$VERDONE_RECORD\"\n";
        std::fs::write(tools.join("git"), git).expect("the sandbox is writable");
        std::fs::set_permissions(tools.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
        sandbox.set("PATH", &tools);
        Self { sandbox, count: 0 }
    }

    /// The arguments of every git command that bash starts.
    fn run(&mut self, snippet: &str) -> BTreeSet<String> {
        self.count += 1;
        let record: PathBuf = self.sandbox.root().join(format!("record-{}", self.count));
        self.sandbox.set("VERDONE_RECORD", &record);
        self.sandbox.spawn("/bin/bash", ["-c", snippet]).wait(PATIENCE);
        let text = std::fs::read_to_string(&record).unwrap_or_default();
        text.split_terminator(RECORD).map(|call| call.trim_end_matches(UNIT).to_owned()).collect()
    }
}

/// The arguments of every git command that we see; `None` stands for a command with computed words.
fn seen(snippet: &str) -> Vec<Option<String>> {
    let script = parse(snippet, &Variables::new());
    let git = script.commands.iter().filter(|simple| simple.words.first().is_some_and(|word| word.base().could_be("git")));
    git.map(|simple| {
        let words: Option<Vec<&str>> = simple.words[1..].iter().map(|word| word.literal()).collect();
        words.map(|words| words.join(&UNIT.to_string()).trim_end_matches(UNIT).to_owned())
    })
    .collect()
}

fn is_run(snippet: &str) -> bool {
    !NOT_RUN.iter().any(|part| snippet.contains(part))
}

fn pushes(arguments: &str) -> bool {
    let mut words = arguments.split(UNIT);
    words.next() == Some("push") && !matches!(words.next(), Some("--help" | "-h"))
}

#[test]
fn whatever_bash_runs_as_git_was_seen_in_the_command() {
    let mut bash = Bash::new();
    let mut ran = 0;
    let pushing = DENIED.iter().filter(|(rule, _)| *rule == "git-push").map(|(_, snippet)| *snippet);
    let computed = COMPUTED.iter().map(|(_, snippet)| *snippet);
    for snippet in pushing.chain(computed).filter(|snippet| is_run(snippet)) {
        let seen = seen(snippet);
        for arguments in bash.run(snippet) {
            ran += usize::from(pushes(&arguments));
            assert!(
                seen.contains(&Some(arguments.clone())) || seen.contains(&None),
                "bash ran git {arguments:?} in {snippet:?}; we saw {seen:?}"
            );
        }
    }
    assert!(ran >= 80, "only {ran} of the commands pushed: the judge is asleep");
}

#[test]
fn what_bash_takes_for_data_is_data_to_us() {
    let mut bash = Bash::new();
    let git = EVERYDAY.iter().filter(|snippet| snippet.starts_with("git "));
    for snippet in DATA.iter().chain(git).filter(|snippet| is_run(snippet)) {
        let ran = bash.run(snippet);
        assert!(!ran.iter().any(|arguments| pushes(arguments)), "{snippet:?} is no data: {ran:?}");
        let seen = seen(snippet);
        assert!(!seen.iter().flatten().any(|arguments| pushes(arguments)), "{snippet:?}: {seen:?}");
        for arguments in &ran {
            assert!(
                seen.contains(&Some(arguments.clone())) || seen.contains(&None),
                "bash ran git {arguments:?} in {snippet:?}; we saw {seen:?}"
            );
        }
    }
}
