//! Whether a command runs tests, judging by its words alone, never by its output.

mod package;
mod unwrap;
mod wrapper;

use self::package::package_script;
use super::Framework;

pub(super) use self::unwrap::unwrap;
pub(super) use self::wrapper::{only_shows_text, wraps};

/// The test runs in a list of simple commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) kinds: Vec<Kind>,
    /// The exit code is that of the only test command, because no command comes after it.
    pub(super) exit_is_its_own: bool,
    /// The files, directories and names on the command lines.
    pub(super) targets: Vec<String>,
}

/// How certain it is that a command runs tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The framework itself.
    Direct(Framework),
    /// A command meant to run tests: `npm test`, `make check`, `./run_tests.sh`.
    Runner,
    /// May run tests among other things; only the output can show.
    Loose,
}

impl Ran {
    /// `None` if no command runs tests.
    pub(super) fn from_commands(commands: &[Vec<&str>]) -> Option<Self> {
        let commands = without_wrapped(commands);
        let kinds: Vec<Option<Kind>> = commands.iter().map(|words| classify(words)).collect();
        let exit_is_its_own = kinds.last().is_some_and(Option::is_some)
            && kinds.iter().flatten().count() == 1
            && commands.last().is_none_or(|words| words.first() != Some(&"!") && !words.iter().any(|word| forgives(word)))
            && !commands.iter().any(|words| words.first().is_some_and(|program| asks(program)));
        let direct = commands.iter().zip(&kinds).filter(|(_, kind)| matches!(kind, Some(Kind::Direct(_))));
        let targets = direct.flat_map(|(words, _)| targets(words)).collect();
        let kinds: Vec<Kind> = kinds.into_iter().flatten().collect();
        (!kinds.is_empty()).then_some(Self { kinds, exit_is_its_own, targets })
    }

    pub(super) fn only_loose(&self) -> bool {
        self.kinds.iter().all(|kind| *kind == Kind::Loose)
    }

    pub(super) fn frameworks(&self) -> Vec<Framework> {
        self.kinds
            .iter()
            .filter_map(|kind| match kind {
                Kind::Direct(framework) => Some(*framework),
                Kind::Runner | Kind::Loose => None,
            })
            .collect()
    }
}

/// Programs that answer a question with their exit code: `test -d web && npm test` may end without a test run.
fn asks(program: &str) -> bool {
    matches!(program, "test" | "[" | "[[" | "grep" | "rg" | "cmp" | "diff" | "false" | "which" | "pgrep")
}

/// Options that make a framework exit with 0 even if tests fail.
fn forgives(word: &str) -> bool {
    matches!(word, "-fn" | "--fail-never") || word.starts_with("-Dmaven.test.failure.ignore") && !word.ends_with("=false")
}

/// Parsers list a wrapper and then the wrapped command (`npx jest`, `jest`): that is one command, not two.
fn without_wrapped<'c, 's>(commands: &'c [Vec<&'s str>]) -> Vec<&'c [&'s str]> {
    let mut kept: Vec<&[&str]> = Vec::new();
    for words in commands {
        // `xargs` leaves an empty word as the placeholder for its input.
        let inner = words.strip_suffix(&[""]).unwrap_or(words);
        let wrapped = kept.last().is_some_and(|last| !inner.is_empty() && inner.len() < last.len() && last.ends_with(inner));
        if !wrapped {
            kept.push(words);
        }
    }
    kept
}

/// The words after the runner and its subcommand, without options: `src` in `npx vitest run src --reporter=dot`.
fn targets(words: &[&str]) -> Vec<String> {
    let is_runner = |word: &str| {
        matches!(word, "run" | "test" | "exec" | "unittest" | "discover")
            || !word.contains('/') && by_program(base_name(word), &[]).is_some()
    };
    let start = words.iter().rposition(|word| is_runner(word)).map_or(1, |at| at + 1);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(start) {
        // The word after an option may be its value, unless it is clearly a test or the option never takes a value.
        let bare = ["-q", "-qq", "-v", "-vv", "-x", "-s", "--verbose", "--quiet", "--silent", "--ci"].contains(&words[at - 1]);
        let value = words[at - 1].starts_with('-') && !bare && !words[at - 1].contains('=') && !names_tests(word);
        if !word.is_empty() && !word.starts_with(['-', '+']) && !value {
            found.push((*word).to_owned());
        }
    }
    found
}

