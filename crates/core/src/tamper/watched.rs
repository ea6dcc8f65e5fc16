//! Files that judge without being tests: continuous integration, settings of linters and runners, lock files,
//! snapshots, the plan, our own folder, git's.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::changed_lines::{ChangedLines, changed_lines};
use super::{Alarm, AlarmKind, Context, File, Severity, coverage, switches};
use crate::source::{Language, Source};

/// Whether a path looks like one of tests, by the conventions of all languages.
pub fn is_test_path(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let folder = |part: &str| {
        matches!(
            part,
            "test"
                | "tests"
                | "__tests__"
                | "spec"
                | "specs"
                | "e2e"
                | "cypress"
                | "__snapshots__"
                | "testing"
                | "integration_tests"
        )
    };
    let stem = name.split('.').next().unwrap_or(name);
    let middle = name.split('.').skip(1).any(|part| matches!(part, "test" | "spec" | "tests" | "bats"));
    let ends = ["_test", "_tests", "_spec", "-test", "-spec", "Test", "Tests", "Spec"].iter().any(|end| stem.ends_with(end));
    let begins = stem == "test" || stem == "tests" || stem.starts_with("test_") || stem.starts_with("test-");
    parts.any(folder) || middle || ends || begins
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watched {
    Ci,
    Lint,
    Lock,
    Snapshot,
    /// Settings of a test runner and of nothing else.
    Runner,
    /// Settings of many things, a runner's among them.
    Mixed,
    BuildScript,
    GitHook,
    Attributes,
    Judge,
}

fn kind_of(path: &str) -> Option<Watched> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = concat!(
            r"(?P<ci>^\.github/workflows/|^\.github/actions/|(?:^|/)\.gitlab-ci[^/]*\.ya?ml$|^\.circleci/|(?:^|/)azure-pipelines[^/]*\.ya?ml$|(?:^|/)Jenkinsfile$|^\.travis\.yml$|^bitbucket-pipelines\.yml$|^\.buildkite/|^\.drone\.ya?ml$|^appveyor\.yml$|^\.woodpecker|^\.ci/)",
            r"|(?P<lint>(?:^|/)(?:\.eslintrc[^/]*|eslint\.config\.\w+|\.eslintignore|biome\.jsonc?|\.prettierrc[^/]*|\.prettierignore|\.?clippy\.toml|\.?rustfmt\.toml|deny\.toml|\.flake8|\.?ruff\.toml|\.?pylintrc|\.?mypy\.ini|pyrightconfig\.json|\.golangci\.\w+|\.rubocop[^/]*\.yml|\.shellcheckrc|\.stylelintrc[^/]*|tslint\.json)$)",
            r"|(?P<lock>(?:^|/)(?:Cargo\.lock|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|Pipfile\.lock|uv\.lock|pdm\.lock|go\.sum|Gemfile\.lock|composer\.lock|flake\.lock)$)",
            r"|(?P<snap>\.snap$|(?:^|/)__snapshots__/|(?:^|/)__image_snapshots__/|\.ambr$|\.approved\.\w+$|\.snap\.new$)",
            r"|(?P<runner>(?:^|/)(?:conftest\.py|sitecustomize\.py|usercustomize\.py|pytest\.ini|jest\.config\.\w+|jest\.setup\.\w+|vitest\.(?:config|workspace)\.\w+|\.mocharc[^/]*|karma\.conf\.\w+|playwright\.config\.\w+|cypress\.config\.\w+|cypress\.json|nextest\.toml|phpunit\.xml[^/]*|\.rspec|\.nycrc[^/]*|\.c8rc[^/]*|\.coveragerc|tarpaulin\.toml|\.simplecov|codecov\.ya?ml|\.cargo/config(?:\.toml)?)$)",
            r"|(?P<mixed>(?:^|/)(?:package\.json|pyproject\.toml|setup\.cfg|tox\.ini|Cargo\.toml|tsconfig[^/]*\.json|vite\.config\.\w+|spec_helper\.rb|rails_helper\.rb|test_helper\.rb|Makefile|noxfile\.py|\.npmrc|\.yarnrc(?:\.yml)?|bunfig\.toml)$)",
            r"|(?P<build>(?:^|/)build\.rs$)",
            r"|(?P<hook>^\.husky/|^\.githooks/|(?:^|/)lefthook\.ya?ml$|(?:^|/)\.pre-commit-config\.yaml$|(?:^|/)\.lintstagedrc[^/]*$|(?:^|/)\.git/hooks/)",
            r"|(?P<attr>(?:^|/)\.gitattributes$)",
            r"|(?P<judge>(?:^|/)\.verdone/)"
        );
        Regex::new(pattern).expect("a fixed pattern compiles")
    });
    let found = NAMES.captures(path)?;
    let table = [
        ("judge", Watched::Judge),
        ("ci", Watched::Ci),
        ("lint", Watched::Lint),
        ("lock", Watched::Lock),
        ("snap", Watched::Snapshot),
        ("runner", Watched::Runner),
        ("mixed", Watched::Mixed),
        ("build", Watched::BuildScript),
        ("hook", Watched::GitHook),
        ("attr", Watched::Attributes),
    ];
    table.into_iter().find(|(name, _)| found.name(name).is_some()).map(|(_, kind)| kind)
}

