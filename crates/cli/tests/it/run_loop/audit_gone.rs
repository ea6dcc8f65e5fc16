//! Story commits that are gone, and Verdone's other commits.

use serde_json::Value;

use crate::run_loop::audit::{audit, flat, problems, shell, two_stories};
use crate::run_loop::world::{HONEST, ONE, Settings, TWO, World, text};

#[test]
fn a_story_commit_that_is_gone_is_missing_where_its_journal_is_here() {
    let world = two_stories();
    let head = world.head();
    let table: [(&str, &str, &str, &[&str]); 4] = [
        (
            "reset, and the run's branch has it",
            "git reset --quiet --hard HEAD~1",
            "but on another branch or tag",
            &["US-002 commit_missing"],
        ),
        (
            "all of them",
            "git reset --quiet --hard HEAD~2",
            "2 stories are missing",
            &["US-001 commit_missing", "US-002 commit_missing"],
        ),
        (
            "amended with other files",
            "echo more > a; git commit --quiet --all --amend -m 'my own words'",
            "that commit is not in this history",
            &["US-002 commit_missing"],
        ),
        // Last, because it is not undone.
        (
            "reset, and the run's branch deleted",
            "git reset --quiet --hard HEAD~1; git for-each-ref --format='%(refname)' refs/heads/verdone | xargs -n1 git update-ref -d",
            "that commit is not in this history 1 of 2 stories passed the audit",
            &["US-002 commit_missing"],
        ),
    ];
    for (name, damage, words, kinds) in table {
        shell(&world, damage);
        assert_eq!(problems(&world, 1), kinds, "{name}");
        let told = flat(&audit(&world, &[], 1)).to_lowercase();
        assert!(told.contains("missing: it was committed as"), "{name}: {told}");
        assert!(told.contains(words), "{name}: {told}");
        assert!(audit(&world, &["--markdown"], 1).stdout.contains("| missing |"), "{name}");
        world.git(&["reset", "--quiet", "--hard", &head]);
    }
    // They are accounted for if another branch has them.
    world.git(&["checkout", "--quiet", "-b", "other", "HEAD~2"]);
    let told = flat(&audit(&world, &[], 4));
    assert!(told.contains("2 stories from local runs are on other branches."), "{told}");
}

#[test]
fn squashed_stories_are_found_by_the_files_of_the_last_one() {
    let world = two_stories();
    let head = world.head();
    for (name, squash, stories) in [
        ("amended with other words", "git commit --quiet --amend -m 'my own words'", &["US-002"][..]),
        ("amended with its trailers", "git commit --quiet --amend --no-edit --date=2001-01-01T00:00:00Z", &["US-002"]),
        ("squashed", "git reset --quiet --soft HEAD~2; git commit --quiet -m 'both'", &["US-001", "US-002"]),
        (
            "squashed by a merge",
            "git checkout --quiet --detach HEAD~2; git merge --quiet --squash main; git commit --quiet -m 'both'",
            &["US-001", "US-002"],
        ),
    ] {
        shell(&world, squash);
        for journal in [true, false] {
            let runs = (world.sandbox.path(".verdone/runs"), world.sandbox.root().join("tmp/runs"));
            if !journal {
                std::fs::rename(&runs.0, &runs.1).unwrap();
            }
            let found: Value = serde_json::from_str(&audit(&world, &["--json"], 0).stdout).unwrap();
            let mut told: Vec<(String, String)> =
                found["squashed"].as_array().unwrap().iter().map(|one| (text(&one["story"]), text(&one["into"]))).collect();
            told.sort();
            let expected: Vec<(String, String)> = stories.iter().map(|story| ((*story).to_owned(), world.head())).collect();
            assert_eq!(told, expected, "{name}, journal {journal}");
            assert!(flat(&audit(&world, &[], 0)).contains("Squashed into"), "{name}");
            assert!(audit(&world, &["--markdown"], 0).stdout.contains("| squashed into "), "{name}");
            if !journal {
                std::fs::rename(&runs.1, &runs.0).unwrap();
            }
        }
        for range in ["HEAD", "HEAD~1..HEAD"] {
            let found: Value = serde_json::from_str(&audit(&world, &["--json", range], 0).stdout).unwrap();
            assert_eq!(text(&found["squashed"][0]["into"]), world.head(), "{name}, {range}");
        }
        world.git(&["checkout", "--quiet", "main"]);
        world.git(&["reset", "--quiet", "--hard", &head]);
    }
}

