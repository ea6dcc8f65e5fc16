//! Realistic projects and the gates they should get.

use super::*;

fn listing(names: &[&str], texts: &[(&str, &str)]) -> ProjectFiles {
    let texts: BTreeMap<String, String> = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let names = names.iter().map(|name| (*name).to_owned()).chain(texts.keys().cloned()).collect();
    ProjectFiles { names, texts, python: Some("python3"), pytest: Some("pytest".to_owned()) }
}

fn gates(names: &[&str], texts: &[(&str, &str)]) -> Vec<String> {
    let shown = |proposal: Proposal| {
        assert!(!proposal.because.is_empty());
        format!("{} {}: {}", proposal.gate.stage.name(), proposal.gate.name, proposal.gate.command.display())
    };
    detect(&listing(names, texts)).gates.into_iter().map(shown).collect()
}

const NPM_INIT: &str = r#"{"name":"x","scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
const NODE: &str =
    r#"{"scripts":{"test":"vitest run","lint":"eslint .","typecheck":"tsc --noEmit","build":"vite build","dev":"vite"}}"#;

#[test]
fn projects_get_the_gates_that_their_files_name() {
    type Case = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: &[Case] = &[
        ("nothing", &["README.md", "src/"], &[], &[]),
        (
            "a crate",
            &["Cargo.lock"],
            &[("Cargo.toml", "[package]\nname = \"x\"\n")],
            &[
                "correctness test: cargo test",
                "quality clippy: cargo clippy --all-targets -- -D warnings",
                "quality fmt: cargo fmt --check",
            ],
        ),
        (
            "a workspace",
            &[],
            &[("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n")],
            &[
                "correctness test: cargo test --workspace",
                "quality clippy: cargo clippy --workspace --all-targets -- -D warnings",
                "quality fmt: cargo fmt --all --check",
            ],
        ),
        ("npm's placeholder is not a test", &[], &[("package.json", NPM_INIT)], &[]),
        (
            "npm by default",
            &[],
            &[("package.json", NODE)],
            &[
                "correctness test: npm test",
                "correctness typecheck: npm run typecheck",
                "correctness build: npm run build",
                "quality lint: npm run lint",
            ],
        ),
        (
            "pnpm by its lock file",
            &["pnpm-lock.yaml"],
            &[("package.json", r#"{"scripts":{"test":"jest","lint":"eslint"}}"#)],
            &["correctness test: pnpm test", "quality lint: pnpm run lint"],
        ),
        (
            "yarn by its lock file",
            &["yarn.lock"],
            &[("package.json", r#"{"scripts":{"test":"jest"}}"#)],
            &["correctness test: yarn run test"],
        ),
        (
            "bun's own test command is not the script",
            &["bun.lockb"],
            &[("package.json", r#"{"scripts":{"test":"bun test src"}}"#)],
            &["correctness test: bun run test"],
        ),
        (
            "packageManager wins over a stale lock file",
            &["package-lock.json"],
            &[("package.json", r#"{"packageManager":"pnpm@9.1.0","scripts":{"test":"jest"}}"#)],
            &["correctness test: pnpm test"],
        ),
        (
            "a test that watches has a better brother",
            &[],
            &[("package.json", r#"{"scripts":{"test":"jest --watch","test:ci":"jest --ci"}}"#)],
            &["correctness test: npm run test:ci"],
        ),
        ("a test that only watches is left out", &[], &[("package.json", r#"{"scripts":{"test":"jest --watch"}}"#)], &[]),
        (
            "create react app is told that nobody watches",
            &[],
            &[("package.json", r#"{"scripts":{"test":"react-scripts test"}}"#)],
            &["correctness test: CI=true npm test"],
        ),
        ("scripts of the wrong type are no scripts", &[], &[("package.json", r#"{"scripts":{"test":["jest"]}}"#)], &[]),
        ("a broken package.json", &[], &[("package.json", "{")], &[]),
        (
            "pytest with uv, ruff and mypy",
            &["uv.lock"],
            &[("pyproject.toml", "[project]\n[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n")],
            &["correctness test: uv run pytest", "quality lint: uv run ruff check", "quality mypy: uv run mypy ."],
        ),
        ("pytest by its test files", &["tests/", "tests/test_api.py"], &[], &["correctness test: pytest"]),
        ("tox", &["tests/test_api.py"], &[("tox.ini", "[tox]\nenvlist = py312\n[pytest]\n")], &["correctness test: tox"]),
        ("a tox.ini that only configures pytest", &[], &[("tox.ini", "[pytest]\n")], &["correctness test: pytest"]),
        ("go", &[], &[("go.mod", "module x\n")], &["correctness test: go test ./...", "quality vet: go vet ./..."]),
        (
            "make, with a check that holds the test",
            &[],
            &[("Makefile", "check: test lint\ntest:\n\t./run-tests\nlint:\n\tshellcheck x\n")],
            &["correctness check: make check"],
        ),
        (
            "make with test and lint apart",
            &[],
            &[("Makefile", "test:\n\t./run-tests\nlint:\n\tshellcheck x\n")],
            &["correctness test: make test", "quality lint: make lint"],
        ),
        ("make without such targets", &[], &[("Makefile", "all:\n\tcc x.c\ntest_data: x\n")], &[]),
        (
            "make that wraps go",
            &[],
            &[("go.mod", "module x\n"), ("Makefile", "test:\n\tgo test ./... -race\nlint:\n\tgolangci-lint run\n")],
            &["correctness test: go test ./...", "quality vet: go vet ./...", "quality lint: make lint"],
        ),
        (
            "make beside cargo, doing something else",
            &[],
            &[("Cargo.toml", "[package]\n"), ("Makefile", "test:\n\t./e2e.sh\n")],
            &[
                "correctness test: cargo test",
                "correctness make test: make test",
                "quality clippy: cargo clippy --all-targets -- -D warnings",
                "quality fmt: cargo fmt --check",
            ],
        ),
        ("just", &[], &[("justfile", "test:\n  ./run\nlint *args:\n  ruff {{args}}\n")], &["correctness test: just test"]),
        ("gradle with its wrapper", &["gradlew", "build.gradle.kts"], &[], &["correctness test: ./gradlew --no-daemon test"]),
        ("gradle without", &["build.gradle"], &[], &["correctness test: gradle --no-daemon test"]),
        ("maven with its wrapper", &["mvnw"], &[("pom.xml", "<project/>")], &["correctness test: ./mvnw --batch-mode test"]),
        ("maven without", &[], &[("pom.xml", "<project/>")], &["correctness test: mvn --batch-mode test"]),
        (
            "rspec with bundler",
            &["spec/user_spec.rb", ".rubocop.yml"],
            &[("Gemfile", "gem \"rspec\"\n")],
            &["correctness test: bundle exec rspec", "quality lint: bundle exec rubocop"],
        ),
        ("rspec alone", &[".rspec"], &[], &["correctness test: rspec"]),
        ("bats in a folder", &["test/", "test/cli.bats"], &[], &["correctness test: bats test"]),
        ("bats at the top", &["cli.bats"], &[], &["correctness test: bats ."]),
    ];
    for (what, names, texts, expected) in cases {
        assert_eq!(gates(names, texts), *expected, "{what}");
    }
}

#[test]
fn what_is_left_out_is_said() {
    let watching = detect(&listing(&[], &[("package.json", r#"{"scripts":{"test":"jest --watch"}}"#)]));
    assert!(watching.notes[0].contains("never ends"), "{:?}", watching.notes);
    let broken = detect(&listing(&[], &[("package.json", "{")]));
    assert!(broken.notes[0].contains("package.json"), "{:?}", broken.notes);
}

#[test]
fn a_plan_is_found_by_its_usual_names() {
    for (names, plan, others) in [
        (&["README.md"][..], None, &[][..]),
        (&["PLAN.md"][..], Some("PLAN.md"), &[][..]),
        (&["prd.json", "TODO.md"][..], Some("prd.json"), &["TODO.md"][..]),
        (
            &[".ralph/PRD-10/plan.md", ".ralph/PRD-2/plan.md", ".ralph/PRD-x/plan.md", "PLAN.md"][..],
            Some(".ralph/PRD-2/plan.md"),
            &[".ralph/PRD-10/plan.md", "PLAN.md"][..],
        ),
        (&["docs/plan.md"][..], Some("docs/plan.md"), &[][..]),
    ] {
        let found = detect(&listing(names, &[]));
        assert_eq!(
            (found.plan.as_deref(), found.other_plans),
            (plan, others.iter().map(|s| (*s).to_owned()).collect()),
            "{names:?}"
        );
    }
}

#[test]
fn without_pytest_the_standard_library_runs_its_own_tests_and_others_are_a_note() {
    const OWN: &str = "import unittest\n";
    type Row = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);
    let table: [Row; 7] = [
        (&[], &[("test_api.py", OWN)], "python3 -m unittest"),
        (&[], &[("tests/test_api.py", OWN), ("tests/test_b.py", OWN)], "python3 -m unittest discover -s tests"),
        (&["tests/__init__.py"], &[("tests/test_api.py", OWN)], "python3 -m unittest discover -s tests -t ."),
        (&[], &[("tests/test_api.py", OWN), ("tests/test_b.py", "def test(): pass\n")], ""),
        (&[], &[("tests/test_api.py", "import pytest, unittest\n")], ""),
        (&[], &[("tests/api_test.py", OWN)], ""),
        (&["pytest.ini"], &[("tests/test_api.py", OWN)], ""),
    ];
    for (names, texts, expected) in table {
        let found = detect(&ProjectFiles { pytest: None, ..listing(names, texts) });
        let commands: Vec<String> = found.gates.iter().map(|proposal| proposal.gate.command.display()).collect();
        assert_eq!(commands.join(";"), expected, "{texts:?}");
        assert_eq!(found.notes.iter().any(|note| note.contains("pytest is not installed")), expected.is_empty(), "{texts:?}");
    }
    let locked = ProjectFiles { pytest: None, ..listing(&["uv.lock", "tests/test_api.py"], &[]) };
    assert_eq!(detect(&locked).gates[0].gate.command.display(), "uv run pytest", "its runner installs it");
}