/// Classifies one simple command.
pub(super) fn classify(words: &[&str]) -> Option<Kind> {
    let words = unwrap(words);
    let (program, args) = words.split_first()?;
    if args.iter().take_while(|arg| **arg != "--").any(|arg| ASKS.contains(arg)) {
        return None;
    }
    let name = base_name(program);
    by_program(name, args).or_else(|| script(program, name))
}

/// Options that make a test runner print information and run nothing.
const ASKS: [&str; 14] = [
    "--version",
    "--help",
    "--collect-only",
    "--collectonly",
    "--co",
    "--fixtures",
    "--markers",
    "--listTests",
    "--showConfig",
    "--no-run",
    "--list-tests",
    "--list-suites",
    "--setup-plan",
    "--dry-run",
];

fn by_program(name: &str, args: &[&str]) -> Option<Kind> {
    let direct = |framework| Some(Kind::Direct(framework));
    match name {
        "jest" | "react-scripts-test" => direct(Framework::Jest),
        "react-scripts" | "craco" | "razzle" | "vue-cli-service" => {
            args.first().filter(|arg| arg.starts_with("test")).map(|_| Kind::Direct(Framework::Jest))
        }
        "vitest" => match args.first() {
            Some(&("list" | "init")) => None,
            Some(_) | None => direct(Framework::Vitest),
        },
        "mocha" | "_mocha" | "electron-mocha" => direct(Framework::Mocha),
        "ava" => direct(Framework::Ava),
        "tap" | "tape" | "borp" | "prove" | "yath" => direct(Framework::Tap),
        "bats" => direct(Framework::Bats),
        "pytest" | "py.test" | "pytest-3" => direct(Framework::Pytest),
        "nose2" | "nosetests" | "unit2" | "green" | "trial" => direct(Framework::Unittest),
        "rspec" | "parallel_rspec" | "turbo_tests" => direct(Framework::Rspec),
        "phpunit" | "pest" | "paratest" | "phpunit.phar" => direct(Framework::Phpunit),
        "gotestsum" | "richgo" | "gotest" => direct(Framework::Go),
        "cargo-nextest" => direct(Framework::Nextest),
        "node" | "nodejs" | "tsx" | "ts-node" => node(args),
        "deno" => args.first().filter(|arg| **arg == "test").map(|_| Kind::Runner),
        "python" | "python2" | "python3" | "pypy" | "pypy3" | "coverage" => python(args),
        "manage.py" | "django-admin" => args.first().filter(|arg| **arg == "test").map(|_| Kind::Direct(Framework::Unittest)),
        "go" => {
            let listing = args.iter().any(|arg| matches!(*arg, "-list" | "-c" | "-n") || arg.starts_with("-list="));
            (args.iter().find(|arg| !arg.starts_with('-')) == Some(&"test") && !listing).then_some(Kind::Direct(Framework::Go))
        }
        "cargo" => cargo(args),
        "mvn" | "mvnw" | "mvnd" => maven(args),
        "gradle" | "gradlew" => gradle(args),
        "php" => php(args),
        "ruby" | "jruby" | "perl" => interpreted(args),
        "rails" | "spring" => rails(args),
        "rake" => match args.iter().find(|arg| !arg.starts_with('-') && !arg.contains('=')) {
            None => Some(Kind::Loose),
            Some(task) => by_task(task),
        },
        "npm" | "pnpm" | "yarn" | "bun" => package_script(name, args),
        "lerna" | "turbo" | "nx" | "rush" | "wireit" | "moon" | "bazel" | "bazelisk" | "ng" | "lage" | "wsrun"
        | "npm-run-all" | "run-s" | "run-p" => args.iter().find_map(|arg| by_task(arg)),
        "concurrently" => Some(Kind::Loose),
        "make" | "gmake" | "just" | "task" | "composer" | "invoke" | "inv" | "pre-commit" | "mage" | "earthly" | "doit"
        | "poe" | "hatch" | "mise" | "moonrepo" | "sbt" | "mix" | "dotnet" | "swift" | "flutter" | "dart" | "zig" | "stack"
        | "cabal" | "dune" | "lein" | "xcodebuild" | "meson" | "ninja" | "melos" | "rebar3" => build_tool(name, args),
        "tox" | "nox" | "ctest" | "karma" | "jasmine" | "uvu" | "playwright" | "cypress" | "busted" | "shellspec"
        | "minitest" | "kaocha" | "tap-runner" | "wtr" | "web-test-runner" | "testem" | "qunit" | "lab" | "behave" | "robot"
        | "cucumber" => Some(Kind::Runner),
        "docker" | "podman" | "kubectl" | "docker-compose" | "nerdctl" | "ssh" | "vagrant" => {
            (1..args.len().min(40)).filter(|at| !args[*at].starts_with('-')).find_map(|at| inner(&args[at..]))
        }
        "sh" | "bash" | "zsh" | "dash" | "ksh" => shell(args),
        _ => None,
    }
}

