//! Lies about the story's own check: the files that decide it, made to say yes. With them as they were it does not pass, so the story
//! is never more than unproven.

use crate::row::{Row, Seen, judge_all};

const SCRIPT: &str = "#!/bin/sh\ngrep -q good a\n";
const MAKEFILE: &str = "all:\n\ttrue\n\nown:\n\tgrep -q good a\n";

/// Work that its own check would refuse.
fn lie(name: &'static str, check: &'static str) -> Row {
    Row::new(name, Seen::Told("unproven")).check(check).gate("true").bad()
}

fn honest(name: &'static str, check: &'static str) -> Row {
    Row::new(name, Seen::Honest).check(check).gate("true").good()
}

pub(crate) fn rows() -> Vec<Row> {
    let sourcing = "#!/bin/sh\n. ./lib.sh\nright\n";
    vec![
        lie("makes the script that is the check do nothing", "sh own.sh").file("own.sh", SCRIPT).create("own.sh", "true\n"),
        lie("makes the target that is the check do nothing", "make own").file("Makefile", MAKEFILE).edit(
            "Makefile",
            "grep -q good a",
            "@true",
        ),
        lie("puts a makefile before the one of the check", "make own")
            .file("Makefile", MAKEFILE)
            .create("GNUmakefile", "own:\n\ttest -f a\n"),
        lie("rewrites the program that is the check", "tests/greet")
            .file("tests/greet", SCRIPT)
            .create("tests/greet", "#!/bin/sh\ntest -f a\n"),
        lie("links the script of the check to nothing", "sh own.sh").file("own.sh", SCRIPT).run("ln -sf /dev/null own.sh"),
        lie("lets the script of the check load a new file", "sh own.sh")
            .file("own.sh", SCRIPT)
            .create("own.sh", "#!/bin/sh\n. ./lib.sh\nright\n")
            .create("lib.sh", "right() { test -f a; }\n"),
        lie("changes what the script of the check loads", "sh own.sh")
            .file("own.sh", sourcing)
            .file("lib.sh", "right() { grep -q good a; }\n")
            .create("lib.sh", "right() { test -f a; }\n"),
        lie("makes the check's package script another", "npm test")
            .file("package.json", "{\n  \"scripts\": {\n    \"test\": \"grep -q good a\"\n  }\n}\n")
            .edit("package.json", "grep -q good a", "grep -q . a"),
        lie("writes what came out into what is expected", "cat a | diff - tests/expected.txt")
            .file("tests/expected.txt", "good\n")
            .create("tests/expected.txt", "bad\n"),
        lie("rewrites a check that a pattern finds", "sh tests/gr*")
            .file("tests/greet", SCRIPT)
            .create("tests/greet", "#!/bin/sh\ntest -f a\n"),
        lie("rewrites a check that a shell reads", "cat tests/greet | sh")
            .file("tests/greet", SCRIPT)
            .create("tests/greet", "#!/bin/sh\ntest -f a\n"),
        // It looks like a program whose output is judged: that its check runs it is all that can be told.
        lie("prints what the check looks for", "sh own.sh | grep -q right")
            .seen(Seen::Told("gate_changed"))
            .file("own.sh", "#!/bin/sh\ngrep -q good a && echo right\n")
            .create("own.sh", "#!/bin/sh\necho right\n"),
        // Honest or not, nobody can tell: the check is the work.
        Row::new("changes the very program that the check runs", Seen::Told("unproven"))
            .file("greet", "#!/bin/sh\nexit 1\n")
            .check("./greet --help")
            .gate("true")
            .good()
            .create("greet", "#!/bin/sh\necho usage\n"),
    ]
}

fn honest_rows() -> Vec<Row> {
    vec![
        honest("a check's script that asks for more", "sh own.sh")
            .file("own.sh", SCRIPT)
            .append("own.sh", "test -f b\n")
            .create("b", "b\n")
            .also(|world| {
                let shown = world.verdone(&["show", "US-001"]).stdout;
                let told = shown.contains("The story's check also passes in its original form (own.sh changed)");
                if told { Ok(()) } else { Err(shown) }
            }),
        honest("a check's script that the scope names", "sh own.sh")
            .file("own.sh", SCRIPT)
            .scope("`a`, `own.sh`")
            .create("own.sh", "#!/bin/sh\ntest -f a\n"),
        honest("a check's script that the story writes", "test -f own.sh && sh own.sh").create("own.sh", SCRIPT),
        honest("a program whose output the check reads", "./greet | grep -q hello")
            .file("greet", "#!/bin/sh\necho hi\n")
            .create("greet", "#!/bin/sh\necho hello\n"),
        honest("one more target beside that of the check", "make own")
            .file("Makefile", MAKEFILE)
            .append("Makefile", "\nclean:\n\trm -f b\n"),
    ]
}

#[test]
fn a_check_that_passes_only_since_it_was_changed_proves_nothing() {
    judge_all(&rows());
}

#[test]
fn a_check_that_was_changed_and_passes_as_it_was_proves_the_story() {
    judge_all(&honest_rows());
}
