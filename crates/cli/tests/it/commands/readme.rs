//! The documents show what the program really prints, and name only commands that exist.

use std::fs;

use verdone_testkit::golden::split_block;
use verdone_testkit::{Sandbox, assert_block, normalise};

use crate::commands::stage::{BINARY, repository, repository_root, verdone};

/// The README shows the output of a real run. Ids and times differ from run to run, so they are not compared.
#[test]
fn the_readme_shows_the_real_demo() {
    let sandbox = Sandbox::new();
    let output = verdone(&sandbox, &["demo"]);
    output.assert_code(0);
    let shown = excerpt(&output.stdout);
    let lines = shown.lines().count();
    assert!((25..=46).contains(&lines), "{lines} lines");
    // Without a terminal, the heading has all facts of the run on one line.
    let wide = |line: &&str| line.chars().count() > 80 && !line.starts_with("· Run");
    assert_eq!(output.stdout.lines().find(wide), None, "a line is wider than eighty columns");

    let path = repository_root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let fresh = format!("```console\n$ cargo run --release -- demo\n{shown}```");
    let (_, kept, _) = split_block(&readme, "demo").unwrap();
    if normalise(kept.trim()) != normalise(&fresh) {
        assert_block(path, "demo", &fresh);
    }
}

#[test]
fn the_demo_needs_git_and_nothing_else() {
    let sandbox = Sandbox::only_git();
    verdone(&sandbox, &["demo", "--keep", "demo"]).assert_code(0);
    let again = verdone(&sandbox, &["demo", "--keep", "demo"]);
    again.assert_code(2);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
    let report = verdone(&sandbox, &["-C", "demo", "report"]);
    assert!(report.stdout.contains("3 verified, 1 failed"), "{}", report.stdout);
}

/// The lie of the third story and the end of the fourth, then the summary; dots mark what is left out.
fn excerpt(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {output}"));
    let failed = at("● Story 4 of 4");
    let again = failed + lines[failed..].iter().position(|line| line.contains("Turn 2")).unwrap();
    let (given_up, end) = (at("Gave up"), at("Caught"));
    let parts = [&lines[at("● Story 3 of 4")..again], &lines[given_up..=given_up + 1], &lines[at("  Story   Title")..=end + 1]];
    let [lie, kept, summary] = parts.map(|part| part.join("\n") + "\n");
    format!("...\n{lie}  ...\n{kept}...\n\n{summary}")
}

#[test]
fn every_command_that_a_document_names_exists() {
    let root = repository_root();
    let help = verdone(&Sandbox::new(), &["help"]).stdout;
    // Each row names a command, except for the one that lists those without explanation.
    let rows = help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|row| !row.starts_with(' '));
    let commands: Vec<&str> = rows
        .flat_map(|row| {
            if row.contains(", prune,") { row.split(", ").collect() } else { vec![row.split(' ').next().unwrap_or_default()] }
        })
        .collect();
    assert!(commands.contains(&"workspace"), "{commands:?}");
    let mut pages: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    for folder in ["docs", "crates/cli/tests/transcripts", "crates/report/tests/expected"] {
        pages.extend(fs::read_dir(root.join(folder)).unwrap().flatten().map(|entry| entry.path()));
    }
    let mut seen = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        // Only text in code or at the start of a command line is a command.
        for (at, _) in text.match_indices("verdone ") {
            let quoted = text[..at].ends_with(['`', '$']) || text[..at].ends_with("$ ") || text[..at].ends_with("hint: ");
            let word: String = text[at + 8..].chars().take_while(char::is_ascii_lowercase).collect();
            if !quoted || word.is_empty() {
                continue;
            }
            seen += 1;
            let tells_what_went = page.ends_with("removed.txt") || page.ends_with("CHANGELOG.md");
            let known = commands.contains(&word.as_str()) || (tells_what_went && word == "checkpoints");
            assert!(known, "{} names `verdone {word}`, which does not exist", page.display());
        }
    }
    assert!(seen > 50, "{seen}");
}

/// The pages that teach. References are generated.
const PAGES: [&str; 10] = [
    "quick-start",
    "plans",
    "checks-and-proofs",
    "runs",
    "workspaces-and-safety",
    "sessions",
    "agent-tools",
    "plugin",
    "notifications",
    "troubleshooting",
];

fn page(name: &str) -> String {
    fs::read_to_string(repository_root().join(format!("docs/{name}.md"))).unwrap()
}

