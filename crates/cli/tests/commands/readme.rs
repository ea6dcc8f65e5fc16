//! What the documents show and name is what the program does and has.

use std::fs;

use verdone_testkit::{Sandbox, assert_block};

use crate::stage::{repository_root, verdone};

/// The README shows the demo's lie and its rollback, then the end; what is cut is marked.
#[test]
fn the_readme_shows_the_real_demo() {
    let sandbox = Sandbox::new();
    let output = verdone(&sandbox, &["demo"]);
    output.assert_code(0);
    assert!(output.duration.as_secs() < 15, "{:?}", output.duration);
    let shown = excerpt(&sandbox.normalise(&output.stdout));
    let lines = shown.lines().count();
    assert!((25..=45).contains(&lines), "{lines} lines");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    assert_block(repository_root().join("README.md"), "demo", &format!("```console\n$ cargo run --release -- demo\n{shown}```"));
}

/// From the third story on, without the repetitions of the fourth; ids and times as a reader expects them.
fn excerpt(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {output}"));
    let failed = at("● Story 4 of 4");
    let again = failed + lines[failed..].iter().position(|line| line.contains("Turn 2")).unwrap();
    let (given_up, end) = (at("given up"), at("Caught"));
    let parts = [&lines[at("● Story 3 of 4")..again], &lines[given_up..=given_up + 1], &lines[at("  Story   Title")..=end + 1]];
    let text = parts.map(|part| part.join("\n") + "\n");
    let text = format!("...\n{}  ...\n{}...\n{}", text[0], text[1], text[2]);
    text.replace("[DURATION]", "0.4s").replace("[SHA]", "1f0c9b27ad")
}

#[test]
fn every_command_that_a_document_names_exists() {
    let root = repository_root();
    let help = verdone(&Sandbox::new(), &["help"]).stdout;
    let commands: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(commands.contains(&"checkpoints"), "{commands:?}");
    let mut pages: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    for folder in ["docs", "crates/cli/tests/transcripts", "crates/report/tests/expected"] {
        pages.extend(fs::read_dir(root.join(folder)).unwrap().flatten().map(|entry| entry.path()));
    }
    let mut seen = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        // In prose only what stands in code is a command; elsewhere what stands at the start of one.
        for (at, _) in text.match_indices("verdone ") {
            let quoted = text[..at].ends_with(['`', '$']) || text[..at].ends_with("$ ") || text[..at].ends_with("hint: ");
            let word: String = text[at + 8..].chars().take_while(char::is_ascii_lowercase).collect();
            if !quoted || word.is_empty() {
                continue;
            }
            seen += 1;
            assert!(commands.contains(&word.as_str()), "{} names `verdone {word}`, which does not exist", page.display());
        }
    }
    assert!(seen > 50, "{seen}");
}
