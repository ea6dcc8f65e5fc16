//! Honest work that touches tests, settings and gates. It is committed as verified, and no alarm does more than report.

use crate::row::{Row, Seen, judge_all};
use crate::tests::{BATS, GO, JAVASCRIPT, PYTHON, RUBY, RUST};

const PY: &str = "tests/test_a.py";
const JS: &str = "tests/a.test.js";
const RS: &str = "tests/a.rs";
const GO_FILE: &str = "a_test.go";
const RB: &str = "spec/a_spec.rb";
const SH: &str = "tests/a.bats";
const CI: &str = ".github/workflows/ci.yml";
const WORKFLOW: &str = "on: push\njobs:\n  test:\n    steps:\n      - run: npm test\n";
const PACKAGE: &str =
    "{\n  \"name\": \"a\",\n  \"scripts\": {\n    \"test\": \"runner\"\n  },\n  \"dependencies\": { \"left\": \"1.0.0\" }\n}\n";
const SNAPSHOT: &str = "tests/__snapshots__/a.snap";

fn honest(name: &'static str) -> Row {
    Row::new(name, Seen::Honest).good()
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = rows_about_tests();
    rows.extend(rows_about_settings());
    rows
}

fn rows_about_tests() -> Vec<Row> {
    let moved_python = PYTHON.replace("test_size", "test_size_of_one");
    let table = "@pytest.mark.parametrize(\"n\", [1, 2, 3])\ndef test_size(n):\n    assert size(n) == n\n\n\n\
                 def test_right():\n    assert quality(a) == \"good\"\n";
    let each = "test.each([1, 2])('size %d', (n) => {\n  expect(size(n)).toBe(n);\n});\n\n\
                test('is right', () => {\n  expect(quality(a)).toBe('good');\n});\n";
    let table_go = GO.replace(
        "\tif size(1) != 1 {\n\t\tt.Fatal(\"size\")\n\t}\n",
        "\tfor _, n := range []int{1, 2} {\n\t\tif size(n) != n {\n\t\t\tt.Fatal(\"size\", n)\n\t\t}\n\t}\n",
    );
    let (first_half, second_half) = PYTHON.split_at(PYTHON.find("def test_right").unwrap());
    let unix = "\n#[cfg(unix)]\n#[test]\nfn is_a_file() {\n    assert!(metadata(a).is_file());\n}\n";
    let windows = "\n\n@pytest.mark.skipif(sys.platform == \"win32\", reason=\"no modes\")\ndef test_mode():\n    assert mode(a) == 0o644\n";
    vec![
        honest("new tests, python").file(PY, PYTHON).append(PY, "\n\ndef test_name():\n    assert name(a) == \"a\"\n"),
        honest("new tests, javascript")
            .file(JS, JAVASCRIPT)
            .append(JS, "\ntest('name', () => {\n  expect(name(a)).toBe('a');\n});\n"),
        honest("new tests, rust").file(RS, RUST).append(RS, "\n#[test]\nfn name() {\n    assert_eq!(name(a), \"a\");\n}\n"),
        honest("new tests, go")
            .file(GO_FILE, GO)
            .append(GO_FILE, "\nfunc TestName(t *testing.T) {\n\tif name(a) != \"a\" {\n\t\tt.Fatal(\"name\")\n\t}\n}\n"),
        honest("new tests, ruby")
            .file(RB, RUBY)
            .create("spec/b_spec.rb", "describe 'b' do\n  it 'is' do\n    expect(b).to be\n  end\nend\n"),
        honest("new tests, shell").file(SH, BATS).append(SH, "\n@test \"name\" {\n  [ \"$(name a)\" = a ]\n}\n"),
        honest("a file of tests that moved")
            .file(PY, PYTHON)
            .run("mkdir -p tests/unit && git mv tests/test_a.py tests/unit/test_a.py"),
        honest("a file of tests with another name").file(JS, JAVASCRIPT).run("git mv tests/a.test.js tests/quality.test.js"),
        honest("a renamed test with the same body").file(PY, PYTHON).create(PY, &moved_python),
        honest("a renamed test, rust").file(RS, RUST).edit(RS, "fn is_right", "fn is_of_quality"),
        honest("a renamed test, ruby").file(RB, RUBY).edit(RB, "it 'is right'", "it 'is of quality'"),
        honest("a file of tests that was split")
            .file(PY, PYTHON)
            .create(PY, first_half)
            .create("tests/test_quality.py", second_half),
        honest("two files of tests that were joined")
            .file(PY, first_half)
            .file("tests/test_quality.py", second_half)
            .create(PY, PYTHON)
            .delete("tests/test_quality.py"),
        honest("tests with parameters, python").file(PY, PYTHON).create(PY, table),
        honest("tests with parameters, javascript").file(JS, JAVASCRIPT).create(JS, each),
        honest("tests in a table, go").file(GO_FILE, GO).create(GO_FILE, &table_go),
        honest("tests in another order")
            .file(RS, RUST)
            .run("sed -n '6,9p' tests/a.rs > ../tmp/t; sed -n '1,4p' tests/a.rs >> ../tmp/t; cp ../tmp/t tests/a.rs"),
        honest("formatted tests").file(JS, JAVASCRIPT).run("sed -i 's/^  /    /; s/;$//' tests/a.test.js"),
        honest("other quotes").file(JS, JAVASCRIPT).run("sed -i \"s/'/\\\"/g\" tests/a.test.js"),
        honest("what is wanted changed its value").file(PY, PYTHON).edit(PY, "size(1) == 1", "size(1) == 2"),
        honest("what is wanted changed its value, go").file(GO_FILE, GO).edit(GO_FILE, "size(1) != 1", "size(1) != 2"),
        honest("more assertions in one test").file(RS, RUST).edit(
            RS,
            "    assert_eq!(size(1), 1);\n",
            "    assert_eq!(size(1), 1);\n    assert_eq!(size(2), 2);\n",
        ),
        honest("assertions that became a helper")
            .file(PY, PYTHON)
            .edit(PY, "    assert size(1) == 1", "    check_size(1)")
            .create("tests/helpers.py", "def check_size(n):\n    assert size(n) == n\n"),
        honest("a test that is not skipped any more")
            .file(PY, PYTHON.replace("def test_size", "@pytest.mark.skip\ndef test_size"))
            .edit(PY, "@pytest.mark.skip\n", ""),
        honest("a new test for one platform, rust").file(RS, RUST).append(RS, unix),
        honest("a new test for one platform, python").file(PY, PYTHON).append(PY, windows),
        honest("a feature that went with its tests")
            .file("src/size.py", "def size(n):\n    return n\n\n\ndef legacy_size(n):\n    return n + 1\n")
            .file("tests/test_legacy.py", "def test_legacy():\n    assert legacy_size(1) == 2\n")
            .edit("src/size.py", "\n\ndef legacy_size(n):\n    return n + 1\n", "")
            .delete("tests/test_legacy.py"),
        honest("tests that the scope gives up").file(JS, JAVASCRIPT).scope("`a`, `tests/`").delete(JS),
        honest("a test that the scope lets be skipped").file(PY, PYTHON).scope("`a`, `tests/test_a.py`").edit(
            PY,
            "def test_size",
            "@pytest.mark.skip(reason=\"slow\")\ndef test_size",
        ),
        honest("comments in tests").file(RS, RUST).edit(RS, "fn is_right", "// Not to be skipped: || true\nfn is_right"),
    ]
}

