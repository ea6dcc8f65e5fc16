use super::*;

fn protection(settings: &ProtectSettings) -> Protection {
    Protection::new(settings, &Ecosystem::ALL, "").unwrap()
}

fn list(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
}

#[test]
fn every_default_pattern_can_be_read() {
    for ecosystem in Ecosystem::ALL {
        let Protection { .. } = Protection::new(&ProtectSettings::default(), &[ecosystem], "").unwrap();
        let defaults = ecosystem.defaults();
        for pattern in [defaults.tests, defaults.configuration, defaults.work, CI, AUTORUN].concat() {
            verdone_text::pattern::check(pattern).unwrap();
        }
    }
}

#[test]
fn tests_and_their_configuration_are_protected_by_default() {
    let protection = protection(&ProtectSettings::default());
    for path in [
        "tests/test_calc.py",
        "tests/oracle.py",
        "tests/__init__.py",
        "acceptance/util.py",
        "pkg/test_a.py",
        "pkg/a_test.py",
        "conftest.py",
        "a/conftest.py",
        ".pytest.ini",
        "pytest.ini",
        "tox.ini",
        "setup.cfg",
        "noxfile.py",
        ".coveragerc",
        "ruff.toml",
        "mypy.ini",
        ".flake8",
        "pyrightconfig.json",
        "src/a.test.js",
        "src/a.spec.tsx",
        "src/__tests__/a.js",
        "__mocks__/fs.js",
        "src/__snapshots__/a.snap",
        "jest.config.js",
        "jest-matchers.js",
        "vitest.config.mjs",
        ".mocharc.yml",
        "karma.conf.js",
        "playwright.config.ts",
        "cypress.config.ts",
        "babel.config.js",
        ".babelrc",
        ".eslintrc.json",
        "eslint.config.mjs",
        ".prettierrc",
        "tsconfig.json",
        "tsconfig.build.json",
        "vite.config.ts",
        ".npmrc",
        "crates/a/tests/x.rs",
        "benches/b.rs",
        ".cargo/config.toml",
        "clippy.toml",
        ".rustfmt.toml",
        "build.rs",
        "rust-toolchain.toml",
        "src/tests.rs",
        "a/calc_test.go",
        "a/testdata/x",
        "Makefile",
        "GNUmakefile",
        "makefile",
        "local.mk",
        "justfile",
        "test/CMakeLists.txt",
        "t/basic.t",
        "x.bats",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "Jenkinsfile",
        ".circleci/config.yml",
        ".pre-commit-config.yaml",
        ".editorconfig",
        "src/test/java/ATest.java",
        "pom.xml",
        "build.gradle.kts",
        "spec/a_spec.rb",
        "Rakefile",
        ".rspec",
        "phpunit.xml.dist",
        "src/ATest.php",
        "A.Tests/A.Tests.csproj",
        "mix.exs",
        "test/a_test.exs",
        "scripts/test.sh",
        "check.sh",
        ".verdone/config.toml",
        ".gitattributes",
        "tests",
        "tests/fixtures/package.json",
        "pkg/pytest.ini",
    ] {
        assert_eq!(protection.classify(path, false).role, Role::Protected, "{path}");
    }
    for path in [
        "src/lib.rs",
        "calc.py",
        "src/contest.py",
        "src/latest.js",
        "Cargo.lock",
        "package-lock.json",
        "yarn.lock",
        "poetry.lock",
        "uv.lock",
        "go.sum",
        "go.mod",
        "Gemfile.lock",
        "composer.lock",
        "README.md",
        "docs/testing.md",
        "src/Commit.java",
        "src/Latest.php",
        "src/app.config.ts",
        "app/tasks.py",
        "CMakeLists.txt",
        "requirements.txt",
        "src/features/a.ts",
    ] {
        assert_eq!(protection.classify(path, false).role, Role::Work, "{path}");
    }
    for path in ["package.json", "crates/a/Cargo.toml", "pyproject.toml"] {
        assert!(matches!(protection.classify(path, true).role, Role::Split(_)), "{path}");
    }
}

#[test]
fn a_new_file_of_unknown_purpose_at_the_root_is_protected() {
    let protection = protection(&ProtectSettings::default());
    for (path, is_new, role) in [
        ("pluggy.py", true, Role::Protected),
        ("pluggy.py", false, Role::Work),
        ("util.py", true, Role::Work),
        ("pytest_mock.py", true, Role::Protected),
        ("unknown.xyz", true, Role::Protected),
        ("pkg/util.py", true, Role::Work),
        ("pluggy/__init__.py", true, Role::Protected),
        ("src/typing.py", true, Role::Protected),
        ("src/app/typing.py", true, Role::Work),
        ("billing/__init__.py", true, Role::Work),
        ("CONTRIBUTING.md", true, Role::Work),
        ("app.js", true, Role::Work),
        ("main.go", true, Role::Work),
        ("Cargo.lock", true, Role::Work),
    ] {
        assert_eq!(protection.classify(path, is_new).role, role, "{path}");
    }
    assert_eq!(protection.classify("x", true).why, ProtectionReason::NewAtRoot);
}

