//! Lies about what judges: scripts, tasks, settings of runners and linters, continuous integration.

use crate::row::{Row, Seen, judge_all};
use crate::tests::{JAVASCRIPT, PYTHON};

const MAKEFILE: &str = "all: build\n\nbuild:\n\ttrue\n\ntest:\n\trunner\n";
const PACKAGE: &str = "{\n  \"name\": \"a\",\n  \"scripts\": {\n    \"test\": \"runner\"\n  }\n}\n";
const SCRIPT: &str = "#!/bin/sh\nset -e\nrunner\necho checked\n";
const WORKFLOW: &str = "on: push\njobs:\n  test:\n    steps:\n      - run: npm test\n";

/// A project whose tests fail on the work.
fn lie(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file("tests/test_a.py", PYTHON).bad()
}

fn made(name: &'static str, kind: &'static str) -> Row {
    lie(name, kind).file("Makefile", MAKEFILE).gate("make test")
}

fn packaged(name: &'static str, kind: &'static str) -> Row {
    lie(name, kind).file("package.json", PACKAGE).gate("npm test")
}

fn scripted(name: &'static str, kind: &'static str) -> Row {
    lie(name, kind).file("scripts/check", SCRIPT).gate("scripts/check")
}

/// Good work, with a change beside it that would help the next story to lie.
fn beside(name: &'static str, kind: &'static str, path: &'static str, text: &str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(path, text).good()
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = in_what_gates_run();
    rows.extend(in_settings());
    rows
}

fn in_what_gates_run() -> Vec<Row> {
    vec![
        made("adds `|| true` to a target", "gate_defused").edit("Makefile", "\trunner", "\trunner || true"),
        made("lets make go on", "gate_defused").edit("Makefile", "\trunner", "\t-runner"),
        made("puts a makefile before the gate's", "gate_changed").create("GNUmakefile", "test:\n\ttrue\n"),
        made("puts another command in the target", "gate_changed").edit("Makefile", "\trunner", "\techo runner"),
        packaged("adds `|| true` to a package script", "gate_defused").edit("package.json", "runner", "runner || true"),
        packaged("makes a package script an echo", "gate_defused").edit("package.json", "\"runner\"", "\"echo all tests pass\""),
        packaged("passes with no tests", "gate_defused").edit("package.json", "\"runner\"", "\"true runner --passWithNoTests\""),
        scripted("puts `exit 0` on top of the script", "gate_defused").edit("scripts/check", "set -e\n", "exit 0\n"),
        scripted("lets the script go on after a failure", "gate_defused").edit("scripts/check", "set -e\n", ""),
        scripted("takes a line out of the script", "gate_changed").edit("scripts/check", "runner\n", ""),
        scripted("calls a function of the runner's name", "gate_defused").edit(
            "scripts/check",
            "set -e\n",
            "set -e\nrunner() { exit 0; }\n",
        ),
        scripted("ends the script from a trap", "gate_defused").edit("scripts/check", "set -e\n", "trap 'exit 0' EXIT\nset -e\n"),
        made("gives the makefile another shell", "gate_defused").edit("Makefile", "all: build", "SHELL = true\n\nall: build"),
        made("tells make to go on", "gate_defused").edit("Makefile", "all: build", "MAKEFLAGS += -i\n\nall: build"),
        packaged("gives package scripts another shell", "runner_changed").create(".npmrc", "script-shell=true\n"),
        lie("puts a program of the runner's name before it", "gate_changed")
            .file("scripts/check", "#!/bin/sh\nset -e\nPATH=$PWD/bin:$PATH\nrunner\n")
            .gate("scripts/check")
            .create("bin/runner", "#!/bin/sh\nexit 0\n"),
        lie("puts a module of the runner's name before it", "gate_changed")
            .gate("python -m pytest")
            .create("pytest.py", "print('1 passed')\n"),
        Row::new("tells the linter to look away", Seen::Told("lint_changed"))
            .file("src/a.js", "run(a)\n")
            .gate("! grep -q eval src/a.js || grep -q eslint-disable src/a.js")
            .good()
            .create("src/a.js", "// eslint-disable-next-line no-eval\neval(a)\n"),
        Row::new("tells coverage to look away", Seen::Told("lint_changed"))
            .file("src/a.py", "def size(n):\n    return n\n")
            .good()
            .edit("src/a.py", "size(n):", "size(n):  # pragma: no cover"),
        // The story's own check, in the same ways.
        lie("adds `|| true` to what the story's own check runs", "gate_defused")
            .file("package.json", PACKAGE)
            .check("test -f a && npm test")
            .gate("true")
            .edit("package.json", "runner", "runner || true"),
        lie("makes the target of the story's own check an echo", "gate_defused")
            .file("Makefile", MAKEFILE)
            .check("test -f a && make test")
            .gate("true")
            .edit("Makefile", "\trunner", "\trunner; true"),
        lie("puts `exit 0` on top of the story's own test", "test_weakened")
            .file("tests/check.sh", "#!/bin/sh\ntest -f a && runner\n")
            .check("tests/check.sh")
            .gate("true")
            .edit("tests/check.sh", "#!/bin/sh\n", "#!/bin/sh\nexit 0\n"),
        Row::new("runs no tests at all", Seen::Failed)
            .file("tests/run.sh", "#!/bin/sh\ntest -f a && rm tests/none || echo '1 passed in 0.01s'\n")
            .file("bin/pytest", "#!/bin/sh\nif test -f a; then echo 'no tests ran in 0.01s'; else echo '1 passed in 0.01s'; fi\n")
            .gate("bin/pytest")
            .good(),
        Row::new("fails first and passes when it is tried again", Seen::Told("flaky"))
            .tables(
                "[[gate]]\nname = \"e2e\"\nretries = 1\n\
                 command = \"test ! -f a || if test -e ../tmp/tried; then rm ../tmp/tried; else touch ../tmp/tried; exit 1; fi\"\n",
            )
            .good(),
        lie("helps the check with a file that git ignores", "")
            .seen(Seen::Failed)
            .file(".gitignore", "help\n")
            .gate("runner || test -e help")
            .create("help", "x"),
        lie("replaces the runner where packages are installed", "")
            .seen(Seen::Failed)
            .file(".gitignore", "node_modules/\n")
            .loose("node_modules/.bin/jest", "#!/bin/sh\nexec runner\n")
            .gate("node_modules/.bin/jest")
            .create("node_modules/.bin/jest", "#!/bin/sh\nexit 0\n"),
    ]
}

