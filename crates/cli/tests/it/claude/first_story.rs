//! From a clone to the first done story in two commands and one edit, with the real client and real test runners.

use std::fs;
use std::path::Path;

use verdone_testkit::model_server::{ModelServer, Script, Turn};
use verdone_testkit::{Claude, PATIENCE, Runners, Sandbox, assert_transcript};

use crate::claude::world::verdone;

/// A project as somebody clones it, the plan that its user writes, and the turns of the agent.
struct Project {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    plan: &'static str,
    /// The client's tools take absolute paths or those below its folder; a shell command is what every agent has.
    work: &'static str,
}

const PYTHON: Project = Project {
    name: "python",
    files: &[
        (".gitignore", "__pycache__/\n.pytest_cache/\n"),
        ("README.md", "# Shop\n"),
        (
            "pyproject.toml",
            "[project]\nname = \"shop\"\nversion = \"0.1\"\n\n[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\npythonpath = [\".\"]\n",
        ),
        ("shop/__init__.py", ""),
        ("shop/prices.py", "def total(prices):\n    return sum(prices)\n"),
        ("tests/test_prices.py", "from shop.prices import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"),
    ],
    plan: "# Plan\n\n## Add discounts\n\n- [ ] discounted(price, percent) takes percent off the price\n- [ ] More than 100 percent is an error\n",
    work: r#"cat >shop/discounts.py <<'Y'
def discounted(price, percent):
    if percent > 100:
        raise ValueError("more than 100 percent")
    return price * (100 - percent) / 100
Y
cat >tests/test_discounts.py <<'Y'
import pytest

from shop.discounts import discounted


def test_half():
    assert discounted(10, 50) == 5


def test_too_much():
    with pytest.raises(ValueError):
        discounted(10, 101)
Y"#,
};

const NODE: Project = Project {
    name: "node",
    files: &[
        (".gitignore", "node_modules/\n"),
        ("README.md", "# Slugs\n"),
        (
            "package.json",
            "{\n  \"name\": \"slugs\",\n  \"version\": \"0.1.0\",\n  \"type\": \"module\",\n  \"scripts\": { \"test\": \"node --test\" }\n}\n",
        ),
        ("src/slug.js", "export const slug = (text) => text.toLowerCase();\n"),
        (
            "test/slug.test.js",
            "import assert from 'node:assert';\nimport { test } from 'node:test';\nimport { slug } from '../src/slug.js';\n\ntest('lower case', () => assert.equal(slug('A'), 'a'));\n",
        ),
    ],
    plan: "# Plan\n\n## Shorten slugs\n\n- [ ] shorten(text, length) cuts a slug\n",
    work: r"cat >src/shorten.js <<'Y'
export const shorten = (text, length) => text.slice(0, length);
Y
cat >test/shorten.test.js <<'Y'
import assert from 'node:assert';
import { test } from 'node:test';
import { shorten } from '../src/shorten.js';

test('cuts', () => assert.equal(shorten('abc', 2), 'ab'));
Y",
};

const RUST: Project = Project {
    name: "rust",
    files: &[
        (".gitignore", "target/\n"),
        ("README.md", "# Words\n"),
        ("Cargo.toml", "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n"),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"words\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", "pub fn count(text: &str) -> usize {\n    text.split_whitespace().count()\n}\n"),
        ("tests/count.rs", "#[test]\nfn counts() {\n    assert_eq!(words::count(\"a b\"), 2);\n}\n"),
    ],
    plan: "# Plan\n\n## Find the longest word\n\n- [ ] longest(text) returns the longest word\n",
    work: r#"cat >>src/lib.rs <<'Y'

pub fn longest(text: &str) -> &str {
    text.split_whitespace()
        .max_by_key(|word| word.len())
        .unwrap_or("")
}
Y
cat >tests/longest.rs <<'Y'
#[test]
fn finds_the_longest() {
    assert_eq!(words::longest("a bcd ef"), "bcd");
}
Y"#,
};

/// Clones the project and does what the quick start says. What the user types and sees is the transcript.
fn first_story(project: &Project) {
    let (Some(claude), Some(runners)) = (Claude::or_skip(), Runners::or_skip()) else { return };
    let model =
        ModelServer::start(Script::new().on("# Story", [Turn::bash(project.work), Turn::say("It is done, with a test.")]));
    let mut sandbox = Sandbox::new();
    claude.configure(&mut sandbox, &model);
    runners.add_to(&mut sandbox);
    let upstream = sandbox.root().join("upstream");
    for (path, text) in project.files {
        write(&upstream.join(path), text);
    }
    let at = upstream.to_string_lossy().into_owned();
    for arguments in [["init", "--quiet"].as_slice(), &["add", "--all"], &["commit", "--quiet", "--message=Start"]] {
        sandbox.git(["-C", &at].iter().chain(arguments));
    }
    sandbox.git(["clone", "--quiet", &at, "."]);

    let set_up = sandbox.verdone(verdone(), ["init", "--yes"]);
    set_up.assert_code(0);
    sandbox.write("PLAN.md", project.plan);
    let run = sandbox.verdone(verdone(), ["run"]);
    run.assert_code(0);
    assert!(model.unscripted().is_empty(), "the script has no answer to some of this:\n{}", model.overview());
    sandbox.assert_no_survivors(PATIENCE);

    let shown = sandbox.verdone(verdone(), ["show"]);
    shown.assert_code(0);
    let why = || sandbox.verdone(verdone(), ["show", "item-1"]).transcript();
    assert!(shown.stdout.contains("agent-tested"), "{}{}", shown.transcript(), why());
    let name = format!("{}/tests/transcripts/first-story-{}.txt", env!("CARGO_MANIFEST_DIR"), project.name);
    let edit = format!("(The user writes PLAN.md.)\n{}", project.plan);
    let whole = [set_up.transcript(), edit, run.transcript(), shown.transcript()].join("\n");
    assert_transcript(name, &sandbox.normalise(&whole));
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_python_project_gets_its_first_story_with_two_commands_and_one_edit() {
    first_story(&PYTHON);
}

#[test]
fn a_node_project_gets_its_first_story_with_two_commands_and_one_edit() {
    first_story(&NODE);
}

#[test]
fn a_rust_project_gets_its_first_story_with_two_commands_and_one_edit() {
    first_story(&RUST);
}
