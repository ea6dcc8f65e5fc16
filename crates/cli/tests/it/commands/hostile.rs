//! Text from plans and agents is displayed but never interpreted.

use verdone_testkit::Sandbox;

use crate::commands::stage::{assert_harmless, compare, verdone};

/// Clears the screen, sets the title, reverses the text direction, forges a line, and is very long.
fn plan() -> String {
    let title = r"\u001b[2J\u001b]0;owned\u0007\u202egnihton\u202c \u009b31mred\r\n\u2713 US-666 verified";
    let long = "long ".repeat(2000);
    format!(
        r#"{{"userStories": [
  {{"id": "US-1\n✓ US-2 verified", "title": "{title}", "passes": false}},
  {{"id": "../../etc/passwd", "title": "{long}", "passes": false}}
]}}
"#
    )
}

fn hostile_project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("prd.json", plan());
    sandbox.write_script("agent.sh", "#!/bin/sh\nprintf '\\033[2J\\033]0;owned\\007I did it\\r\\n\\342\\200\\256backwards\\n'\n");
    sandbox.repo();
    sandbox.git(["switch", "--quiet", "--create", "work"]);
    sandbox
}

#[test]
fn nothing_of_it_steers_the_terminal() {
    let sandbox = hostile_project();
    let mut outputs = Vec::new();
    let run = ["run", "--check", "true", "--agent-command", "./agent.sh"];
    for arguments in [
        &["plan", "show"][..],
        &["plan", "show", "--json"],
        &["plan", "lint"],
        &[&run[..], &["--dry-run"]].concat(),
        &[&run[..], &["--dry-run", "--json"]].concat(),
        &run,
        &["status"],
        &["log"],
        &["log", "--json"],
        &["show", "US-1\n✓ US-2 verified"],
        &["show", "../../etc/passwd", "--json"],
        &["show", "\u{1b}[2J"],
        &["land", "--dry-run"],
        &["land", "\u{1b}[2J"],
        &["report"],
        &["run", "--story", "\u{1b}[2J\u{202e}"],
    ] {
        outputs.push(verdone(&sandbox, arguments));
    }
    for output in &outputs {
        // The prompt is for the agent, and contains the plan's original lines.
        let shown = output.stdout.split("--- first prompt").next().unwrap();
        for text in [shown, &output.stderr] {
            let forged = text.lines().any(|line| line.starts_with("✓ US-2") || line.starts_with("✓ US-666"));
            assert!(!forged, "a title forged a line of its own: {}", output.transcript());
        }
        assert_harmless(output);
    }
    let by_name = |words: &[&str]| {
        let at = outputs.iter().position(|output| words.iter().all(|word| output.command.contains(word)));
        outputs[at.unwrap()].clone()
    };
    let shown = [by_name(&["plan show"]), by_name(&["status"]), by_name(&["land --dry-run"])];
    compare("hostile", &sandbox, &shown);
    assert!(sandbox.git(["for-each-ref", "--format=%(refname)"]).lines().all(|name| !name.contains("..")));
}