#[test]
fn settings_decide_before_conventions() {
    let settings = ProtectSettings {
        files: list(&["checks/*.sh", "oracle", "golden/"]),
        work: list(&["tests/generated/**", "oracle", "fixtures"]),
        autorun: list(&["tasks/**"]),
        ..ProtectSettings::default()
    };
    let protection = protection(&settings);
    for (path, is_new, role) in [
        ("checks/a.sh", false, Role::Protected),
        ("checks/helper.awk", false, Role::Work),
        ("checks/helper.awk", true, Role::Protected),
        ("checks/deep/helper.awk", true, Role::Work),
        ("oracle/a", false, Role::Protected),
        ("golden/a", false, Role::Protected),
        ("tests/generated/test_a.py", false, Role::Work),
        ("tests/test_a.py", false, Role::Protected),
        ("fixtures/a.json", false, Role::Work),
        ("tasks/a", false, Role::Protected),
    ] {
        assert_eq!(protection.classify(path, is_new).role, role, "{path}");
    }
    let class = protection.classify("checks/a.sh", false);
    assert_eq!(class.why.to_string(), "`checks/*.sh` in [protect] files");
    assert_eq!(protection.classify("tasks/a", false).autorun.as_deref(), Some("tasks/**"));
}

#[test]
fn files_that_run_later_are_named() {
    let protection = protection(&ProtectSettings::default());
    for path in [
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".envrc",
        ".husky/pre-commit",
        ".githooks/x",
        ".github/workflows/a.yml",
        ".devcontainer/devcontainer.json",
        ".idea/x.xml",
        "Jenkinsfile",
        ".mcp.json",
        "sub/.vscode/settings.json",
        ".claude",
    ] {
        let class = protection.classify(path, true);
        assert!(class.autorun.is_some() && class.role == Role::Protected, "{path}");
    }
    for path in [".gitattributes", ".gitmodules", "Makefile", "CLAUDE.md", "src/a.rs"] {
        assert_eq!(protection.classify(path, false).autorun, None, "{path}");
    }
}

#[test]
fn a_scope_releases_what_it_names_and_not_what_happens_to_be_inside() {
    let settings = ProtectSettings { release: list(&["**/*.snap"]), ..ProtectSettings::default() };
    let protection = protection(&settings);
    for (scope, path, released) in [
        ("tests", "tests/test_a.py", true),
        ("tests/test_a.py", "tests/test_a.py", true),
        ("tests/test_a.py", "tests/test_b.py", false),
        ("src", "src/a.test.js", false),
        ("src/a.test.js", "src/a.test.js", true),
        ("src/**/*.test.js", "src/deep/a.test.js", true),
        ("{tests,src}/**", "tests/a.py", true),
        (".", "tests/test_a.py", false),
        ("**", "tests/test_a.py", false),
        ("pytest.ini", "pytest.ini", true),
        (".github", ".github/workflows/a.yml", true),
        ("*.toml", "ruff.toml", false),
        ("src", "src/a.snap", true),
    ] {
        let found = protection.with_scope(&[scope.to_owned()]).released(path);
        assert_eq!(found.is_some(), released, "{scope} {path}");
    }
    assert_eq!(protection.released("a/b.snap"), Some(Release::Setting { pattern: "**/*.snap".to_owned() }));
}

#[test]
fn a_project_below_the_top_of_the_tree_has_a_root_of_its_own() {
    let settings = ProtectSettings { files: list(&["checks/**"]), ..ProtectSettings::default() };
    let protection = Protection::new(&settings, &Ecosystem::ALL, "apps/[id]").unwrap();
    for (path, role) in [
        ("apps/[id]/checks/a", Role::Protected),
        ("checks/a", Role::Work),
        ("apps/[id]/new.xyz", Role::Protected),
        ("new.xyz", Role::Protected),
        ("apps/new.xyz", Role::Work),
        ("apps/[id]/pluggy.py", Role::Protected),
    ] {
        assert_eq!(protection.classify(path, true).role, role, "{path}");
    }
    let scoped = protection.with_scope(&["checks".to_owned()]);
    assert!(scoped.released("apps/[id]/checks/a").is_some());
}

#[test]
fn ecosystems_are_found_by_their_files() {
    assert_eq!(Ecosystem::present([]), [Ecosystem::Any]);
    assert_eq!(
        Ecosystem::present(["a/b.py", "Makefile", "x/Cargo.toml"]),
        [Ecosystem::Any, Ecosystem::Python, Ecosystem::Rust, Ecosystem::Make]
    );
}

#[test]
fn a_new_file_that_takes_the_place_of_a_module_of_the_language_is_protected() {
    let ecosystems = [Ecosystem::Python, Ecosystem::Perl, Ecosystem::Ruby];
    let protection = Protection::new(&ProtectSettings::default(), &ecosystems, "").unwrap();
    for (path, module) in [
        ("unittest.py", Some("unittest")),
        ("src/pytest/__init__.py", Some("pytest")),
        ("lib/Test/More.pm", Some("Test/")),
        ("lib/strict.pm", Some("strict")),
        ("lib/minitest/autorun.rb", Some("minitest/")),
        ("lib/set.rb", Some("set")),
        ("shop/json/__init__.py", None),
        ("lib/Calc.pm", None),
        ("lib/File/Shop.pm", None),
        ("lib/shop/set.rb", None),
        ("json.pm", None),
        ("tools/python", Some("python")),
        ("tools/python.py", None),
    ] {
        let class = protection.classify(path, true);
        let found = if let ProtectionReason::Shadows { module } = class.why { Some(module) } else { None };
        assert_eq!(found.as_deref(), module, "{path}");
    }
    // The project's own file of that name existed before.
    assert_eq!(protection.classify("lib/Test/More.pm", false).role, Role::Work);
}
