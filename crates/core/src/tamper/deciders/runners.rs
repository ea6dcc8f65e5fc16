//! The test files that a runner of tests is given, and what they load: other test files, and settings that the runner finds by itself.

use std::sync::LazyLock;

use regex::Regex;

use super::follow::{DEEPEST, MOST, Walk};
use crate::source::Language;
use crate::tamper::reach::join;
use crate::tamper::watched::is_test_path;

const RUNNERS: [&str; 18] = [
    "pytest",
    "py.test",
    "unittest",
    "nose2",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "rspec",
    "bats",
    "phpunit",
    "prove",
    "minitest",
    "jasmine",
    "busted",
    "pest",
    "shellspec",
];

pub(in crate::tamper) fn is_runner(name: &str) -> bool {
    RUNNERS.contains(&name)
}

impl Walk<'_> {
    /// Test files and folders that a runner of tests is given.
    pub(super) fn runner(&mut self, name: &str, folder: &str, arguments: &[&str]) {
        let is_runner = |word: &&str| RUNNERS.contains(&word.rsplit('/').next().unwrap_or(word));
        let (runner, arguments) = match (name, arguments.first().copied()) {
            ("go" | "deno" | "bun", Some("test")) => (name, &arguments[1..]),
            ("node" | "tsx", _) if arguments.contains(&"--test") => (name, arguments),
            ("cargo", _) => return self.cargo(folder, arguments),
            _ if is_runner(&name) => (name, arguments),
            // `npx jest`, `uv run pytest`, `python -m unittest`.
            ("npx" | "bunx" | "pnpm" | "yarn" | "npm" | "uv" | "poetry" | "pipenv" | "bundle" | "hatch" | "rye", _)
            | ("python" | "python3", Some("-m")) => match arguments.iter().position(is_runner) {
                Some(at) => (arguments[at], &arguments[at + 1..]),
                None => return,
            },
            _ => return,
        };
        for given in arguments.iter().filter(|word| !word.starts_with('-')) {
            // `tests/test_a.py::test_b`, `spec/a_spec.rb:4`, `./pkg/...`.
            let given = given.split("::").next().unwrap_or(given).trim_end_matches("...").trim_end_matches('/');
            let given =
                given.rsplit_once(':').filter(|(_, line)| line.bytes().all(|b| b.is_ascii_digit())).map_or(given, |it| it.0);
            let mut names = vec![given.to_owned()];
            if runner == "unittest" && !given.contains('/') {
                let dots = given.match_indices('.').map(|(at, _)| at).chain([given.len()]);
                names.extend(dots.map(|at| format!("{}.py", given[..at].replace('.', "/"))));
            }
            for name in names {
                if let Some(path) = self.file(folder, &name) {
                    self.settings(runner, folder, &path);
                    if let Some(text) = self.text(&path) {
                        self.loads(&path, &text, 0);
                    }
                }
            }
        }
    }

    /// `cargo test --test greet`.
    fn cargo(&mut self, folder: &str, arguments: &[&str]) {
        if !arguments.iter().any(|word| matches!(*word, "test" | "t" | "nextest")) {
            return;
        }
        let after = |option: &'static str| {
            let pairs = arguments.windows(2).filter(move |pair| pair[0] == option).map(|pair| pair[1]);
            pairs.chain(arguments.iter().filter_map(move |word| word.strip_prefix(option)?.strip_prefix('=')))
        };
        let packages: Vec<&str> = after("-p").chain(after("--package")).collect();
        for test in after("--test") {
            let mut folders = vec![String::new()];
            folders.extend(packages.iter().flat_map(|package| [format!("{package}/"), format!("crates/{package}/")]));
            for place in folders {
                self.file(folder, &format!("{place}tests/{test}.rs"));
                self.file(folder, &format!("{place}tests/{test}"));
            }
        }
    }

    /// Settings that a runner finds by itself, beside a test file or above it.
    fn settings(&mut self, runner: &str, folder: &str, test: &str) {
        let names: &[&str] = match runner {
            // `python -m` looks for it where it is started.
            "unittest" => &["unittest.py", "unittest/__init__.py"],
            "jest" => &["jest.config.js", "jest.config.ts", "jest.config.cjs", "jest.config.mjs", "jest.config.json"],
            "vitest" => &["vitest.config.ts", "vitest.config.js", "vitest.config.mts", "vitest.config.mjs"],
            "mocha" => &[".mocharc.json", ".mocharc.js", ".mocharc.cjs", ".mocharc.yml"],
            "rspec" => &[".rspec"],
            "pytest" | "py.test" => {
                let above = test.match_indices('/').map(|(at, _)| &test[..at]).chain([""]);
                for place in above {
                    self.rival(place, "conftest.py", test);
                }
                for name in ["pyproject.toml", "setup.cfg", "tox.ini"] {
                    self.rival(folder, name, test);
                }
                &["pytest.ini", ".pytest.ini", "pytest.py", "pytest/__init__.py"]
            }
            _ => &[],
        };
        for name in names {
            self.rival(folder, name, test);
        }
    }

    /// Test files and their settings that a test loads.
    pub(super) fn loads(&mut self, path: &str, text: &str, depth: usize) {
        static PYTHON: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*(?:from|import)\s+(\.*[\w.]+)(?:\s+import\s+(\w+))?"));
        static JAVASCRIPT: LazyLock<Regex> =
            LazyLock::new(|| regex(r#"(?:\bfrom|\bimport|\brequire\s*\()\s*['"](\.[^'"]+)['"]"#));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let mut named: Vec<String> = Vec::new();
        match Language::of(path, text) {
            Some(Language::Python) => {
                for found in PYTHON.captures_iter(text).take(MOST) {
                    let module = found[1].trim_start_matches('.').replace('.', "/");
                    let inner = found.get(2).map(|name| format!("{module}/{}", name.as_str()));
                    for module in [Some(module), inner].into_iter().flatten() {
                        let module = module.trim_start_matches('/');
                        named.extend(join(&folder, &format!("{module}.py")));
                        named.extend(join("", &format!("{module}.py")));
                    }
                }
                for module in ["unittest.py", "unittest/__init__.py", "pytest.py", "pytest/__init__.py", "sitecustomize.py"] {
                    self.rival(&folder, module, path);
                }
            }
            Some(Language::JavaScript) => {
                for found in JAVASCRIPT.captures_iter(text).take(MOST) {
                    let kinds = ["", ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx", "/index.js"];
                    named.extend(kinds.iter().filter_map(|kind| join(&folder, &format!("{}{kind}", &found[1]))));
                }
            }
            Some(Language::Rust | Language::Go | Language::Ruby | Language::Shell) | None => {}
        }
        for other in named.into_iter().filter(|other| is_test_path(other) && other != path) {
            if depth + 1 < DEEPEST
                && let Some(text) = self.text(&other)
                && self.found.files.insert(other.clone())
            {
                self.loads(&other, &text, depth + 1);
            }
        }
    }

    pub(super) fn rival(&mut self, folder: &str, name: &str, of: &str) {
        if let Some(path) = join(folder, name) {
            self.found.files.insert(path.clone());
            self.found.rivals.entry(path).or_default().insert(of.to_owned());
        }
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern compiles")
}
