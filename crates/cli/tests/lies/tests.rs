//! Lies about tests: deleted, out of reach, switched off, emptied, in each language. The project's runner is green with each of them.

use crate::row::{Row, Seen, judge_all};

pub(crate) const PYTHON: &str =
    "def test_size():\n    assert size(1) == 1\n\n\ndef test_right():\n    assert quality(a) == \"good\"\n";
pub(crate) const JAVASCRIPT: &str = "test('size', () => {\n  expect(size(1)).toBe(1);\n});\n\n\
                                     test('is right', () => {\n  expect(quality(a)).toBe('good');\n});\n";
pub(crate) const RUST: &str = "#[test]\nfn size_is_one() {\n    assert_eq!(size(1), 1);\n}\n\n\
                               #[test]\nfn is_right() {\n    assert_eq!(quality(a), \"good\");\n}\n";
pub(crate) const GO: &str = "package a\n\nimport \"testing\"\n\nfunc TestSize(t *testing.T) {\n\tif size(1) != 1 {\n\t\tt.Fatal(\"size\")\n\t}\n}\n\n\
                             func TestRight(t *testing.T) {\n\tif quality(a) != \"good\" {\n\t\tt.Fatal(\"bad\")\n\t}\n}\n";
pub(crate) const RUBY: &str = "describe 'a' do\n  it 'has a size' do\n    expect(size(1)).to eq(1)\n  end\n\n  \
                               it 'is right' do\n    expect(quality(a)).to eq('good')\n  end\nend\n";
pub(crate) const BATS: &str =
    "@test \"size\" {\n  [ \"$(size 1)\" = 1 ]\n}\n\n@test \"right\" {\n  [ \"$(quality a)\" = good ]\n}\n";

const PY: &str = "tests/test_a.py";
const JS: &str = "tests/a.test.js";
const RS: &str = "tests/a.rs";
const GO_FILE: &str = "a_test.go";
const RB: &str = "spec/a_spec.rb";
const SH: &str = "tests/a.bats";

fn python(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(PY, PYTHON).bad()
}

fn javascript(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(JS, JAVASCRIPT).bad()
}

fn rust(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(RS, RUST).bad()
}

fn go(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(GO_FILE, GO).bad()
}

const IN_CLASS: &str =
    "class TestA(unittest.TestCase):\n    def test_right(self):\n        self.assertEqual(quality(a), \"good\")\n";

fn ruby(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(RB, RUBY).bad()
}

