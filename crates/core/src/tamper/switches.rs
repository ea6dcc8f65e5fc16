//! Lines that switch something off: in what gates run, in settings of runners and linters, in continuous integration.

use std::sync::LazyLock;

use regex::Regex;

use super::Severity;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern compiles")
}

/// What a line does to a command that judges: it cannot fail any more, or it looks at less.
pub(super) fn defuses(line: &str) -> Option<Severity> {
    static CANNOT_FAIL: LazyLock<Regex> = LazyLock::new(|| {
        regex(concat!(
            r"\|\|\s*(?:true\b|:(?:\s|$|\x22)|exit\s+0\b|echo\b|/bin/true)|;\s*(?:true|:)\s*[\x22']?,?\s*$|\bset\s+\+e\b|\bset\s+\+o\s+errexit\b|\bexit\s+0\b",
            r"|--passWithNoTests\b|--pass-with-no-tests\b|--exit-zero\b|-DskipTests|-Dmaven\.test\.skip|--collect-only\b|--listTests\b|--no-run\b",
            r"|continue-on-error:\s*true|allow_failure:\s*true|\bif:\s*(?:\$\{\{\s*)?false\b|^\s*\.IGNORE\b|^\t-\s*\w",
            // A makefile whose lines go to nobody, or whose failures do not count.
            r"|^\s*(?:export\s+)?SHELL\s*[:?]?=\s*\S*\b(?:true|echo)\b|\bMAKEFLAGS\s*[:+?]?=.*(?:\s-?-?(?:ignore-errors|just-print)\b|-\w*[ikn]\b)"
        ))
    });
    static LOOKS_AT_LESS: LazyLock<Regex> = LazyLock::new(|| {
        regex(concat!(
            r"--deselect\b|--ignore(?:=|\s)|--ignore-glob\b|-k\s+[\x22']?not\b|-m\s+[\x22']not\b|--skip\b|--exclude\b|--testPathIgnorePatterns\b",
            r"|--ignore-pattern\b|--max-warnings[= ][1-9]|--quiet-warnings\b|\bSKIP="
        ))
    });
    if CANNOT_FAIL.is_match(line) {
        Some(Severity::High)
    } else if LOOKS_AT_LESS.is_match(line) {
        Some(Severity::Medium)
    } else {
        None
    }
}

/// A command that does nothing.
pub(super) fn is_idle(command: &str) -> bool {
    let command = command.trim();
    matches!(command, "" | "true" | ":" | "exit 0" | "/bin/true")
        || (command.starts_with("echo ") && !command.contains(['&', ';', '|']))
}

/// What makes a shell script stop at a failure.
pub(super) fn stops_at_failure(line: &str) -> bool {
    static STOPS: LazyLock<Regex> =
        LazyLock::new(|| regex(r"\bset\s+-(?:[a-z]*e[a-z]*\b|o\s+(?:errexit|pipefail))|^#!.*\s-\w*e"));
    STOPS.is_match(line)
}

pub(super) fn is_test_command(line: &str) -> bool {
    static TESTS: LazyLock<Regex> = LazyLock::new(|| {
        regex(concat!(
            r"\bcargo\s+(?:\+\S+\s+)?(?:test|nextest|clippy|fmt)\b|\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?[\w:-]*(?:test|lint|check)|\bpytest\b|\bgo\s+(?:test|vet)\b",
            r"|\brspec\b|\bmake\s+[\w-]*(?:test|check|lint)|\b(?:jest|vitest|mocha|tox|nox|bats|rubocop|eslint|ruff|mypy|tsc|golangci-lint)\b|\bscripts?/\w*(?:test|check)"
        ))
    });
    TESTS.is_match(line)
}

