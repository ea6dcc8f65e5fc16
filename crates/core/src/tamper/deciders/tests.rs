use super::*;

fn held(files: &[(&str, &str)]) -> HeldFiles {
    files.iter().map(|(path, text)| ((*path).to_owned(), Some(Held::Text((*text).to_owned())))).collect()
}

/// What is put back where every one of these files was changed, and `new` ones came.
fn back(command: &str, files: &[(&str, &str)], new: &[&str], scope: &[&str]) -> Vec<String> {
    let held = held(files);
    let found = deciders(&[command.to_owned()], "", &held);
    let old = files.iter().map(|(path, text)| Touched { path, existed: true, old: Some(text), new: Some("changed") });
    let new = new.iter().map(|path| Touched { path, existed: false, old: None, new: Some("new") });
    let scope: Vec<String> = scope.iter().map(|path| (*path).to_owned()).collect();
    let mut paths: Vec<String> = found
        .put_back(&old.chain(new).collect::<Vec<_>>(), &held, &|path| expects_change(&scope, path))
        .into_iter()
        .map(|back| back.path)
        .collect();
    paths.sort();
    paths
}

#[test]
fn what_a_check_runs_by_its_exit_code_decides_it() {
    for (command, files, decides) in [
        ("sh own.sh", &["own.sh", "greet"][..], &["own.sh"][..]),
        ("sh -eu own.sh --fast", &["own.sh"], &["own.sh"]),
        ("./own.sh", &["own.sh"], &["own.sh"]),
        ("bash -c 'sh own.sh'", &["own.sh"], &["own.sh"]),
        ("timeout 5 sh own.sh && true", &["own.sh"], &["own.sh"]),
        ("env A=1 bash own.sh", &["own.sh"], &["own.sh"]),
        ("sh < own.sh", &["own.sh"], &["own.sh"]),
        ("cd sub && ./own.sh", &["sub/own.sh", "own.sh"], &["sub/own.sh"]),
        ("tests/greet", &["tests/greet"], &["tests/greet"]),
        ("python3 -W error own.py", &["own.py"], &["own.py"]),
        ("node --require ./setup.js own.js", &["own.js", "setup.js"], &["own.js", "setup.js"]),
        (". ./lib.sh && true", &["lib.sh"], &["lib.sh"]),
        ("just own", &["justfile"], &["justfile"]),
        ("sh tests/gr*", &["tests/greet", "greet"], &["tests/greet"]),
        ("for t in tests/g*; do sh $t || exit 1; done", &["tests/greet", "src/greet"], &["tests/greet"]),
        ("cat tests/greet | sh", &["tests/greet"], &["tests/greet"]),
        ("cat own.sh | bash -s -e", &["own.sh"], &["own.sh"]),
        // What a script reads is data.
        ("cat data.txt | sh own.sh", &["data.txt", "own.sh"], &["own.sh"]),
        ("cat data.txt | sort", &["data.txt"], &[]),
        ("cat data.txt || sh own.sh", &["data.txt", "own.sh"], &["own.sh"]),
        // It only looks at the file.
        ("bash -n own.sh", &["own.sh"], &[]),
        ("node --check own.js", &["own.js"], &[]),
        ("test -f own.sh", &["own.sh"], &[]),
        ("grep -q x tests/test_a.py", &["tests/test_a.py"], &[]),
        // Another command judges what it prints.
        ("./greet | grep -q hello", &["greet"], &[]),
        ("test \"$(sh greet.sh)\" = hello", &["greet.sh"], &[]),
        ("[ `./greet` = hello ]", &["greet"], &[]),
        ("diff <(./greet) tests/expected.txt", &["greet", "tests/expected.txt"], &["tests/expected.txt"]),
        ("./greet | diff - expected.txt", &["greet", "expected.txt"], &["expected.txt"]),
        ("./greet || exit 1", &["greet"], &["greet"]),
        ("scripts/check.sh | tail -1 | grep -q ok", &["scripts/check.sh"], &["scripts/check.sh"]),
    ] {
        let files: Vec<(&str, &str)> = files.iter().map(|path| (*path, "#!/bin/sh\ntrue\n")).collect();
        assert_eq!(back(command, &files, &[], &[]), decides, "{command}");
    }
}

