//! `verdone help`: the manual in the binary.

use verdone_testkit::Sandbox;

use crate::commands::stage::verdone;

const TOPICS: [(&str, &str); 8] = [
    ("quick-start", "Quick start"),
    ("plans", "Plans"),
    ("checks", "Checks and proofs"),
    ("proofs", "Checks and proofs"),
    ("workspaces", "Workspaces and safety"),
    ("sessions", "Sessions"),
    ("plugin", "The plugin for Claude Code"),
    ("troubleshooting", "Troubleshooting"),
];

#[test]
fn each_topic_is_a_readable_page() {
    let sandbox = Sandbox::new();
    for (topic, title) in TOPICS {
        let page = verdone(&sandbox, &["help", topic]);
        page.assert_code(0);
        assert_eq!(page.stdout.lines().next(), Some(title), "{topic}");
        assert!(page.stdout.lines().count() > 40, "{topic} is short");
        for line in page.stdout.lines().filter(|line| !line.starts_with("    ")) {
            assert!(!line.contains("](") && !line.contains("<!--") && !line.starts_with(['#', '|']), "{topic}: {line}");
            let is_one_word = !line.trim().contains(' ');
            assert!(line.chars().count() <= 80 || is_one_word, "{topic}: {line}");
        }
    }
}

#[test]
fn topics_are_listed_and_a_command_shows_its_help() {
    let sandbox = Sandbox::new();
    let main = verdone(&sandbox, &["help"]).stdout;
    assert_eq!(main, verdone(&sandbox, &["--help"]).stdout);
    for (topic, _) in TOPICS {
        assert!(main.contains(&format!("verdone help {topic}")) || main.contains(&format!("\n  {topic} ")), "{topic}: {main}");
    }
    assert_eq!(main.matches("\n  status ").count(), 1, "the commands are listed once: {main}");
    let nested = verdone(&sandbox, &["help", "plan", "new"]);
    assert_eq!(nested.stdout, verdone(&sandbox, &["plan", "new", "--help"]).stdout);
    assert!(verdone(&sandbox, &["help", "runs"]).stdout.contains("verdone runs --help"), "the command of the same name");
}

#[test]
fn an_unknown_topic_is_an_error_that_lists_the_topics() {
    let sandbox = Sandbox::new();
    let output = verdone(&sandbox, &["help", "plam"]);
    output.assert_code(2);
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("hint: verdone help plan"), "{}", output.stderr);
    assert!(output.stderr.contains("the topics are: quick-start, plans, checks, "), "{}", output.stderr);
}