/// Classifies a command that runs on another machine; accepts only unmistakable runners.
fn inner(words: &[&str]) -> Option<Kind> {
    let (program, args) = words.split_first()?;
    let name = base_name(program);
    match name {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "node" | "docker" | "make" | "test" | "tests" | "tap" | "task" => {
            (args.first().is_some_and(|arg| arg.starts_with('-')) || name == "make").then(|| by_program(name, args)).flatten()
        }
        _ => {
            let unwrapped = unwrap(words);
            let (program, args) = unwrapped.split_first()?;
            by_program(base_name(program), args)
        }
    }
}

fn node(args: &[&str]) -> Option<Kind> {
    let valued =
        ["--import", "--require", "-r", "--loader", "--experimental-loader", "-C", "--conditions", "--max-old-space-size"];
    let mut at = 0;
    while let Some(option) = args.get(at).filter(|arg| arg.starts_with('-')) {
        if matches!(*option, "--check" | "-c") {
            return None;
        }
        if *option == "--test" || option.starts_with("--test-reporter") {
            return Some(Kind::Direct(Framework::NodeTest));
        }
        at += if valued.contains(option) { 2 } else { 1 };
    }
    args.get(at)?;
    let file = args[at];
    let name = base_name(file);
    let module =
        name.strip_suffix(".js").or_else(|| name.strip_suffix(".mjs")).or_else(|| name.strip_suffix(".cjs")).unwrap_or(name);
    if file.contains("node_modules") {
        let runner = if file.contains("/vitest/") { "vitest" } else { module };
        if let Some(kind) = by_program(runner, &args[at + 1..]).filter(|kind| matches!(kind, Kind::Direct(_))) {
            return Some(kind);
        }
    }
    names_tests(file).then_some(Kind::Runner)
}

fn python(args: &[&str]) -> Option<Kind> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        match *arg {
            "-m" => {
                let module = *args.get(at + 1)?;
                return match module {
                    "pytest" | "py.test" => Some(Kind::Direct(Framework::Pytest)),
                    "unittest" | "nose2" | "nose" | "xmlrunner" | "twisted.trial" | "green" => {
                        Some(Kind::Direct(Framework::Unittest))
                    }
                    "coverage" => python(&args[at + 2..]),
                    "django" => args.get(at + 2).filter(|arg| **arg == "test").map(|_| Kind::Direct(Framework::Unittest)),
                    "tox" | "nox" | "doctest" => Some(Kind::Runner),
                    _ => names_tests(module).then_some(Kind::Runner),
                };
            }
            "-W" | "-X" => at += 2,
            "run" => at += 1,
            "-c" | "report" | "html" | "xml" | "combine" | "erase" => return None,
            option if option.starts_with('-') => at += 1,
            file if base_name(file) == "manage.py" || base_name(file) == "runtests.py" => {
                return (base_name(file) == "runtests.py" || args.get(at + 1) == Some(&"test"))
                    .then_some(Kind::Direct(Framework::Unittest));
            }
            file => return names_tests(file).then_some(Kind::Runner),
        }
    }
    None
}