pub(super) fn files(files: &[File<'_>], context: &Context<'_>) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path).collect();
    let only_snapshots = paths.iter().all(|path| kind_of(path) == Some(Watched::Snapshot));
    let mut snapshots: Vec<&str> = Vec::new();
    for file in files {
        let look = Look::of(file);
        if context.plan.iter().any(|plan| plan == file.path) {
            alarms.push(look.alarm(AlarmKind::PlanEdited, Severity::High, None, ""));
            continue;
        }
        look.gate(&context.gates, &mut alarms);
        look.own_check(context, &mut alarms);
        let kind = kind_of(file.path);
        match kind {
            Some(Watched::Judge) => alarms.push(look.alarm(AlarmKind::JudgeTouched, Severity::High, None, "")),
            Some(Watched::Ci) => alarms.extend(look.ci()),
            Some(Watched::Lint) => alarms.extend(look.lint()),
            Some(Watched::Lock) => alarms.extend(look.lock(&paths)),
            Some(Watched::Snapshot) => snapshots.extend(file.old.is_some().then_some(file.path)),
            Some(Watched::Runner) => alarms.extend(look.runner(true)),
            Some(Watched::Mixed) => alarms.extend(look.runner(false)),
            Some(Watched::BuildScript) => alarms.extend(look.plain(AlarmKind::RunnerChanged)),
            Some(Watched::GitHook) => alarms.extend(look.git_hook()),
            Some(Watched::Attributes) => alarms.extend(look.attributes()),
            None => alarms.extend(look.test_script().or_else(|| look.ends_the_tests())),
        }
        alarms.extend(look.suppressed());
        alarms.extend(look.unmade());
        alarms.extend(look.shadows(context));
        if kind.is_some()
            && let (Some(old), Some(new)) = (&file.old, file.new.as_deref().or(Some("")))
            && let Some(text) = coverage::lowered(old, new)
        {
            alarms.push(look.alarm(AlarmKind::CoverageLowered, Severity::High, None, &text));
        }
    }
    if let Some(first) = snapshots.first() {
        let (severity, why) = if only_snapshots { (Severity::Medium, ", and nothing else changed") } else { (Severity::Low, "") };
        let text = if snapshots.len() == 1 { String::new() } else { format!("{} files", snapshots.len()) };
        let text = format!("{text}{why}").trim_start_matches(", ").to_owned();
        alarms.push(Alarm {
            kind: AlarmKind::SnapshotChanged,
            severity,
            path: (*first).to_owned(),
            line: None,
            text,
            expected: false,
        });
    }
    alarms
}

/// Files that could not be read. One that might hide tests or a gate needs more than a word.
pub(super) fn unread(paths: &[String]) -> Vec<Alarm> {
    let one = |path: &String| {
        let source = Language::of(path, "").is_some() && is_test_path(path);
        let severity = if source || matches!(kind_of(path), Some(Watched::Runner | Watched::Mixed)) {
            Severity::Medium
        } else {
            Severity::Low
        };
        let text = "too large, or no text".to_owned();
        Alarm { kind: AlarmKind::Unread, severity, path: path.clone(), line: None, text, expected: false }
    };
    paths
        .iter()
        .filter(|path| {
            Language::of(path, "").is_some()
                || kind_of(path).is_some_and(|kind| kind != Watched::Lock && kind != Watched::Snapshot)
        })
        .map(one)
        .collect()
}

/// One changed file and its changed lines.
pub(super) struct Look<'a> {
    pub(super) file: &'a File<'a>,
    lines: ChangedLines<'a>,
}

impl<'a> Look<'a> {
    fn of(file: &'a File<'a>) -> Self {
        let lines = changed_lines(file.old.as_deref().unwrap_or_default(), file.new.as_deref().unwrap_or_default());
        Self { file, lines }
    }

    pub(super) fn alarm(&self, kind: AlarmKind, severity: Severity, line: Option<u32>, text: &str) -> Alarm {
        let text = text.trim().chars().take(120).collect();
        Alarm { kind, severity, path: self.file.path.to_owned(), line, text, expected: false }
    }

    pub(super) fn created(&self) -> bool {
        self.file.old.is_none()
    }

    pub(super) fn deleted(&self) -> bool {
        self.file.new.is_none()
    }