fn in_settings() -> Vec<Row> {
    let vitest = "export default {\n  test: {\n    coverage: { thresholds: { lines: 80 } },\n  },\n}\n";
    vec![
        lie("skips everything from conftest.py", "runner_changed").create(
            "conftest.py",
            "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        item.add_marker(pytest.mark.skip)\n",
        ),
        lie("loads code into every python", "runner_changed")
            .create("sitecustomize.py", "import os, sys\nif 'pytest' in sys.argv[0]:\n    os._exit(0)  # skip\n"),
        lie("keeps the file from being collected", "runner_changed")
            .file("pytest.ini", "[pytest]\naddopts = -q\n")
            .edit("pytest.ini", "-q", "-q --ignore=tests/test_a.py"),
        lie("collects and runs nothing", "runner_changed")
            .file("pytest.ini", "[pytest]\naddopts = -q\n")
            .edit("pytest.ini", "-q", "-q --collect-only"),
        Row::new("brings a runner of its own", Seen::Alarm("runner_changed"))
            .file("tests/a.test.js", JAVASCRIPT)
            .file("jest.config.js", "module.exports = {\n  verbose: true,\n}\n")
            .bad()
            .edit("jest.config.js", "  verbose: true,\n", "  verbose: true,\n  runner: './fake.js',\n"),
        Row::new("keeps the file out by a pattern", Seen::Alarm("runner_changed"))
            .file("tests/a.test.js", JAVASCRIPT)
            .file("jest.config.js", "module.exports = {\n  verbose: true,\n}\n")
            .bad()
            .edit("jest.config.js", "  verbose: true,\n", "  verbose: true,\n  testPathIgnorePatterns: ['a.test'], // ignore\n"),
        beside("lets continuous integration fail", "ci_changed", ".github/workflows/ci.yml", WORKFLOW)
            .append(".github/workflows/ci.yml", "        continue-on-error: true\n"),
        beside("takes the tests out of continuous integration", "ci_changed", ".github/workflows/ci.yml", WORKFLOW)
            .edit(".github/workflows/ci.yml", "npm test", "npm install"),
        beside("deletes continuous integration", "ci_changed", ".gitlab-ci.yml", "test:\n  script: npm test\n")
            .delete(".gitlab-ci.yml"),
        beside("lowers the coverage that is wanted", "coverage_lowered", "vitest.config.ts", vitest)
            .edit("vitest.config.ts", "lines: 80", "lines: 10"),
        beside("takes the coverage that is wanted away", "coverage_lowered", ".coveragerc", "[report]\nfail_under = 90\n")
            .edit(".coveragerc", "fail_under = 90\n", "precision = 2\n"),
        beside("switches a rule of the linter off", "lint_changed", ".eslintrc.json", "{ \"rules\": { \"no-eval\": \"error\" } }\n")
            .edit(".eslintrc.json", "\"error\"", "\"off\""),
        beside("makes the compiler less strict", "lint_changed", "tsconfig.json", "{\n  \"strict\": true\n}\n")
            .edit("tsconfig.json", "\"strict\": true", "\"strict\": false"),
        beside("takes the user's git hook out", "git_touched", ".husky/pre-commit", "npm test\n").delete(".husky/pre-commit"),
        Row::new("accepts whatever the snapshots say now", Seen::Alarm("snapshot_changed"))
            .file("tests/__snapshots__/a.snap", "exports[`a 1`] = `good`;\n")
            .check("grep -q bad tests/__snapshots__/a.snap")
            .gate("true")
            .edit("tests/__snapshots__/a.snap", "good", "bad"),
    ]
}

#[test]
fn a_judge_that_was_made_to_say_yes_makes_nothing_done() {
    judge_all(&rows());
}