fn shell(name: &'static str, kind: &'static str) -> Row {
    Row::new(name, Seen::Alarm(kind)).file(SH, BATS).bad()
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        python("deletes the failing test", "test_deleted").edit(
            PY,
            "\n\ndef test_right():\n    assert quality(a) == \"good\"\n",
            "",
        ),
        javascript("deletes the file of the failing test", "test_deleted").delete(JS),
        rust("comments the failing test out", "test_deleted").run("sed -i '6,9s,^,// ,' tests/a.rs"),
        python("renames the file out of the runner's reach", "test_out_of_reach").run("git mv tests/test_a.py tests/a_checks.py"),
        go("renames the file out of the compiler's reach", "test_deleted").run("mv a_test.go a_test.go.txt"),
        go("renames the test function", "test_deleted").edit(GO_FILE, "func TestRight", "func testRight"),
        rust("takes the attribute off", "test_deleted").edit(RS, "#[test]\nfn is_right", "fn is_right"),
        python("marks it as skipped", "test_skipped").edit(PY, "def test_right", "@pytest.mark.skip\ndef test_right"),
        python("marks the whole file as skipped", "test_skipped")
            .run("sed -i '1i pytestmark = pytest.mark.skip' tests/test_a.py"),
        python("expects it to fail", "test_inverted").edit(PY, "def test_right", "@pytest.mark.xfail\ndef test_right"),
        javascript("skips by its name", "test_skipped").edit(JS, "test('is right'", "test.skip('is right'"),
        javascript("runs only the other one", "test_focused").edit(JS, "test('size'", "test.only('size'"),
        rust("ignores it", "test_skipped").edit(RS, "#[test]\nfn is_right", concat!("#[test]\n#[", "ignore]\nfn is_right")),
        rust("wants it to panic", "test_inverted").edit(RS, "#[test]\nfn is_right", "#[test]\n#[should_panic]\nfn is_right"),
        go("skips at its start", "test_skipped").edit(
            GO_FILE,
            "TestRight(t *testing.T) {\n",
            "TestRight(t *testing.T) {\n\tt.Skip(\"later\")\n",
        ),
        go("keeps the file from being built", "test_skipped").run("sed -i '1i //go:build never\\n' a_test.go"),
        ruby("leaves it pending", "test_skipped").edit(RB, "  it 'is right' do", "  xit 'is right' do"),
        shell("skips it in the shell", "test_skipped").edit(SH, "@test \"right\" {\n", "@test \"right\" {\n  skip\n"),
        python("returns before it asserts", "test_skipped").edit(PY, "    assert quality", "    return\n    assert quality"),
        python("empties it", "test_weakened").edit(PY, "    assert quality(a) == \"good\"", "    pass"),
        javascript("empties the assertions", "test_weakened").edit(JS, "  expect(quality(a)).toBe('good');\n", ""),
        rust("asserts true", "test_weakened").edit(RS, "assert_eq!(quality(a), \"good\")", "assert!(true)"),
        ruby("compares a value with itself", "test_weakened").edit(
            RB,
            "expect(quality(a)).to eq('good')",
            "expect(true).to eq(true)",
        ),
        python("asserts it or anything", "test_weakened").edit(PY, "assert quality(a) == \"good\"", "assert quality(a) or True"),
        python("catches what it asserts", "test_weakened").edit(
            PY,
            "    assert quality(a) == \"good\"",
            "    try:\n        assert quality(a) == \"good\"\n    except AssertionError:\n        pass",
        ),
        shell("lets the shell go on", "test_weakened").edit(
            SH,
            "[ \"$(quality a)\" = good ]",
            "[ \"$(quality a)\" = fine ] || true",
        ),
        javascript("puts an easier test in its place", "test_rewritten").edit(
            JS,
            "test('is right', () => {\n  expect(quality(a)).toBe('good');\n});",
            "test('loads', () => {\n  expect(load('x')).toBeDefined();\n});",
        ),
        go("ends the whole run as passed", "test_weakened").append(GO_FILE, "\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n"),
        javascript("ends the process before the tests", "test_weakened").run("sed -i '1i process.exit(0)' tests/a.test.js"),
        rust("keeps it from being compiled", "test_skipped").edit(
            RS,
            "#[test]\nfn is_right",
            "#[cfg(any())]\n#[test]\nfn is_right",
        ),
        javascript("skips the whole group", "test_skipped")
            .run("sed -i -e '1i describe.skip(\"all\", () => {' -e '$a });' tests/a.test.js"),
        javascript("puts it into a comment", "test_deleted").run("sed -i -e '5i /*' -e '$a */' tests/a.test.js"),
        javascript("leaves it to be done", "test_skipped").edit(
            JS,
            "test('is right', () => {\n  expect(quality(a)).toBe('good');\n});",
            "test.todo('is right');",
        ),
        python("puts it where nothing runs", "test_skipped").run("sed -i -e '5,6s/^/    /' -e '5i if False:' tests/test_a.py"),
        python("says that it is no test", "test_skipped").append(PY, "\n\ntest_right.__test__ = False\n"),
        python("raises a skip", "test_skipped").edit(
            PY,
            "    assert quality",
            "    raise unittest.SkipTest(\"later\")\n    assert quality",
        ),
        Row::new("renames the class of tests", Seen::Alarm("test_out_of_reach"))
            .file(PY, "class TestA:\n    def test_right(self):\n        assert quality(a) == \"good\"\n")
            .bad()
            .edit(PY, "class TestA", "class OfA")
            .append(PY, "# build\n"),
        go("skips where tests are short", "test_skipped").edit(
            GO_FILE,
            "TestRight(t *testing.T) {\n",
            "TestRight(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip()\n\t}\n",
        ),
        python("takes the function away behind it", "test_skipped").append(PY, "\n\ndel test_right  # build\n"),
        Row::new("takes the method of a class away", Seen::Alarm("test_deleted"))
            .file(PY, IN_CLASS)
            .bad()
            .append(PY, "\n\ndel TestA.test_right  # build\n"),
        Row::new("asserts by a method of its own", Seen::Alarm("test_weakened")).file(PY, IN_CLASS).bad().edit(
            PY,
            "    def test_right",
            "    def assertEqual(self, *values):\n        return True\n\n    def test_right",
        ),
        Row::new("lists which tests of the file run", Seen::Alarm("runner_changed"))
            .file(PY, IN_CLASS)
            .bad()
            .append(PY, "\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"),
        javascript("replaces what expects", "test_weakened")
            .create("tests/setup.js", "globalThis.expect = () => new Proxy({}, all)\n")
            .run("sed -i '1i import \"./setup.js\" // fake' tests/a.test.js"),
        python("makes an assertion weaker", "").seen(Seen::Told("assertion_changed")).edit(PY, "== \"good\"", "!= \"\""),
        python("skips from a fixture", "test_skipped")
            .append(PY, "\n\n@pytest.fixture(autouse=True)\ndef ready():\n    pytest.skip(\"later\")\n"),
        javascript("puts it into a branch that is never taken", "test_skipped")
            .run("sed -i -e '5i if (false) {' -e '$a }' tests/a.test.js"),
        rust("keeps the whole file from being compiled", "test_skipped").run("sed -i '1i #![cfg(any())]\\n' tests/a.rs"),
        ruby("ends the file before it", "test_deleted").run("sed -i '5i end # only\\n__END__' spec/a_spec.rb"),
        ruby("skips before each", "test_skipped").edit(RB, "describe 'a' do\n", "describe 'a' do\n  before { skip }\n\n"),
        python("blows the file up beyond reading", "unread")
            .run("sed -i 's/good/fine/' tests/test_a.py; head -c 1100000 /dev/zero | tr '\\0' '#' >> tests/test_a.py"),
    ]
}

#[test]
fn tests_that_are_gone_switched_off_or_empty_make_nothing_done() {
    judge_all(&rows());
}

#[test]
fn without_a_trick_each_runner_fails_on_the_same_work() {
    let honest_failure = |name, path, text: &str| Row::new(name, Seen::Failed).file(path, text).bad();
    judge_all(&[
        honest_failure("python", PY, PYTHON),
        honest_failure("javascript", JS, JAVASCRIPT),
        honest_failure("rust", RS, RUST),
        honest_failure("go", GO_FILE, GO),
        honest_failure("ruby", RB, RUBY),
        honest_failure("shell", SH, BATS),
    ]);
}