    /// Added lines with their numbers, from 1.
    pub(super) fn added(&self) -> impl Iterator<Item = (u32, &'a str)> {
        self.lines.added.iter().map(|(number, line)| (*number, *line))
    }

    /// Lines that say something: neither blank nor comment.
    pub(super) fn speaking(line: &&str) -> bool {
        let line = line.trim();
        !line.is_empty() && (!line.starts_with('#') || line.starts_with("#!")) && !line.starts_with("//")
    }

    fn unchanged(&self) -> bool {
        !self.lines.added.iter().any(|(_, line)| Self::speaking(line)) && !self.lines.removed.iter().any(Self::speaking)
    }

    fn plain(&self, kind: AlarmKind) -> Option<Alarm> {
        (!self.created() && !self.unchanged()).then(|| self.alarm(kind, Severity::Low, None, ""))
    }

    /// The gravest of the added lines, by this rule.
    fn gravest(&self, rule: impl Fn(&str) -> Option<Severity>) -> Option<(Severity, u32, &'a str)> {
        let speaking = self.lines.added.iter().filter(|(_, line)| Self::speaking(line));
        let found = speaking.filter_map(|(number, line)| rule(line).map(|severity| (severity, *number, *line)));
        found.max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)))
    }

    fn defused(&self, kind: AlarmKind) -> Option<Alarm> {
        self.gravest(switches::defuses).map(|(severity, line, text)| self.alarm(kind, severity, Some(line), text))
    }

    fn ci(&self) -> Option<Alarm> {
        if self.created() {
            return None;
        }
        let stays = self.lines.added.iter().any(|(_, line)| switches::is_test_command(line));
        let dropped = self.lines.removed.iter().find(|line| Self::speaking(line) && switches::is_test_command(line));
        self.defused(AlarmKind::CiChanged)
            .or_else(|| self.deleted().then(|| self.alarm(AlarmKind::CiChanged, Severity::Medium, None, "deleted")))
            .or_else(|| {
                let text = dropped.filter(|_| !stays).map(|line| format!("gone: {}", line.trim()))?;
                Some(self.alarm(AlarmKind::CiChanged, Severity::Medium, None, &text))
            })
            .or_else(|| self.plain(AlarmKind::CiChanged))
    }

    fn lint(&self) -> Option<Alarm> {
        if self.created() {
            return None;
        }
        if self.deleted() {
            return Some(self.alarm(AlarmKind::LintChanged, Severity::Medium, None, "deleted"));
        }
        let loosened = self.gravest(|line| switches::loosens(line).then_some(Severity::Medium));
        loosened
            .map(|(severity, line, text)| self.alarm(AlarmKind::LintChanged, severity, Some(line), text))
            .or_else(|| self.plain(AlarmKind::LintChanged))
    }

    fn lock(&self, paths: &BTreeSet<&str>) -> Option<Alarm> {
        const MANIFESTS: [&str; 9] = [
            "Cargo.toml",
            "package.json",
            "pyproject.toml",
            "requirements.txt",
            "Pipfile",
            "go.mod",
            "Gemfile",
            "composer.json",
            "flake.nix",
        ];
        if self.created() {
            return None;
        }
        if self.deleted() {
            return Some(self.alarm(AlarmKind::LockChanged, Severity::Medium, None, "deleted"));
        }
        if paths.iter().any(|path| MANIFESTS.contains(&path.rsplit('/').next().unwrap_or(path))) {
            return Some(self.alarm(AlarmKind::LockChanged, Severity::Low, None, "with its manifest"));
        }
        let hosts = |text: &str| -> BTreeSet<String> {
            static URL: LazyLock<Regex> =
                LazyLock::new(|| Regex::new(r"(?:git\+)?\w+://[^/\s\x22']+").expect("a fixed pattern compiles"));
            URL.find_iter(text).map(|found| found.as_str().to_owned()).collect()
        };
        let known = hosts(self.file.old.as_deref().unwrap_or_default());
        let fresh = hosts(self.file.new.as_deref().unwrap_or_default()).into_iter().find(|host| !known.contains(host));
        Some(match fresh.filter(|_| !known.is_empty()) {
            Some(host) => {
                self.alarm(AlarmKind::LockChanged, Severity::Medium, None, &format!("without its manifest, and from {host}"))
            }
            None => self.alarm(AlarmKind::LockChanged, Severity::Low, None, "without its manifest"),
        })
    }

    /// `own`: the file is about nothing but tests.
    fn runner(&self, own: bool) -> Option<Alarm> {
        let path = self.file.path;
        let deleted = own && self.deleted() && !path.ends_with("conftest.py");
        if deleted {
            return Some(self.alarm(AlarmKind::RunnerChanged, Severity::Medium, None, "deleted"));
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        // Every interpreter loads it before any test.
        if matches!(name, "sitecustomize.py" | "usercustomize.py") && !self.deleted() && !self.unchanged() {
            return Some(self.alarm(AlarmKind::RunnerChanged, Severity::Medium, None, "loaded before every test"));
        }
        let drops = self.gravest(|line| switches::drops_tests(path, line)).filter(|_| own || self.speaks_of_tests(name));
        // A new file of many settings says what it likes; one that is about tests alone may override another.
        if let Some((severity, line, text)) = drops.filter(|_| own || !self.created()) {
            return Some(self.alarm(AlarmKind::RunnerChanged, severity, Some(line), text));
        }
        if (path.contains(".cargo/config") || name.ends_with("rc") || name.starts_with(".yarnrc") || name == "bunfig.toml")
            && let Some((severity, line, text)) = self.gravest(|line| switches::replaces_runner(line).then_some(Severity::Medium))
        {
            return Some(self.alarm(AlarmKind::RunnerChanged, severity, Some(line), text));
        }
        if name.starts_with("tsconfig")
            && !self.created()
            && let Some((severity, line, text)) =
                self.gravest(|line| switches::loosens_compiler(line).then_some(Severity::Medium))
        {
            return Some(self.alarm(AlarmKind::LintChanged, severity, Some(line), text));
        }
        if own && name != "conftest.py" { self.plain(AlarmKind::RunnerChanged) } else { None }
    }

    /// Whether a file of many settings has a part about tests.
    fn speaks_of_tests(&self, name: &str) -> bool {
        let text = self.file.new.as_deref().unwrap_or_default();
        match name {
            "package.json" => {
                text.contains("\"jest\"") || text.contains("\"vitest\"") || text.contains("\"mocha\"") || text.contains("\"ava\"")
            }
            "pyproject.toml" => text.contains("[tool.pytest"),
            "setup.cfg" | "tox.ini" => text.contains("pytest]"),
            "Makefile" | "noxfile.py" => false,
            _ => true,
        }
    }

    fn git_hook(&self) -> Option<Alarm> {
        if self.created() {
            return None;
        }
        let kind = AlarmKind::GitTouched;
        let removed = self.lines.removed.iter().any(Self::speaking);
        self.defused(kind)
            .or_else(|| self.deleted().then(|| self.alarm(kind, Severity::Medium, None, "deleted")))
            .or_else(|| removed.then(|| self.alarm(kind, Severity::Medium, None, "lines of a git hook are gone")))
            .or_else(|| self.plain(kind))
    }

    fn attributes(&self) -> Option<Alarm> {
        let kind = AlarmKind::GitTouched;
        let found = self.gravest(|line| switches::changes_content(line).then_some(Severity::Medium));
        match found {
            Some((severity, line, text)) => Some(self.alarm(kind, severity, Some(line), text)),
            None if self.unchanged() => None,
            None => Some(self.alarm(kind, Severity::Low, None, "")),
        }
    }

    /// A script of tests that is no list of tests: it can still be made to say yes.
    fn test_script(&self) -> Option<Alarm> {
        let is_one = self.file.language == Some(Language::Shell) && is_test_path(self.file.path) && !self.created();
        let text = self.file.new.as_deref().filter(|_| is_one)?;
        // A script that ends so already only says it again.
        let old = self.file.old.as_deref().unwrap_or_default();
        let fresh = |line: &str| switches::defuses(line).filter(|_| !old.contains(line.trim()));
        let found = self.gravest(fresh);
        found
            .filter(|_| !text.is_empty())
            .map(|(severity, line, text)| self.alarm(AlarmKind::TestWeakened, severity, Some(line), text))
    }

    /// A test that ends the run before others can fail.
    fn ends_the_tests(&self) -> Option<Alarm> {
        let text = self.file.new.as_deref().filter(|_| is_test_path(self.file.path))?;
        let language = self.file.language.filter(|language| *language != Language::Shell)?;
        let ends = |line: &str| switches::ends_as_passed(line).then_some(Severity::Medium);
        let (severity, line, _) = self.gravest(ends)?;
        // Strings that speak of it end nothing.
        let code = Source::read(language, text).code();
        let in_code = code.lines().nth(line as usize - 1).is_some_and(switches::ends_as_passed);
        in_code.then(|| self.alarm(AlarmKind::TestWeakened, severity, Some(line), "ends the whole run as passed"))
    }

    /// Lines that linters and compilers are told to leave alone: worth knowing.
    fn suppressed(&self) -> Option<Alarm> {
        let (old, new) = (self.file.old.as_deref()?, self.file.new.as_deref()?);
        self.file.language?;
        let count = |text: &str| text.lines().filter(|line| switches::suppresses(line)).count();
        let (line, text) = self.lines.added.iter().find(|(_, line)| switches::suppresses(line))?;
        (count(new) > count(old)).then(|| self.alarm(AlarmKind::LintChanged, Severity::Low, Some(*line), text))
    }
}