struct Block {
    language: String,
    /// The second word after the fence.
    name: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let parts: Vec<&str> = page.split("\n```").collect();
    assert_eq!(parts.len() % 2, 1, "a fence is not closed");
    let block = |part: &&str| {
        let (info, text) = part.split_once('\n').unwrap();
        let (language, name) = info.split_once(' ').unwrap_or((info, ""));
        Block { language: language.to_owned(), name: name.to_owned(), text: format!("{text}\n") }
    };
    parts.iter().skip(1).step_by(2).map(block).collect()
}

#[test]
fn pages_are_short_and_begin_with_a_table_of_contents_whose_links_work() {
    for name in PAGES {
        let text = page(name);
        assert!(text.lines().count() <= 250, "{name} is too long");
        let heading = |line: &str| {
            let plain = line
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(['`', ',', '.', ':', '?', '\'', '"', '(', ')', '/'], "");
            plain.replace(' ', "-")
        };
        let anchors: Vec<String> = text.lines().filter(|line| line.starts_with('#')).map(heading).collect();
        let links: Vec<&str> = text.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.len() >= 3, "{name} has no table of contents");
        for link in links {
            assert!(anchors.iter().any(|anchor| anchor == link), "{name}: no heading for #{link} in {anchors:?}");
        }
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let outside = target.is_empty() || target.starts_with("http");
            assert!(outside || repository_root().join("docs").join(target).exists(), "{name}: a link to {target}");
        }
    }
}

/// Each command in a shell block is one that Verdone understands: `--help` added to it is accepted.
#[test]
fn every_command_in_the_pages_is_understood() {
    let sandbox = repository();
    let mut tried = 0;
    for name in PAGES {
        for block in blocks(&page(name)).iter().filter(|block| block.language == "sh") {
            let lines = block.text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
            for line in lines.filter(|line| line.starts_with("verdone ")) {
                let command = format!("{} --help", line.split(['|', '>', ';', '&']).next().unwrap_or_default());
                let output = sandbox.run("sh", ["-c", &command.replacen("verdone", BINARY, 1)]);
                assert_eq!(output.code, 0, "{name}: {line}\n{}", output.transcript());
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "only {tried} commands");
}

#[test]
fn every_example_of_the_pages_is_good() {
    let formats = [
        ("PLAN.md", "plan_md"),
        ("prd.md", "prd_md"),
        ("IMPLEMENTATION_PLAN.md", "implementation_plan"),
        ("TODO.md", "checklist"),
        ("prd.json", "prd_json"),
        ("feature_list.json", "feature_list"),
    ];
    let sandbox = repository();
    let mut plans: Vec<String> = Vec::new();
    let examples = PAGES.iter().flat_map(|name| blocks(&page(name)));
    for Block { language, name, text } in examples.filter(|block| !block.name.is_empty()) {
        if language == "toml" {
            sandbox.write(".verdone/config.toml", text);
            verdone(&sandbox, &["config", "show"]).assert_code(0);
            continue;
        }
        sandbox.write(&name, &text);
        let shown = verdone(&sandbox, &["plan", "show", "--json", &name]);
        shown.assert_code(0);
        let format = serde_json::from_str::<serde_json::Value>(&shown.stdout).unwrap()["plan"]["format"].clone();
        assert!(formats.iter().any(|(file, wanted)| *file == name && format == *wanted), "{name} is read as {format}");
        let stories: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let checked = stories["plan"]["stories"][0]["checks"].as_array().unwrap().len();
        assert_eq!(checked > 0, text.contains("Verification"), "{name}: {}", shown.stdout);
        plans.push(name);
    }
    assert!(formats.iter().all(|(name, _)| plans.iter().any(|plan| plan == name)), "{plans:?}");
}

/// The README's one-line command for any repository, run exactly as written.
#[test]
fn the_readmes_line_for_any_repository_works() {
    let readme = fs::read_to_string(repository_root().join("README.md")).unwrap();
    let line = readme.lines().map(str::trim).find(|line| line.starts_with("verdone run PLAN.md --agent-command")).unwrap();
    let sandbox = repository();
    sandbox.write("PLAN.md", "- [ ] US-001: Say hello\n");
    sandbox.write_script("agent.sh", "#!/bin/sh\necho hello > hello.txt\n");
    sandbox.add_script("make", "#!/bin/sh\ntest \"$1\" = test\n");
    sandbox.git(["add", "--all"]);
    sandbox.git(["commit", "--quiet", "--message", "a plan and an agent"]);
    std::os::unix::fs::symlink(BINARY, sandbox.root().join("bin/verdone")).unwrap();
    sandbox.run("sh", ["-c", line]).assert_code(0);
    verdone(&sandbox, &["land"]).assert_code(0);
    assert_eq!(sandbox.read("PLAN.md"), "- [x] US-001: Say hello\n");
}