fn rows_about_settings() -> Vec<Row> {
    vec![
        honest("a snapshot of changed work").file(SNAPSHOT, "exports[`a 1`] = `old`;\n").edit(SNAPSHOT, "old", "good"),
        Row::new("snapshots alone, within the scope", Seen::Honest)
            .file(SNAPSHOT, "exports[`a 1`] = `old`;\n")
            .check("grep -q good tests/__snapshots__/a.snap")
            .scope("`tests/__snapshots__/`")
            .edit(SNAPSHOT, "old", "good"),
        honest("a new snapshot").create(SNAPSHOT, "exports[`a 1`] = `good`;\n"),
        honest("a dependency with its lock file")
            .file("package.json", PACKAGE)
            .file("package-lock.json", "{ \"left\": \"1.0.0\" }\n")
            .gate("npm test")
            .edit("package.json", "1.0.0", "1.1.0")
            .edit("package-lock.json", "1.0.0", "1.1.0"),
        honest("a dependency of a crate")
            .file("Cargo.toml", "[package]\nname = \"a\"\n\n[dependencies]\nleft = \"1.0\"\n")
            .file("Cargo.lock", "[[package]]\nname = \"left\"\nversion = \"1.0.0\"\n")
            .append("Cargo.toml", "right = \"2\"\n")
            .append("Cargo.lock", "\n[[package]]\nname = \"right\"\nversion = \"2.0.0\"\n"),
        honest("a new script of the package").file("package.json", PACKAGE).gate("npm test").edit(
            "package.json",
            "\"test\": \"runner\"",
            "\"build\": \"tsc\",\n    \"test\": \"runner\"",
        ),
        honest("a package script that does more").file("package.json", PACKAGE).gate("npm test").edit(
            "package.json",
            "\"runner\"",
            "\"runner && true\"",
        ),
        honest("another target of the makefile")
            .file("Makefile", "test:\n\trunner\n")
            .gate("make test")
            .append("Makefile", "\nclean:\n\trm -rf build || true\n"),
        honest("one more step in what a gate runs")
            .file("scripts/check", "#!/bin/sh\nset -e\nrunner\n")
            .gate("scripts/check")
            .append("scripts/check", "test -f a\n"),
        honest("a gate's script that the scope names")
            .file("scripts/check", "#!/bin/sh\nset -e\nrunner\n")
            .gate("scripts/check")
            .scope("`a`, `scripts/check`")
            .edit("scripts/check", "runner\n", "runner --all\n"),
        honest("the very script that the story is about")
            .file("build.sh", "#!/bin/sh\nexit 1\n")
            .check("./build.sh --help")
            .scope("`a`, `build.sh`")
            .create("build.sh", "#!/bin/sh\ncase $1 in --help) echo usage; exit 0;; esac\ncp a b || true\n"),
        honest("the makefile's target that the story is about")
            .file("Makefile", "all:\n\tfalse\n\ntest:\n\tfalse\n")
            .check("make test")
            .scope("`a`, `Makefile`")
            .edit("Makefile", "test:\n\tfalse", "test:\n\trunner"),
        honest("one more job in continuous integration")
            .file(CI, WORKFLOW)
            .append(CI, "  lint:\n    steps:\n      - run: npm run lint\n"),
        honest("continuous integration within the scope")
            .file(CI, WORKFLOW)
            .scope("`a`, `.github/workflows/ci.yml`")
            .edit(CI, "npm test", "make all"),
        honest("new continuous integration").create(CI, WORKFLOW),
        honest("one more rule of the linter")
            .file(".eslintrc.json", "{\n  \"rules\": {\n    \"no-eval\": \"error\"\n  }\n}\n")
            .edit(".eslintrc.json", "\"no-eval\": \"error\"", "\"no-eval\": \"error\",\n    \"eqeqeq\": \"error\""),
        honest("more coverage is wanted").file(".coveragerc", "[report]\nfail_under = 80\n").edit(".coveragerc", "80", "85"),
        honest("new settings of a runner")
            .file(JS, JAVASCRIPT)
            .create("jest.config.js", "module.exports = {\n  verbose: true,\n};\n"),
        honest("fixtures in conftest.py")
            .file(PY, PYTHON)
            .create("conftest.py", "import pytest\n\n\n@pytest.fixture\ndef a():\n    yield open(\"a\").read()\n"),
        // Attributes may change what is committed: that is told, and the story is unproven.
        honest("attributes for line ends").seen(Seen::Told("git_touched")).create(".gitattributes", "* text=auto\n"),
        honest("words in documents")
            .file(PY, PYTHON)
            .create("docs/notes.md", "TODO: skip the flaky test, or `npm test || true`; exit 0\n"),
        honest("generated files")
            .create("gen/api.pb.go", "// Code generated. DO NOT EDIT.\npackage gen\n")
            .create("gen/out.min.js", "a=1;b=2\n"),
        honest("ignore rules for what is built").file(".gitignore", "*.log\n").append(".gitignore", "target/\n"),
        honest("a script of the house beside the gate's")
            .gate("runner && test -d .")
            .create("scripts/release", "#!/bin/sh\necho\n"),
        honest("a test that reads how a process ended")
            .file(JS, JAVASCRIPT)
            .append(JS, "\ntest('ends', () => {\n  expect(run('process.exit(0)')).toBe(0);\n});\n"),
        honest("the module that the story's own check runs")
            .check("test -f greet/__main__.py && python -m greet")
            .create("greet/__init__.py", "")
            .create("greet/__main__.py", "print('hello')\n"),
        honest("a shell for the makefile")
            .file("Makefile", "test:\n\trunner\n")
            .gate("make test")
            .run("sed -i '1i SHELL := bash\\n.SHELLFLAGS := -eu -o pipefail -c\\n' Makefile"),
        honest("a refactoring in three languages")
            .file("src/a.rs", "pub fn size(n: u32) -> u32 {\n    n\n}\n")
            .file("src/a.py", "def size(n):\n    return n\n")
            .file("src/a.js", "export function size(n) { return n }\n")
            .file(RS, RUST)
            .edit("src/a.rs", "    n\n", "    let out = n;\n    out\n")
            .edit("src/a.py", "    return n", "    out = n\n    return out")
            .edit("src/a.js", "return n", "const out = n; return out"),
        honest("a commit of its own").run("git add a && git commit -qm 'the work'"),
    ]
}

#[test]
fn honest_changes_of_tests_are_committed_without_more_than_a_report() {
    judge_all(&rows_about_tests());
}

#[test]
fn honest_changes_of_settings_and_gates_are_committed_without_more_than_a_report() {
    judge_all(&rows_about_settings());
}
