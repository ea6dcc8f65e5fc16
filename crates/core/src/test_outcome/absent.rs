//! Failing runs that prove nothing: a test, a file, a target or the runner itself that the command names is not there.
//!
//! By the runner's own words alone. A test that is there and cannot be loaded, because what it tests is not written yet, has failed.

use std::sync::LazyLock;

use regex::Regex;

use super::command::{Kind, base_name, classify, names_tests, unwrap, wraps};
use super::failures::cut;
use super::{Framework, lines};

/// What a program says of something that it was given.
struct Saying {
    programs: &'static [&'static str],
    words: Regex,
    thing: Thing,
}

/// What the first group of the words is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thing {
    /// Whatever it is, nobody else says this.
    Any,
    /// It has to be a word of the command.
    Named,
    /// The same, and a test by its name: a missing program of the project may be what has to be written.
    NamedTest,
}

static SAYINGS: LazyLock<Vec<Saying>> = LazyLock::new(|| {
    let all: [(&[&str], &str, Thing); 23] = [
        (&["pytest", "py.test"], r"^ERROR: (?:file or directory not found|file not found|not found): (.+)", Thing::Any),
        (&["pytest", "py.test"], r"^(?:pytest: )?error: (unrecognized arguments: .+)", Thing::Any),
        (&["unittest"], r"^ImportError: Start directory is not importable: (.+)", Thing::Any),
        // Of a test that is there and fails in this way, a failure is counted.
        (&["unittest"], r"^(ModuleNotFoundError: No module named .+|AttributeError: .+ has no attribute .+)", Thing::Any),
        // An import that fails has the place in a file before this.
        (&["go"], r"^no required module provides package (.+?);", Thing::Any),
        (
            &["go"],
            r"^(?:(?:stat|lstat|pattern|package) \S+ |go: )(.*(?:not found|no such file or directory|is not in std|main module|no packages).*)",
            Thing::Any,
        ),
        (&["cargo"], r"^error: no (?:test|bin|example|bench) targets? (?:named|matches pattern) `(.+?)`", Thing::Any),
        (&["cargo"], r"^error: no (library) targets found in package", Thing::Any),
        (&["cargo"], r"^error: package ID specification `(.+?)` did not match any packages", Thing::Any),
        (&["cargo"], r"^error: could not find `(Cargo.toml)` in ", Thing::Any),
        (&["cargo"], r"^error: manifest path `(.+?)` does not exist", Thing::Any),
        (&["jest"], r"^  Directory (.+) in the rootDir option was not found\.", Thing::Named),
        (&["node"], r"^Could not find '(.+)'$", Thing::Any),
        (&["node"], r"^Error: Cannot find module '(.+)'$", Thing::NamedTest),
        (&["python", "python3"], r"^\S*python\S*: can't open file '(.+)': \[Errno 2\]", Thing::NamedTest),
        (
            &["python", "python3"],
            r"^\S*python\S*: (?:No module named|Error while finding module specification for) '?([\w.]+)",
            Thing::Named,
        ),
        (&["perl"], r#"^Can't open perl script "(.+)": No such file or directory"#, Thing::NamedTest),
        (
            &["sh", "dash", "bash"],
            r"^(?:sh|dash|bash): (?:\d+: )?(?:cannot open|can't open) '?(.+?)'?(?:: No such file|$)",
            Thing::NamedTest,
        ),
        (&["prove"], r"^Cannot detect source of '(.+)'!", Thing::Named),
        (&["bats"], r#"(?:Test file |bats: )"?(.+?)"? does not exist"#, Thing::Named),
        (&["phpunit"], r#"^(?:Cannot open|Test) file "(.+?)""#, Thing::Named),
        (&["rspec"], r"^  cannot load such file -- (.+)", Thing::NamedTest),
        (
            &["make", "gmake"],
            r"^g?make: \*\*\* (?:No rule to make target [`'‘](.+?)['’]\.|(.+): No such file or directory\.)  Stop\.",
            Thing::Named,
        ),
    ];
    let more: [(&[&str], &str, Thing); 5] = [
        (&["make", "gmake"], r"^g?make: \*\*\* (No targets specified and no makefile found)\.", Thing::Any),
        (
            &["npm", "pnpm", "yarn"],
            r#"^(?:npm (?:error|ERR!) | ERR_PNPM_NO_SCRIPT  |error )(?:Missing script: |Command )"?([^"\s]+)"#,
            Thing::Named,
        ),
        (&["npm", "npx"], r"^npm (?:error|ERR!) enoent (Could not read package.json)", Thing::Any),
        (&["npx", "jest", "vitest", "mocha"], r"^npm (?:error|ERR!) npx (canceled due to missing packages)", Thing::Any),
        (&["tsc"], r"^error TS(?:6053|5058|5083|18003): (.+)", Thing::Any),
    ];
    let ready = |(programs, words, thing): &(&'static [&'static str], &str, Thing)| Saying {
        programs,
        words: Regex::new(words).expect("a fixed pattern compiles"),
        thing: *thing,
    };
    all.iter().chain(&more).map(ready).collect()
});

/// The line in which the runner of a failed command says that what it was to run is not there.
pub fn absent<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], output: &str) -> Option<String> {
    let words: Vec<Vec<&str>> = commands.iter().map(|command| command.as_ref().iter().map(AsRef::as_ref).collect()).collect();
    let lines = lines::split(output);
    let started: Vec<&str> = words.iter().flat_map(|words| programs(words)).collect();
    let wraps = wraps(&words);
    let is_started =
        |saying: &&Saying| wraps && saying.thing == Thing::Any || saying.programs.iter().any(|program| started.contains(program));
    let sayings: Vec<&Saying> = SAYINGS.iter().filter(is_started).collect();
    let says = |line: &str| {
        sayings.iter().any(|saying| {
            let found = saying.words.captures(line);
            let thing = found.and_then(|found| found.iter().skip(1).flatten().next().map(|thing| thing.as_str().to_owned()));
            thing.is_some_and(|thing| saying.thing.fits(&thing, &words))
        })
    };
    lines.iter().find(|line| says(line)).map(|line| cut(line.trim(), 200))
}

/// Whether an exit code alone says that no test was found: the one that pytest and unittest keep for it.
pub fn is_code_of_no_tests<C: AsRef<[W]>, W: AsRef<str>>(commands: &[C], exit_code: i32) -> bool {
    let last: Vec<&str> = commands.last().map(|words| words.as_ref().iter().map(AsRef::as_ref).collect()).unwrap_or_default();
    exit_code == 5 && matches!(classify(&last), Some(Kind::Direct(Framework::Pytest | Framework::Unittest)))
}

impl Thing {
    fn fits(self, thing: &str, commands: &[Vec<&str>]) -> bool {
        // Runners make paths absolute.
        let is = |word: &str| {
            let word = word.trim_start_matches("./").trim_end_matches('/');
            !word.is_empty() && (thing == word || thing.ends_with(&format!("/{word}")))
        };
        match self {
            Self::Any => true,
            Self::Named => commands.iter().flatten().any(|word| is(word)),
            Self::NamedTest => commands.iter().flatten().any(|word| is(word) && names_tests(word)),
        }
    }
}

/// The program of a command and what it starts by name: `npx jest`, `python -m pytest`.
fn programs<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let inner = unwrap(words);
    let module = inner.iter().position(|word| *word == "-m").and_then(|at| inner.get(at + 1)).copied();
    words.first().into_iter().chain(inner.first()).map(|word| base_name(word)).chain(module).collect()
}
