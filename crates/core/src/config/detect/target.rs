//! Make targets and just recipes named `test`, `check` or `lint`.

use super::{ProjectFiles, Proposals};
use crate::check::Stage::{self, Correctness, Quality};

const TARGETS: [(&str, Stage); 3] = [("test", Correctness), ("check", Correctness), ("lint", Quality)];

/// A target, its prerequisites and its commands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    name: String,
    needs: Vec<String>,
    recipe: String,
}

pub(super) fn make(listing: &ProjectFiles, found: &mut Proposals) {
    // The order in which make itself looks for them.
    if let Some(file) = listing.first(&["GNUmakefile", "makefile", "Makefile"]) {
        propose("make", file, &targets(listing.text(file), false), found);
    }
}

pub(super) fn just(listing: &ProjectFiles, found: &mut Proposals) {
    if let Some(file) = listing.first(&["justfile", "Justfile", ".justfile"]) {
        propose("just", file, &targets(listing.text(file), true), found);
    }
}

fn propose(program: &str, file: &str, targets: &[Target], found: &mut Proposals) {
    let wanted: Vec<_> = TARGETS
        .iter()
        .filter_map(|(name, stage)| Some((targets.iter().find(|target| target.name == *name)?, stage.clone())))
        .collect();
    for (target, stage) in &wanted {
        let name = &target.name;
        if let Some((other, _)) = wanted.iter().find(|(other, _)| other.needs.contains(name)) {
            found.note(format!("`{program} {name}` is part of `{program} {}`, so it is not a separate gate.", other.name));
            continue;
        }
        if let Some(command) = found.command_in(&target.recipe) {
            found.note(format!("`{program} {name}` runs `{command}`, which is already proposed."));
            continue;
        }
        let because = format!("Found the {} `{name}` in {file}.", if program == "just" { "recipe" } else { "target" });
        found.propose(name, program, stage.clone(), &format!("{program} {name}"), because);
    }
}

/// Reads rules line by line. Skips everything that is not a plain rule (variables, patterns, conditionals).
fn targets(text: &str, just: bool) -> Vec<Target> {
    let mut out: Vec<Target> = Vec::new();
    let mut open = 0;
    for line in text.lines() {
        if line.starts_with(['\t', ' ']) {
            let first = out.len() - open;
            for target in &mut out[first..] {
                target.recipe.push_str(line.trim());
                target.recipe.push('\n');
            }
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        open = 0;
        let Some((head, tail)) = line.split_once(':') else { continue };
        // Assignments: `name := value`, `name ::= value`. A double-colon rule is a rule.
        if tail.starts_with('=') || tail.starts_with(":=") || head.contains(['=', '$', '%', '"', '\'']) {
            continue;
        }
        let tail = tail.trim_start_matches(':');
        let (needs, inline) = tail.split_once(';').unwrap_or((tail, ""));
        let needs: Vec<String> = needs.split_whitespace().take_while(|word| *word != "#").map(str::to_owned).collect();
        let words: Vec<&str> = head.split_whitespace().collect();
        // A just recipe with parameters cannot be called without them.
        let names: &[&str] = if just && words.len() > 1 { &[] } else { &words };
        for name in names {
            let name = if just { name.trim_start_matches('@') } else { name };
            out.push(Target { name: name.to_owned(), needs: needs.clone(), recipe: inline.trim().to_owned() });
        }
        open = names.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_everything_else_is_passed_over() {
        let makefile = "\
CC := gcc
FLAGS ::= -O2
URL = http://x:80
.PHONY: test lint
# test: not me
all: build test # both
build lint: deps
\tgo build
test:: ; run-tests
%.o: %.c
\t$(CC) $<
ifdef X
endif
$(DIR)/x: y
";
        let read = targets(makefile, false);
        let names: Vec<_> = read.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, [".PHONY", "all", "build", "lint", "test"]);
        assert_eq!(read[1].needs, ["build", "test"]);
        assert_eq!(read[3].recipe, "go build\n");
        assert_eq!(read[4].recipe, "run-tests");
    }

    #[test]
    fn recipes_with_parameters_are_passed_over() {
        let justfile = "set shell := [\"bash\"]\n\n@lint:\n  ruff check\ntest target: build\n  pytest {{target}}\ncheck: lint\n";
        let names: Vec<_> = targets(justfile, true).into_iter().map(|target| target.name).collect();
        assert_eq!(names, ["lint", "check"]);
    }
}