#[test]
fn test_files_that_a_runner_is_given_decide_it() {
    for (command, path) in [
        ("pytest -q tests/test_a.py::test_b", "tests/test_a.py"),
        ("python -m pytest tests/test_a.py", "tests/test_a.py"),
        ("python3 -m unittest tests.test_a.TestA.test_b", "tests/test_a.py"),
        ("uv run pytest tests/test_a.py -k b", "tests/test_a.py"),
        ("pytest tests/", "tests/test_a.py"),
        ("npx jest src/a.test.js", "src/a.test.js"),
        ("node --test test/a.js", "test/a.js"),
        ("go test ./pkg/...", "pkg/a_test.go"),
        ("bundle exec rspec spec/a_spec.rb:12", "spec/a_spec.rb"),
        ("bats tests/a.bats", "tests/a.bats"),
        ("cargo test -p greet --test hello", "crates/greet/tests/hello.rs"),
        ("cargo test --test=hello -- --nocapture", "tests/hello.rs"),
    ] {
        assert_eq!(back(command, &[(path, ""), ("src/a.py", "")], &[], &[]), [path], "{command}");
    }
    for command in ["pytest", "cargo test", "go test ./...", "cargo run --test hello", "pytest ."] {
        assert!(
            back(command, &[("tests/hello.rs", ""), ("tests/test_a.py", ""), ("a_test.go", "")], &[], &[]).is_empty(),
            "{command}"
        );
    }
}

#[test]
fn scripts_are_followed_to_what_judges_and_not_to_the_work() {
    let files = [
        ("own.sh", "#!/bin/sh\n. ./lib.sh\n. \"$(dirname \"$0\")/more.sh\"\n./greet\nmake greet\nsh tests/run.sh\nmake check\n"),
        ("lib.sh", "check() { ./greet | grep -q hello; }\n"),
        ("more.sh", "true\n"),
        ("greet", "#!/bin/sh\necho hello\n"),
        ("tests/run.sh", "pytest tests/test_a.py\n"),
        ("tests/test_a.py", "from helpers import right\nimport greet\n"),
        ("tests/helpers.py", ""),
        ("greet.py", ""),
    ];
    let expected = ["lib.sh", "more.sh", "own.sh", "tests/helpers.py", "tests/run.sh", "tests/test_a.py"];
    assert_eq!(back("sh own.sh", &files, &[], &[]), expected);
}

