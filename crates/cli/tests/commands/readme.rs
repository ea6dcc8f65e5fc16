//! What the documents show and name is what the program does and has.

use std::fs;

use verdone_testkit::golden::split_block;
use verdone_testkit::{Sandbox, assert_block, normalise};

use crate::stage::{repository_root, verdone};

/// The README shows what a real run printed. Ids and times differ from run to run, so they are not compared.
#[test]
fn the_readme_shows_the_real_demo() {
    let sandbox = Sandbox::new();
    let output = verdone(&sandbox, &["demo"]);
    output.assert_code(0);
    assert!(output.duration.as_secs() < 15, "{:?}", output.duration);
    let shown = excerpt(&output.stdout);
    let lines = shown.lines().count();
    assert!((25..=45).contains(&lines), "{lines} lines");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");

    let path = repository_root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let fresh = format!("```console\n$ cargo run --release -- demo\n{shown}```");
    let (_, kept, _) = split_block(&readme, "demo").unwrap();
    if normalise(kept.trim()) != normalise(&fresh) {
        assert_block(path, "demo", &fresh);
    }
}

/// The lie of the third story and the end of the fourth, then the summary; dots stand for what is left out.
fn excerpt(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {output}"));
    let failed = at("● Story 4 of 4");
    let again = failed + lines[failed..].iter().position(|line| line.contains("Turn 2")).unwrap();
    let (given_up, end) = (at("given up"), at("Caught"));
    let parts = [&lines[at("● Story 3 of 4")..again], &lines[given_up..=given_up + 1], &lines[at("  Story   Title")..=end + 1]];
    let [lie, rollback, summary] = parts.map(|part| part.join("\n") + "\n");
    format!("...\n{lie}  ...\n{rollback}...\n\n{summary}")
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