#[test]
fn a_range_misses_only_what_it_should_hold() {
    let world = two_stories();
    shell(&world, "echo more > a; git commit --quiet --all --amend -m 'my own words'");
    for range in ["HEAD~1..HEAD", "HEAD~2.."] {
        let found: Value = serde_json::from_str(&audit(&world, &["--json", range], 1).stdout).unwrap();
        assert_eq!(text(&found["missing"][0]["story"]), "US-002", "{range}");
    }
    audit(&world, &["HEAD~2..HEAD~1"], 0);
    audit(&world, &["HEAD~1"], 0);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "later"]);
    audit(&world, &["HEAD~1..HEAD"], 4);
    audit(&world, &["HEAD..HEAD"], 4);
}

#[test]
fn what_verdone_took_back_is_not_missing() {
    let world = two_stories();
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.subjects()[..2], ["revert: US-002", "feat(US-002): Write b"]);
    assert_eq!(problems(&world, 0), Vec::<String>::new());
    world.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
    assert_eq!(problems(&world, 0), Vec::<String>::new(), "whoever undoes a story may also remove its commit");
    world.run(0);
    assert_eq!(problems(&world, 0), Vec::<String>::new(), "it was done again");
}

#[test]
fn without_any_evidence_there_is_nothing_to_audit() {
    let world = World::new(ONE, HONEST);
    assert!(audit(&world, &[], 4).stdout.contains("No story's commit is in this range."));
    audit(&world, &["--rerun"], 4);
}

#[test]
fn commits_that_only_record_marks_and_progress_are_verdones_own() {
    let breaking = "[[turn]]\nstory = \"US-001\"\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n\
                    [[turn]]\nstory = \"US-002\"\nsteps = [{ create = \"b\", text = \"two\\n\" }, { run = \"rm -f a\" }]\n";
    let world = World::new(TWO, breaking);
    world.run(0);
    assert!(world.subjects().contains(&"chore: reopen a broken story".to_owned()));
    let told = flat(&audit(&world, &[], 0));
    assert!(told.contains("1 commit in between only records marks and progress."), "{told}");
    assert!(!told.contains("not Verdone's"), "{told}");

    shell(&world, "echo evil > a; git commit --quiet --all -m 'chore: record progress' -m 'Verdone-Run: 20260101-000000-0000'");
    assert_eq!(problems(&world, 1), ["? not_bookkeeping"]);
    assert!(flat(&audit(&world, &[], 1)).contains("changes more than the plan's marks and progress files: a"));
    // The mark of a story that nothing broke, together with a weaker check.
    world.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    shell(
        &world,
        "sed -i 's/test -f a/true/' PLAN.md; git commit --quiet --all -m 'chore: x' -m 'Verdone-Run: 20260101-000000-0000'",
    );
    assert_eq!(problems(&world, 1), ["? not_bookkeeping"]);
    // Only a tick, for a story that was never worked on.
    world.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    shell(
        &world,
        "printf '\\n### US-003: C\\n\\n- [ ] Write c\\n  - Verification: `test -f c`\\n' >> PLAN.md; git commit --quiet --all -m more; \
         sed -i 's/\\[ \\]/[x]/' PLAN.md; git commit --quiet --all -m 'chore: record progress' -m 'Verdone-Run: 20260101-000000-0000'",
    );
    assert_eq!(problems(&world, 1), ["? marked_without_evidence"]);
    assert!(flat(&audit(&world, &[], 1)).contains("it marks US-003 as done"));
}

#[test]
fn a_commit_that_records_progress_is_verdones_own_and_goes_with_its_story() {
    let world = World::folder(HONEST, &Settings::default());
    world.sandbox.write(".ralph/PRD-1/plan.md", TWO);
    world.sandbox.write(".ralph/PRD-1/progress.md", "# Progress Log\n");
    world.sandbox.repo();
    world.run_with(&["--prd", "1"], 0);
    assert_eq!(world.subjects()[0], "chore: record progress");
    let told = flat(&audit(&world, &[], 0));
    assert!(told.contains("1 commit in between only records marks and progress."), "{told}");
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(problems(&world, 0), Vec::<String>::new());
}