#[test]
fn of_a_makefile_and_a_package_only_the_part_that_is_used_counts() {
    let makefile = "all:\n\tcc a.c\n\nown:\n\t@sh own.sh\n";
    let found = |command: &str| deciders(&[command.to_owned()], "", &held(&[("Makefile", makefile), ("own.sh", "true\n")]));
    let how = |command: &str, new: &str| {
        let touched = Touched { path: "Makefile", existed: true, old: Some(makefile), new: Some(new) };
        found(command).put_back(&[touched], &HeldFiles::new(), &|_| false).into_iter().map(|back| back.how).collect::<Vec<_>>()
    };
    assert_eq!(how("make own", "own:\n\t@true\n"), [How::AsItWas]);
    assert_eq!(how("make own", &format!("{makefile}\nmore:\n\ttrue\n")), []);
    assert_eq!(how("make -s own", &makefile.replace("cc a.c", "cc a.c b.c")), []);
    assert_eq!(how("make && ./a.out | grep -q hello", "all:\n\tcc b.c\n"), [], "it builds what something else judges");
    assert_eq!(how("make", "all:\n\ttrue\n"), [How::AsItWas]);
    assert!(found("make own").files.contains("own.sh"));

    let package = r#"{"scripts": {"own": "node own.js"}, "dependencies": {"a": "1"}}"#;
    let how = |new: &str| {
        let found = deciders(&["npm run own".to_owned()], "", &held(&[("package.json", package)]));
        let touched = Touched { path: "package.json", existed: true, old: Some(package), new: Some(new) };
        assert!(found.files.contains("own.js"));
        found.put_back(&[touched], &HeldFiles::new(), &|_| false).pop().map(|back| back.how)
    };
    assert_eq!(how(r#"{"scripts": {"own": "node own.js", "x": "y"}, "dependencies": {"a": "2"}}"#), None);
    let Some(How::Text(text)) = how(r#"{"scripts": {"own": "true", "preown": "x"}, "dependencies": {"a": "2"}}"#) else {
        panic!("the script was changed");
    };
    let text: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text, serde_json::json!({"scripts": {"own": "node own.js"}, "dependencies": {"a": "2"}}));
    assert_eq!(how("no json"), Some(How::AsItWas));
}

#[test]
fn a_new_file_decides_only_where_it_comes_before_one_that_was_there() {
    let test = [("tests/test_a.py", "def test_a(): assert right()\n")];
    assert_eq!(back("pytest tests/test_a.py", &test, &["conftest.py", "tests/conftest.py", "tests/test_b.py"], &[]).len(), 3);
    let shadows = ["unittest.py", "unittest/__init__.py", "tests/unittest/__init__.py", "greet/unittest.py"];
    assert_eq!(back("python3 -m unittest tests.test_a", &test, &shadows, &[]).len(), 4, "the test, and what python finds first");
    assert_eq!(back("python3 tests/test_a.py", &test, &shadows, &[]), ["tests/test_a.py", "tests/unittest/__init__.py"]);
    assert!(back("pytest tests/test_a.py", &[], &["tests/conftest.py", "tests/test_a.py"], &[]).is_empty());
    let made = |files: &[(&str, &str)], new: &[&str]| back("make own", files, new, &[]);
    assert_eq!(made(&[("Makefile", "own:\n\tsh own.sh\n")], &["GNUmakefile"]), ["GNUmakefile", "Makefile"]);
    assert!(made(&[], &["Makefile", "GNUmakefile"]).is_empty());
    assert_eq!(back("npm test", &[("package.json", "{}")], &[".npmrc"], &[]), [".npmrc"]);
    assert!(back("sh own.sh", &[], &["own.sh", "lib.sh"], &[]).is_empty(), "a check that the story itself writes");
}

#[test]
fn included_makefiles_settings_of_pytest_and_folders_that_are_gone_through_decide() {
    let makefile = [("Makefile", "include own.mk\n-include local.mk\nown:\n\t$(OWN)\n"), ("own.mk", "OWN = sh own.sh\n")];
    assert_eq!(back("make own", &makefile, &["local.mk", "other.mk"], &[]), ["Makefile", "local.mk", "own.mk"]);
    let makefile = [("Makefile", "include *.mk\nown:\n\t$(OWN)\n"), ("own.mk", "OWN = sh own.sh\n")];
    let new = ["b.mk", "sub/b.mk", "b.mk.md"];
    assert_eq!(back("make own", &makefile, &new, &[]), ["Makefile", "b.mk", "own.mk"]);
    let looped =
        [("own.sh", "for test in tests/*.sh; do sh $test || exit 1; done\nfind src\n"), ("tests/a.sh", ""), ("src/a.sh", "")];
    assert_eq!(back("sh own.sh", &looped, &[], &[]), ["own.sh", "tests/a.sh"]);
    let project = |options: &str| format!("[project]\nname = \"a\"\n\n[tool.pytest.ini_options]\n{options}\n\n[tool.x]\ny = 1\n");
    let held = held(&[("tests/test_a.py", "")]);
    let found = deciders(&["pytest tests/test_a.py".to_owned()], "", &held);
    let changed = |old: Option<&str>, new: &str| {
        let touched = Touched { path: "pyproject.toml", existed: old.is_some(), old, new: Some(new) };
        found.put_back(&[touched], &held, &|_| false).pop().map(|back| back.how)
    };
    let before = project("addopts = \"-q\"");
    assert_eq!(changed(Some(&before), &before.replace("name = \"a\"", "name = \"b\"")), None);
    assert_eq!(changed(Some(&before), &project("addopts = \"-q -p fake\"")), Some(How::AsItWas));
    assert_eq!(changed(None, &before), Some(How::Away));
    assert_eq!(changed(None, "[project]\nname = \"a\"\n"), None);
}

#[test]
fn a_link_decides_with_what_it_leads_to() {
    let mut files = held(&[("real/own.sh", "sh tests/deep.sh\n")]);
    files.insert("own.sh".to_owned(), Some(Held::Link("real/own.sh".to_owned())));
    files.insert("round.sh".to_owned(), Some(Held::Link("round.sh".to_owned())));
    let found = deciders(&["sh own.sh; sh round.sh".to_owned()], "", &files);
    assert!(["own.sh", "real/own.sh", "tests/deep.sh", "round.sh"].iter().all(|path| found.files.contains(*path)), "{found:?}");
}

#[test]
fn what_the_scope_names_is_meant_to_change() {
    let files = [("own.sh", "true\n"), ("tests/test_a.py", "")];
    let command = "sh own.sh && pytest tests/test_a.py";
    assert_eq!(back(command, &files, &[], &["src", "."]).len(), 2, "a scope of everything names nothing");
    assert_eq!(back(command, &files, &[], &["own.sh"]), ["tests/test_a.py"]);
    assert_eq!(back(command, &files, &[], &["tests"]), ["own.sh"]);
}

#[test]
fn no_command_panics() {
    for command in [
        "",
        "make -f",
        "sh",
        "python -m",
        "npm run",
        "cargo test --test",
        "$(",
        "`",
        "pytest ../../x ::",
        "make -C / x",
        "node -r",
    ] {
        assert!(back(command, &[("Makefile", "x:\n")], &["GNUmakefile"], &[]).len() <= 2, "{command}");
    }
}
