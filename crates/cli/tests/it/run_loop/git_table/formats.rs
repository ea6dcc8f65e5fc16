//! Unusual repositories.

use super::{SHORT, assert_refused};
use crate::run_loop::world::{HONEST, ONE, Settings, World, always};

/// A repository created with these options, with everything committed.
fn made_with(options: &[&str], script: &str) -> World {
    let world = World::folder(script, &SHORT);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write("README.md", "# A project\n");
    world.git(&[&["init", "--quiet"], options].concat());
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "-m", "initial"]);
    world
}

/// A story that passes, its undo, and a story that fails, with all of the agent's work kept.
#[track_caller]
fn assert_works(options: &[&str]) {
    let world = made_with(options, HONEST);
    let base = world.head();
    world.run(0);
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"]);
    assert!(world.git(&["notes", "--ref=verdone", "show", "HEAD"]).contains("\"proof\": \"verified\""));
    world.assert_clean();
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.git(&["rev-parse", "HEAD^{tree}"]), world.git(&["rev-parse", &format!("{base}^{{tree}}")]));
    world.assert_clean();

    let steps =
        "{ create = \"x\" }, { delete = \"README.md\" }, { run = \"git add x; git branch other; git commit --quiet -m own\" }";
    let world = made_with(options, &always(steps));
    let base = world.head();
    world.run(4);
    assert_eq!(world.git(&["branch", "--list", "other"]), "", "the agent's refs are its own");
    assert_eq!(world.head(), base);
    assert!(world.tree_files(&world.kept()).contains(&"x".to_owned()));
    world.assert_clean();
}

#[test]
fn ids_of_sha256_work() {
    assert_works(&["--object-format=sha256"]);
}

#[test]
fn refs_in_tables_work_where_git_knows_them() {
    let world = World::folder(HONEST, &Settings::default());
    let version = world.git(&["--version"]);
    let mut numbers = version.split([' ', '.']).filter_map(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) >= (Some(2), Some(45)) {
        assert_works(&["--ref-format=reftable"]);
        let world = made_with(&["--ref-format=reftable"], HONEST);
        world.git(&["switch", "--quiet", "--create", "side"]);
        world.git(&["commit", "--quiet", "--allow-empty", "-m", "side"]);
        world.git(&["switch", "--quiet", "main"]);
        world.git(&["merge", "--quiet", "--no-ff", "--no-commit", "side"]);
        let output = world.run(0);
        assert!(output.stdout.contains("Not landed: cannot land: a merge is in progress"), "{}", output.stdout);
        world.git(&["merge", "--abort"]);
        world.verdone(&["land"]).assert_code(0);
        assert_eq!(world.subjects()[0], "feat(US-001): Write a");
    } else {
        assert_unreadable("refStorage");
    }
}

#[test]
fn a_format_that_this_git_does_not_know_is_refused_with_a_hint() {
    assert_unreadable("somethingNew");
}

#[track_caller]
fn assert_unreadable(extension: &str) {
    let world = World::new(ONE, HONEST);
    world.git(&["config", "core.repositoryFormatVersion", "1"]);
    world.git(&["config", &format!("extensions.{extension}"), "x"]);
    let message = format!("git cannot read this repository: unknown repository extension found: {}", extension.to_lowercase());
    assert_refused(&world.verdone(&["run"]), &message, "install a newer git");
}

#[test]
fn names_that_differ_only_in_case_do_not_reach_the_checkout_of_a_failed_story() {
    let world = World::with(ONE, &always("{ create = \"readme.MD\", text = \"x\" }, { create = \"Dir/B\" }"), &SHORT);
    world.git(&["config", "core.ignoreCase", "true"]);
    world.run(4);
    assert_eq!(world.sandbox.read("README.md"), "# A project\n");
    assert!(!world.has("Dir"));
    world.assert_clean();
}

#[test]
fn files_outside_a_sparse_checkout_stay_in_commits_and_out_of_the_work_tree() {
    for (script, code) in [(HONEST.to_owned(), 0), (always("{ create = \"x\" }, { delete = \"in/file\" }"), 4)] {
        let world = World::folder(&script, &SHORT);
        world.sandbox.write("PLAN.md", ONE);
        world.sandbox.write("in/file", "in\n");
        world.sandbox.write("out/file", "out\n");
        world.sandbox.repo();
        world.git(&["sparse-checkout", "set", "in", ".verdone"]);
        assert!(!world.has("out/file"));
        world.run(code);
        assert_eq!(world.git(&["show", "HEAD:out/file"]), "out");
        assert_eq!(world.sandbox.read("in/file"), "in\n");
        assert!(!world.has("out"), "{code}");
        world.assert_clean();
        if code == 0 {
            world.verdone(&["undo"]).assert_code(0);
            assert!(!world.has("out") && !world.has("a"), "after the undo");
            assert_eq!(world.git(&["show", "HEAD:out/file"]), "out");
        }
    }
}

fn filtered(script: &str) -> World {
    let world = World::folder(script, &SHORT);
    world.sandbox.write("PLAN.md", ONE);
    world.sandbox.write(".gitattributes", "*.big filter=store\n");
    world.sandbox.write("clean.big", "content\n");
    world.git(&["init", "--quiet"]);
    for (key, value) in [("clean", "tr a-z A-Z"), ("smudge", "tr A-Z a-z"), ("required", "true")] {
        world.git(&["config", &format!("filter.store.{key}"), value]);
    }
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "-m", "initial"]);
    world
}

#[test]
fn filters_of_the_user_are_respected_both_ways() {
    let world = filtered(&always("{ create = \"a\" }, { create = \"new.big\", text = \"new\\n\" }"));
    world.sandbox.write("mine.big", "Raw And Mixed\n");
    world.run(0);
    assert_eq!(world.git(&["show", "HEAD:new.big"]), "NEW");
    assert_eq!(world.sandbox.read("new.big"), "new\n");

    let world = filtered(&always("{ create = \"clean.big\", text = \"agent\" }, { create = \"mine.big\", text = \"agent\" }"));
    world.sandbox.write("mine.big", "Raw And Mixed\n");
    world.run(4);
    assert_eq!(world.sandbox.read("clean.big"), "content\n", "written by the filter");
    assert_eq!(world.sandbox.read("mine.big"), "Raw And Mixed\n", "kept as it was, byte for byte");
    assert_eq!(world.git(&["status", "--porcelain"]), "?? mine.big");
}

#[test]
fn a_required_filter_without_its_program_is_named_at_the_start() {
    let world = filtered(HONEST);
    world.git(&["config", "filter.store.process", "no-such-store filter-process"]);
    world.git(&["config", "filter.store.clean", "no-such-store clean -- %f"]);
    assert_refused(
        &world.verdone(&["run"]),
        "files here need the filter \"store\", but no-such-store is not installed",
        "install no-such-store",
    );
    world.git(&["config", "--unset", "filter.store.process"]);
    world.git(&["config", "filter.store.clean", "tr a-z A-Z"]);
    world.run(0);

    let world = World::new(ONE, HONEST);
    world.git(&["config", "filter.unused.clean", "no-such-store"]);
    world.git(&["config", "filter.unused.required", "true"]);
    world.run(0);
}
