//! Which changed files are tests: by the conventions of each language, and for Rust by what they say.

/// Who runs a test file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runner {
    /// Test programs of their own.
    Cargo,
    /// Tests inside of the code, by name.
    CargoInline,
    JavaScript,
    Pytest,
    Go,
    Rspec,
    Minitest,
    Bats,
    /// A script whose exit code is its verdict.
    Shell,
}

/// What a file is to the tests of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has tests and nothing else.
    Test(Runner),
    /// Rust code with tests in the same file.
    Mixed,
    /// A module of Rust tests in a file of its own, declared by the code.
    Module,
    /// Tests may need it, and it is no part of the work itself.
    Support,
    /// Anything else.
    Work,
}

/// Folders that hold nothing but tests and what they need.
const TEST_FOLDERS: [&str; 9] =
    ["tests", "test", "__tests__", "spec", "specs", "testdata", "fixtures", "__fixtures__", "__snapshots__"];
const SCRIPTS: [&str; 8] = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"];

/// The role of a file. `text` is asked for only where the path does not tell.
pub fn role(path: &str, text: impl FnOnce() -> Option<String>) -> Role {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folders: Vec<&str> = folders.split('/').filter(|part| !part.is_empty()).collect();
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let in_tests = folders.iter().any(|folder| TEST_FOLDERS.contains(folder));
    let marked = [".test", ".spec"].iter().any(|mark| stem.ends_with(mark));
    match end {
        "rs" => match integration_test(&folders, name) {
            true => Role::Test(Runner::Cargo),
            false if in_tests => Role::Support,
            false if text().is_some_and(|text| has_rust_tests(&text)) => match stem {
                "tests" | "test" => Role::Module,
                _ => Role::Mixed,
            },
            false => Role::Work,
        },
        end if SCRIPTS.contains(&end) && (marked || folders.contains(&"__tests__")) => Role::Test(Runner::JavaScript),
        "py" if name.starts_with("test_") || stem.ends_with("_test") => Role::Test(Runner::Pytest),
        "py" if name == "conftest.py" => Role::Support,
        "go" if stem.ends_with("_test") => Role::Test(Runner::Go),
        "rb" if stem.ends_with("_spec") => Role::Test(Runner::Rspec),
        "rb" if stem.ends_with("_test") => Role::Test(Runner::Minitest),
        "bats" => Role::Test(Runner::Bats),
        "sh" | "bash" if marked => Role::Test(Runner::Shell),
        _ if in_tests => Role::Support,
        _ => Role::Work,
    }
}

/// `tests/name.rs` or `tests/name/main.rs`: a test program of its own. Other files below are parts of one.
fn integration_test(folders: &[&str], name: &str) -> bool {
    match folders {
        [.., "tests"] => true,
        [.., "tests", _] => name == "main.rs",
        _ => false,
    }
}

fn has_rust_tests(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| line.starts_with("#[test]") || line.starts_with("#[cfg(test)]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_the_conventions_of_their_language() {
        let mixed = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n";
        for (path, text, expected) in [
            ("tests/parse.rs", "", Role::Test(Runner::Cargo)),
            ("crates/x/tests/cli/main.rs", "", Role::Test(Runner::Cargo)),
            ("crates/x/tests/cli/world.rs", "", Role::Support),
            ("tests/common/mod.rs", "", Role::Support),
            ("src/lib.rs", mixed, Role::Mixed),
            ("src/lib.rs", "fn f() {}", Role::Work),
            ("src/parser/tests.rs", "#[test]\nfn t() {}", Role::Module),
            ("src/parser/tests.rs", "", Role::Work),
            ("web/a.test.ts", "", Role::Test(Runner::JavaScript)),
            ("web/a.spec.jsx", "", Role::Test(Runner::JavaScript)),
            ("web/__tests__/a.js", "", Role::Test(Runner::JavaScript)),
            ("web/test-utils.js", "", Role::Work),
            ("web/__snapshots__/a.snap", "", Role::Support),
            ("pkg/test_a.py", "", Role::Test(Runner::Pytest)),
            ("pkg/a_test.py", "", Role::Test(Runner::Pytest)),
            ("pkg/conftest.py", "", Role::Support),
            ("pkg/contest.py", "", Role::Work),
            ("pkg/a_test.go", "", Role::Test(Runner::Go)),
            ("spec/a_spec.rb", "", Role::Test(Runner::Rspec)),
            ("test/a_test.rb", "", Role::Test(Runner::Minitest)),
            ("test/a.bats", "", Role::Test(Runner::Bats)),
            ("a.test.sh", "", Role::Test(Runner::Shell)),
            ("scripts/a.spec.bash", "", Role::Test(Runner::Shell)),
            ("scripts/test.sh", "", Role::Work),
            ("tests/fixtures/in.json", "", Role::Support),
            ("latest/in.json", "", Role::Work),
            ("README.md", "#[test]", Role::Work),
        ] {
            assert_eq!(role(path, || Some(text.to_owned())), expected, "{path}");
        }
    }
}
