//! Commands on narrow terminals: no line is longer than the terminal, unless a single word is.

use verdone_testkit::{PATIENCE, Sandbox, Tmux, assert_transcript};

use crate::commands::stage::{BINARY, project_with, verdone};

const PLAN: &str = "\
# Plan

- [ ] US-001: Write a greeting
  - Acceptance: it says hello
  - Verification: `grep hello greeting.txt`
- [ ] US-002: Load the settings of the project in every new shell
  - Verification: `grep yes settings.txt`
- [ ] US-003: Square the circle with compasses and a straightedge only
  - Verification: `grep squared circle.txt`
";

/// One story is verified, one needs a review because of a file that runs later, and one fails.
const SCRIPT: &str = r#"
[[turn]]
story = "US-001"
steps = [{ create = "greeting.txt", text = "hello\n" }, { claim = "Done." }]

[[turn]]
story = "US-002"
steps = [
  { create = "settings.txt", text = "yes\n" },
  { create = ".envrc", text = "export SETTINGS=settings.txt\n" },
  { claim = "Done: every new shell reads them." },
]

[[turn]]
story = "US-003"
steps = [{ create = "circle.txt", text = "round\n" }, { claim = "Done: squared." }]
"#;

/// Every command of the groups Look and Decide, those that change something last.
const COMMANDS: [&[&str]; 15] = [
    &["status"],
    &["runs"],
    &["show"],
    &["show", "US-002"],
    &["log"],
    &["report"],
    &["gates"],
    &["protect"],
    &["audit"],
    &["review"],
    &["undo", "--list"],
    &["land", "--dry-run"],
    &["accept", "US-002"],
    &["land"],
    &["undo", "US-001"],
];

/// What a command shows in a terminal of this width, and the lines that the terminal had to wrap.
fn show(sandbox: &Sandbox, width: u16, arguments: &[&str]) -> (String, Vec<String>) {
    let terminal = Tmux::start(sandbox, width, 50, [&[BINARY], arguments].concat());
    terminal.wait_for_exit(PATIENCE);
    let wrapped =
        terminal.capture_unwrapped().lines().filter(|line| is_too_long(line, width.into())).map(str::to_owned).collect();
    (format!("$ verdone {}\n{}\n", arguments.join(" "), terminal.capture_all()), wrapped)
}

/// Whether a line could have been broken between two words.
fn is_too_long(line: &str, width: usize) -> bool {
    let indent = line.len() - line.trim_start().len();
    let longest = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    line.chars().count() > width && indent + longest <= width
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn assert_fits(width: u16) {
    let sandbox = project_with(PLAN, SCRIPT);
    verdone(&sandbox, &["run", "--quiet"]).assert_code(4);
    let (mut whole, mut wrapped) = (String::new(), Vec::new());
    for arguments in COMMANDS {
        let (screen, lines) = show(&sandbox, width, arguments);
        whole.push_str(&screen);
        whole.push('\n');
        wrapped.extend(lines);
    }
    let name = format!("{}/tests/transcripts/narrow-{width}.txt", env!("CARGO_MANIFEST_DIR"));
    let shown = sandbox.normalise(&whole);
    // Where a line breaks depends on how long something took.
    if std::fs::read_to_string(&name).map_or(true, |known| words(&known) != words(&shown)) {
        assert_transcript(name, &shown);
    }
    assert!(wrapped.is_empty(), "longer than {width} columns:\n{}", wrapped.join("\n"));
}

#[test]
fn commands_that_look_and_decide_fit_forty_columns() {
    assert_fits(40);
}

#[test]
fn commands_that_look_and_decide_fit_eighty_columns() {
    assert_fits(80);
}
