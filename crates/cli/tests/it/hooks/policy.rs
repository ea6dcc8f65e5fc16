//! `verdone policy`, as transcripts.

use std::path::Path;
use std::process::Stdio;

use verdone_testkit::assert_file;

use crate::hooks::world::World;

const CONFIG: &str = r#"[policy]
off = ["git-stash"]

[policy.tools]
WebSearch = "deny"

[[policy.rule]]
name = "no-deploy"
verdict = "deny"
reason = "deploying is done by the pipeline"
alternative = "merge, and the pipeline deploys"
program = ["deploy"]
matches = ["./deploy staging"]
not_matches = ["echo deploy"]
"#;

fn transcript(world: &World, arguments: &[&str]) -> String {
    let output = world.command(arguments).current_dir(&world.work).stdin(Stdio::null()).output().unwrap();
    let quoted = |word: &&str| match (word.contains('\''), word.contains([' ', '{', '$'])) {
        (true, _) => format!("\"{word}\""),
        (false, true) => format!("'{word}'"),
        (false, false) => (*word).to_owned(),
    };
    let words: Vec<String> = arguments.iter().map(quoted).collect();
    let mut text = format!("$ verdone {}\n{}", words.join(" "), String::from_utf8(output.stdout).unwrap());
    if !output.stderr.is_empty() {
        text.push_str(&format!("--- stderr\n{}", String::from_utf8(output.stderr).unwrap()));
    }
    text.push_str(&format!("--- exit {}\n\n", output.status.code().unwrap()));
    text.replace(&world.root.display().to_string(), "/home/dev")
}

fn compare(name: &str, text: &str) {
    assert_file(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name), text);
}

#[test]
fn a_verdict_is_explained() {
    let world = World::new();
    world.write(".verdone/config.toml", CONFIG);
    world.write(".env", "KEY=1\n");
    let mut text = String::new();
    for arguments in [
        &["policy", "check", "cd web && git -C . push origin main"][..],
        &["policy", "check", "git commit -m 'then git push'"],
        &["policy", "check", "env A=1 ./deploy staging"],
        &["policy", "check", "$g push"],
        &["policy", "check", "--tool", "Write", ".env"],
        &["policy", "check", "--tool", "WebSearch", "{}"],
        &["policy", "check", "--tool", "NewTool", "{}"],
        &["policy", "check", "--tool", "NewTool", "{}", "--interactive"],
        &["policy", "check", "--tool", "NewTool", "x"],
        &["policy", "check", "--json", "git stash || git push -f"],
    ] {
        text.push_str(&transcript(&world, arguments));
    }
    world.write("PLAN.md", "- [ ] US-001: One\n  - Scope: src/\n");
    let story = &["policy", "check", "--tool", "Write", "README.md", "--story", "US-001"];
    text.push_str(&transcript(&world, story));
    world.write(".verdone/config.toml", "[policy]\nscope = \"enforced\"\n");
    text.push_str(&transcript(&world, story));
    text.push_str(&transcript(&world, &["policy", "check", "--tool", "Write", "x", "--story", "US-009"]));
    compare("policy-check.txt", &text);
}

#[test]
fn rules_are_listed_and_tested() {
    let world = World::new();
    world.write(".verdone/config.toml", CONFIG);
    let text = [transcript(&world, &["policy", "list"]), transcript(&world, &["policy", "test"])].concat();
    assert!(text.contains("no-deploy") && !text.contains("git-stash "), "{text}");
    let json = transcript(&world, &["policy", "list", "--json"]);
    assert!(json.contains("\"place\": \".verdone/config.toml:7\""), "{json}");
    world.write(".verdone/config.toml", &CONFIG.replace("./deploy staging", "./delpoy staging"));
    let text = text + &transcript(&world, &["policy", "test"]) + &transcript(&world, &["policy", "check", "ls"]);
    compare("policy-list.txt", &text);
}
