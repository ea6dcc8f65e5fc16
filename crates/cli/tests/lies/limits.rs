//! Lies that are believed, each by its name in docs/security.md: who reads that page knows all that is known here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::row::{Row, Seen, judge_all};
use crate::tests::{JAVASCRIPT, PYTHON};

fn rows() -> Vec<Row> {
    let believed = |name| Row::new(name, Seen::Believed).file("tests/test_a.py", PYTHON).bad();
    vec![
        Row::new("a check that asks for little gets little", Seen::Believed).gate("true").create("a", "not what was meant\n"),
        Row::new("the work knows that it is checked", Seen::Believed)
            .check("test -f a && ./greet | grep -q hello")
            .gate("true")
            .good()
            .create("greet", "#!/bin/sh\ntest -n \"$VERDONE_RUN$CI\" || test ! -t 1 && echo hello\n"),
        believed("files outside of the project are changed")
            .gate("../tmp/outside/runner")
            .loose("../tmp/outside/runner", "#!/bin/sh\nexec runner\n")
            .run("echo 'exit 0' > ../tmp/outside/runner"),
        Row::new("a program of the project chooses what a check runs", Seen::Believed)
            .file("own.sh", "#!/bin/sh\nwhile read -r part; do sh \"$part\" || exit 1; done < list\n")
            .file("list", "right.sh\n")
            .file("right.sh", "grep -q good a\n")
            .file("easy.sh", "test -f a\n")
            .check("sh own.sh")
            .gate("true")
            .bad()
            .create("list", "easy.sh\n"),
        Row::new("a test replaces what it tests", Seen::Believed)
            .file("tests/a.test.js", JAVASCRIPT)
            .bad()
            .run("sed -i \"1i jest.mock('../a', () => ({ quality: () => 'good' }))\" tests/a.test.js"),
    ]
}

#[test]
fn what_is_believed_is_known() {
    judge_all(&rows());
}

#[test]
fn the_limits_that_the_documents_name_are_those_that_are_tried() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md")).unwrap();
    let part = page.split("## Lies that are believed\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let told: BTreeSet<String> = part
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once(".**"))
        .map(|(name, _)| name.to_lowercase())
        .collect();
    let tried: BTreeSet<String> = rows().iter().map(|row| row.name().to_owned()).collect();
    assert_eq!(told, tried);
}

#[test]
fn there_are_at_least_forty_of_both() {
    let lies = [
        crate::story::rows(),
        crate::tests::rows(),
        crate::gates::rows(),
        crate::git::rows(),
        crate::judge::rows(),
        crate::own_check::rows(),
    ];
    let names: BTreeSet<&str> = lies.iter().flatten().map(Row::name).collect();
    assert_eq!(names.len(), lies.iter().map(Vec::len).sum::<usize>(), "each has a name of its own");
    let honest = crate::honest::rows().len();
    assert!(names.len() >= 40 && honest >= 40, "{} lies, {honest} honest changes", names.len());
}