fn cargo(args: &[&str]) -> Option<Kind> {
    let args = match args.split_first() {
        Some((first, rest)) if first.starts_with('+') => rest,
        _ => args,
    };
    let mut rest = args.iter().enumerate();
    loop {
        let (at, arg) = rest.next()?;
        match *arg {
            "-C" | "--config" | "-Z" | "--color" | "--manifest-path" => {
                rest.next();
            }
            "test" | "t" => {
                let listing = args[at..].iter().skip_while(|arg| **arg != "--").any(|arg| *arg == "--list");
                return (!listing).then_some(Kind::Direct(Framework::CargoTest));
            }
            "nextest" => {
                let run = args[at + 1..].iter().find(|arg| !arg.starts_with('-'));
                return matches!(run, Some(&("run" | "r"))).then_some(Kind::Direct(Framework::Nextest));
            }
            "llvm-cov" | "tarpaulin" | "miri" | "hack" | "xtask" | "make" => {
                let nextest = args.contains(&"nextest");
                let tests =
                    matches!(*arg, "llvm-cov" | "tarpaulin") || args[at..].iter().any(|arg| matches!(*arg, "test" | "nextest"));
                let framework = if nextest { Framework::Nextest } else { Framework::CargoTest };
                return tests.then_some(Kind::Direct(framework));
            }
            option if option.starts_with('-') => {}
            _ => return None,
        }
    }
}

fn maven(args: &[&str]) -> Option<Kind> {
    let goal = |arg: &str| {
        matches!(arg, "test" | "verify" | "install" | "package" | "deploy" | "integration-test")
            || arg.starts_with("surefire:")
            || arg.starts_with("failsafe:")
    };
    let skipped = args
        .iter()
        .any(|arg| matches!(*arg, "-DskipTests" | "-DskipTests=true" | "-Dmaven.test.skip=true" | "-Dmaven.test.skip"));
    let found = args.iter().find(|arg| goal(arg))?;
    if skipped {
        return None;
    }
    let sure = *found == "test" || found.contains(':') || *found == "integration-test";
    Some(if sure { Kind::Direct(Framework::Surefire) } else { Kind::Loose })
}

fn gradle(args: &[&str]) -> Option<Kind> {
    if args.windows(2).any(|pair| pair[0] == "-x" && pair[1].ends_with("test")) {
        return None;
    }
    args.iter().filter(|arg| !arg.starts_with('-')).find_map(|task| {
        let task = task.rsplit(':').next().unwrap_or(task);
        match task {
            "check" | "build" => Some(Kind::Loose),
            _ if task.starts_with("test") || task.ends_with("Test") || task.ends_with("Tests") => {
                Some(Kind::Direct(Framework::Gradle))
            }
            _ => None,
        }
    })
}

fn php(args: &[&str]) -> Option<Kind> {
    let at = args.iter().position(|arg| !arg.starts_with('-'))?;
    match base_name(args[at]) {
        "artisan" => (args.get(at + 1) == Some(&"test")).then_some(Kind::Direct(Framework::Phpunit)),
        name => by_program(name, &args[at + 1..]),
    }
}

fn interpreted(args: &[&str]) -> Option<Kind> {
    let mut skip = false;
    let at = args.iter().position(|arg| {
        let value = std::mem::replace(&mut skip, matches!(*arg, "-I" | "-r" | "-e"));
        !value && !arg.starts_with('-')
    })?;
    if args[..at].iter().any(|arg| matches!(*arg, "-e" | "-c" | "-wc")) {
        return None;
    }
    let name = base_name(args[at]);
    match by_program(name, &args[at + 1..]) {
        Some(kind) => Some(kind),
        None => (names_tests(args[at]) || name.ends_with(".t")).then_some(Kind::Runner),
    }
}

fn rails(args: &[&str]) -> Option<Kind> {
    match args.first()? {
        &"rspec" => Some(Kind::Direct(Framework::Rspec)),
        task if **task == *"test" || task.starts_with("test:") || **task == *"t" => Some(Kind::Direct(Framework::Minitest)),
        task => by_task(task),
    }
}