/// What a line does to the choice of tests that run.
pub(super) fn drops_tests(path: &str, line: &str) -> Option<Severity> {
    static NONE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"passWithNoTests\W+true|--passWithNoTests\b|--collect-only\b|\s--co(?:\s|$)|^\s*(?:autotests|test)\s*=\s*false|__test__\s*=\s*False|\ballow_no_tests\W+true",
        )
    });
    static FEWER: LazyLock<Regex> = LazyLock::new(|| {
        regex(concat!(
            r"testPathIgnorePatterns|modulePathIgnorePatterns|\btestRegex\b|\btestMatch\b|testIgnore\b|\bexclude\b|\bignore\b\s*[:=]|\bgrep\w*\s*:",
            r"|norecursedirs|collect_ignore|--ignore(?:=|-glob|\s)|--deselect|-k\s+[\x22']?not|-m\s+[\x22']?not|python_(?:files|functions|classes)\s*=|testpaths\s*=",
            r"|default-filter|filter_run_excluding|filter_run\b|--exclude-pattern|--tag\s+~|\btestNamePattern\b|\b(?:runner|testRunner)[\x22']?\s*:|\bspec\w*\s*:\s*\[?\s*[\x22']"
        ))
    });
    static CONFTEST: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\bcollect_ignore|\bpytest_(?:ignore_collect|collection_modifyitems|runtest_\w+|pyfunc_call|sessionfinish|report_teststatus|collect_file|pycollect_\w+)\b|\bos\._exit\b|\bsys\.exit\b|\bpytest\.exit\b|exitstatus\s*=",
        )
    });
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "conftest.py" {
        return CONFTEST.is_match(line).then_some(Severity::Medium);
    }
    if NONE.is_match(line) {
        return Some(Severity::High);
    }
    if matches!(name, "Cargo.toml") || name.starts_with("tsconfig") {
        return None;
    }
    FEWER.is_match(line).then_some(Severity::Medium)
}

/// What a line does to a linter's or a compiler's rules.
pub(super) fn loosens(line: &str) -> bool {
    static LOOSENS: LazyLock<Regex> = LazyLock::new(|| {
        regex(concat!(
            r#"["']off["']|:\s*off\b|:\s*\[?\s*0\s*[,\]]?\s*,?\s*$|\b(?:per-file-)?ignores?\b|\bignore_\w+|\bignorePatterns\b|\bdisabled?\b|\ballow\b|Enabled:\s*false"#,
            r#"|\bexclude\w*\b|["']warn["']|\bskip\b|--extend-ignore|max-(?:line-length|complexity)|-threshold\s*=|\b(?:strict|noImplicit\w*|noUnused\w*|checkJs)["']?\s*[:=]\s*[Ff]alse"#
        ))
    });
    LOOSENS.is_match(line)
}

/// A compiler's strictness, turned off.
pub(super) fn loosens_compiler(line: &str) -> bool {
    static OFF: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"["'](?:strict\w*|noImplicit\w*|noUnused\w*|noEmitOnError|checkJs|noFallthrough\w*)["']\s*:\s*false"#)
    });
    OFF.is_match(line)
}

/// A setting that runs something else in place of tests or the compiler.
pub(super) fn replaces_runner(line: &str) -> bool {
    static REPLACES: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^\s*(?:runner|rustc-wrapper|rustc|rustdoc|rustc-workspace-wrapper|script-shell|node-options|ignore-scripts)\s*[:=]|^\s*shell\s*=",
        )
    });
    REPLACES.is_match(line)
}

/// A comment or attribute that takes lines out of what a linter, a compiler or the measure of coverage looks at.
pub(super) fn suppresses(line: &str) -> bool {
    static SUPPRESSES: LazyLock<Regex> = LazyLock::new(|| {
        regex(concat!(
            r"\beslint-disable|@ts-(?:ignore|nocheck|expect-error)\b|\bbiome-ignore\b|#\s*noqa\b|#\s*type:\s*ignore|\bpylint:\s*disable|#\s*mypy:\s*ignore",
            r"|//\s*nolint\b|\brubocop:disable|\bshellcheck\s+disable|#!?\[(?:allow|expect)\(|\bpragma:\s*no\s*cover|\b(?:istanbul|c8|v8)\s+ignore|\bcoverage\(off\)|:nocov:"
        ))
    });
    SUPPRESSES.is_match(line)
}

/// Code of a test that ends the whole run, and says that all is well.
pub(super) fn ends_as_passed(line: &str) -> bool {
    static ENDS: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\bos\.Exit\(0\)|\bprocess\.exit\(0?\)|\bprocess\.exitCode\s*=\s*0|\bsys\.exit\(0?\)|\bos\._exit\(0\)|\bprocess::exit\(0\)|^\s*exit!?\s*(?:\(?0\)?|$)|\bat_exit\b",
        )
    });
    ENDS.is_match(line)
}

/// Attributes that change what git sees or checks out.
pub(super) fn changes_content(line: &str) -> bool {
    static CHANGES: LazyLock<Regex> = LazyLock::new(|| regex(r"\s(?:filter|working-tree-encoding)="));
    CHANGES.is_match(line)
}