/// Tools whose target or subcommand decides.
fn build_tool(name: &str, args: &[&str]) -> Option<Kind> {
    if name == "make" || name == "gmake" || name == "ninja" {
        if args.iter().any(|arg| matches!(*arg, "-n" | "--just-print")) {
            return None;
        }
        let mut skip = false;
        let mut found = None;
        let mut targets = 0;
        for arg in args {
            if std::mem::replace(&mut skip, matches!(*arg, "-C" | "-f" | "-j" | "-I" | "--directory")) && !arg.starts_with('-') {
                continue;
            }
            if arg.starts_with('-') || arg.contains('=') {
                continue;
            }
            targets += 1;
            found = found.or_else(|| by_task(arg));
        }
        return found.or((targets == 0).then_some(Kind::Loose));
    }
    args.iter().filter(|arg| !arg.starts_with('-')).take(3).find_map(|arg| by_task(arg))
}

/// Classifies a task, script or target by its name.
fn by_task(task: &str) -> Option<Kind> {
    let mut words = task.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    words.peek()?;
    let mut loose = false;
    for word in words {
        match word.to_ascii_lowercase().as_str() {
            "test" | "tests" | "spec" | "specs" | "unittest" | "unittests" | "testall" | "jest" | "vitest" | "mocha"
            | "pytest" | "rspec" | "phpunit" | "bats" | "e2e" => {
                // `test:lint`, `build-tests` and `install-test-deps` prepare or inspect; they do not test.
                let other = [
                    "lint",
                    "build",
                    "deps",
                    "install",
                    "setup",
                    "fixtures",
                    "data",
                    "compile",
                    "types",
                    "typecheck",
                    "format",
                    "clean",
                ];
                let prepares = task.split(|c: char| !c.is_alphanumeric()).any(|word| other.contains(&word));
                return Some(if prepares { Kind::Loose } else { Kind::Runner });
            }
            "check" | "checks" | "ci" | "verify" | "validate" | "all" | "build" | "prepublish" | "release" | "coverage"
            | "cov" | "precommit" | "quality" | "default" | "qa" => loose = true,
            _ => {}
        }
    }
    loose.then_some(Kind::Loose)
}

/// `./run_tests.sh`, `scripts/test`: a program of the project whose name says that it runs tests.
fn script(program: &str, name: &str) -> Option<Kind> {
    program.contains('/').then_some(())?;
    let system = ["/bin/", "/usr/bin/"].iter().any(|dir| program.starts_with(dir));
    if system {
        return None;
    }
    by_task(name)
}

fn shell(args: &[&str]) -> Option<Kind> {
    let at = args.iter().position(|arg| !arg.starts_with('-') && !arg.starts_with('+'))?;
    let text = args[at];
    if args[..at].contains(&"-n") {
        return None;
    }
    if args[..at].iter().any(|arg| arg.ends_with('c')) {
        // The shell parser opens such text; this is for callers that only have words.
        let parts = text.split(['\n', ';', '&', '|']).take(40);
        return parts.map(|part| part.split_whitespace().collect::<Vec<_>>()).find_map(|words| classify(&words));
    }
    by_task(base_name(text))
}

pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name =
        name.strip_suffix(".exe").or_else(|| name.strip_suffix(".cmd")).or_else(|| name.strip_suffix(".bat")).unwrap_or(name);
    // `python3.12`, and versions given to `npx`: `jest@29`.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    match name.strip_prefix("python3.") {
        Some(minor) if minor.bytes().all(|byte| byte.is_ascii_digit()) => "python3",
        Some(_) | None => name,
    }
}

/// A test file or module by its name: `test_cart.py`, `tests/run.js`, `cart.test.mjs`, `spec/cart_spec.rb`.
pub(super) fn names_tests(path: &str) -> bool {
    let name = base_name(path);
    let own = name.split(['.', '_', '-']).any(|word| matches!(word, "test" | "tests" | "spec" | "specs" | "runtests"));
    own || path.split('/').rev().skip(1).any(|dir| matches!(dir, "test" | "tests" | "__tests__" | "spec" | "t"))
}

#[cfg(test)]
mod tests;
