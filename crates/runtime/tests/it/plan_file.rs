//! Plans on a real disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use verdone_core::base::id::StoryId;
use verdone_core::check::CommandSpec;
use verdone_core::plan::DIALECT;
use verdone_plan::progress::{LoopState, LoopStatus, StoryEntry};
use verdone_plan::{Document, Status};
use verdone_runtime::project::plan_file::{
    FindError, PlanConventions, PlanFile, PlanFileError, PlanLocation, PlanRequest, find, resolve_checks,
};

const PLAN: &str = "# Plan\n\n### US-001: One\n- [x] a\n- [ ] b\n\n### US-002: Two\n- [ ] c\n";
const PRD: &str = "# PRD\n\n### [ ] US-001: One\n\n### [ ] US-002: Two\n";

fn put(root: &Path, name: &str, text: &str) -> PathBuf {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a name inside the root")).expect("a folder");
    fs::write(&path, text).expect("a file");
    path
}

fn get(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).expect("a readable file")
}

fn request(root: &Path) -> PlanRequest {
    PlanRequest { root: root.to_owned(), cwd: root.to_owned(), ..PlanRequest::default() }
}

fn temp() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn open(root: &Path) -> PlanFile {
    PlanFile::open(find(&request(root)).expect("a plan")).expect("a readable plan")
}

fn prd_home() -> TempDir {
    let root = temp();
    put(root.path(), ".ralph/PRD-1/plan.md", PLAN);
    put(root.path(), ".ralph/PRD-1/prd.md", PRD);
    root
}

fn one() -> StoryId {
    StoryId::from("US-001")
}

#[test]
fn the_plan_is_the_one_that_is_named_first() {
    let root = temp();
    let root = root.path();
    put(root, "loops/x/feature_list.json", "[{\"description\": \"a\", \"passes\": false}]");
    put(root, "sub/prd.json", "{\"userStories\": [{\"title\": \"a\", \"passes\": false}]}");
    for name in ["PLAN.md", ".ralph/PRD-2/plan.md", "docs/my.md"] {
        put(root, name, PLAN);
    }
    let base = request(root);
    let named = |path: &str| PlanRequest { named: Some(path.into()), cwd: root.join("docs"), ..base.clone() };
    let table = [
        (named("./my.md"), "docs/my.md", PlanConventions::Plain),
        (named("../sub"), "sub/prd.json", PlanConventions::Plain),
        (
            PlanRequest { prd: Some(2), configured: Some("PLAN.md".into()), ..base.clone() },
            ".ralph/PRD-2/plan.md",
            PlanConventions::Prd,
        ),
        (PlanRequest { configured: Some("docs/my.md".into()), ..base.clone() }, "docs/my.md", PlanConventions::Plain),
        (
            PlanRequest { loop_dir: Some("loops/x".into()), ..base.clone() },
            "loops/x/feature_list.json",
            PlanConventions::RalphLoop,
        ),
    ];
    for (request, path, home) in table {
        let found = find(&request).expect("a plan");
        assert_eq!((found.plan, found.home), (root.join(path), home), "{request:?}");
    }
    let similar = Some(root.join("docs/my.md"));
    assert!(matches!(find(&named("mi.md")), Err(FindError::Missing { similar: found, .. }) if found == similar));
    assert!(matches!(find(&named("none.md")), Err(FindError::Missing { similar: None, .. })));
    assert!(matches!(find(&PlanRequest { prd: Some(7), ..base.clone() }), Err(FindError::Missing { .. })));
    fs::create_dir(root.join("empty")).expect("a folder");
    assert!(matches!(find(&PlanRequest { named: Some("empty".into()), ..base }), Err(FindError::EmptyFolder { .. })));
}

#[test]
fn several_open_plans_are_a_question_and_one_open_among_done_ones_is_the_answer() {
    let root = temp();
    let root = root.path();
    assert!(matches!(find(&request(root)), Err(FindError::Nothing { .. })));
    put(root, ".ralph/PRD-1/plan.md", &PLAN.replace("[ ]", "[x]"));
    put(root, ".ralph/PRD-1/prd.md", PRD);
    put(root, ".ralph/PRD-10/plan.md", PLAN);
    put(root, ".ralph/PRD-x/plan.md", PLAN);
    assert_eq!(find(&request(root)).expect("one is open").plan, root.join(".ralph/PRD-10/plan.md"));
    put(root, ".ralph/PRD-2/plan.md", PLAN);
    let error = find(&request(root)).expect_err("two are open");
    let message = error.to_string().replace(&root.display().to_string(), "");
    assert_eq!(
        message,
        "there are several plans:\n  /.ralph/PRD-1/plan.md (0 open)\n  /.ralph/PRD-2/plan.md (2 open)\n  /.ralph/PRD-10/plan.md (2 open)"
    );
    assert!(error.hints()[0].contains("--prd"));
}

#[test]
fn a_list_is_the_plan_where_there_is_no_other() {
    let root = temp();
    let root = root.path();
    put(root, "TODO.md", "Some prose.\n");
    let error = find(&request(root)).expect_err("prose is no plan");
    for part in ["PLAN.md", "TODO.md", ".ralph/PRD-N/", &root.display().to_string()] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    assert!(error.hints()[0].contains("verdone init") && error.hints()[1].contains("verdone run \"do X\""), "{error:?}");
    put(root, "TODO.md", "- [ ] One\n");
    assert_eq!(find(&request(root)).expect("the list").plan, root.join("TODO.md"));
    put(root, "PLAN.md", PLAN);
    assert_eq!(find(&request(root)).expect("the plan").plan, root.join("PLAN.md"));
}

#[test]
fn a_mark_ticks_plan_and_prd_and_is_taken_back_byte_for_byte() {
    let root = prd_home();
    let root = root.path();
    let mut plan = open(root);
    plan.mark(&one(), Status::Done).expect("a mark");
    assert_eq!(get(root, ".ralph/PRD-1/plan.md"), PLAN.replace("- [ ] b", "- [x] b"));
    assert_eq!(get(root, ".ralph/PRD-1/prd.md"), PRD.replace("[ ] US-001", "[x] US-001"));
    assert!(!plan.refresh().expect("a refresh"));
    assert!(plan.unmark().expect("an undo"));
    assert_eq!(get(root, ".ralph/PRD-1/plan.md"), PLAN);
    assert_eq!(get(root, ".ralph/PRD-1/prd.md"), PRD);
    assert!(!plan.unmark().expect("nothing to undo"));
    assert!(matches!(plan.mark(&StoryId::from("../x"), Status::Done), Err(PlanFileError::NoSuchStory(_))));
    let left: Vec<_> = fs::read_dir(root.join(".ralph/PRD-1")).expect("a folder").collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_users_edit_is_read_and_an_unreadable_one_changes_nothing() {
    let root = temp();
    let root = root.path();
    let path = put(root, "PLAN.md", PLAN);
    let mut plan = open(root);
    assert!(!plan.refresh().expect("no change"));
    put(root, "PLAN.md", &format!("{PLAN}\n### US-003: Three\n- [ ] d\n"));
    assert!(plan.refresh().expect("a change"));
    assert_eq!(plan.plan().stories.len(), 3);
    put(root, "PLAN.md", "nothing");
    assert!(matches!(plan.refresh(), Err(PlanFileError::Plan(_))));
    assert_eq!(plan.plan().stories.len(), 3);
    fs::remove_file(&path).expect("a removal");
    assert!(matches!(plan.refresh(), Err(PlanFileError::Read { .. })));
}

#[test]
fn an_edit_of_the_same_length_right_after_a_write_is_seen() {
    let root = temp();
    let root = root.path();
    put(root, "PLAN.md", PLAN);
    let mut plan = open(root);
    plan.mark(&one(), Status::Done).expect("a mark");
    put(root, "PLAN.md", &plan.document().text().replace("- [ ] c", "- [x] c"));
    assert!(plan.refresh().expect("a change"));
    assert!(plan.plan().stories.iter().all(|story| story.status == Status::Done));
}

#[test]
fn the_files_of_a_plan_are_named_also_where_they_are_not_there_yet() {
    let root = prd_home();
    let root = root.path();
    let names: Vec<_> =
        open(root).protected_paths().iter().map(|path| path.strip_prefix(root).expect("inside").display().to_string()).collect();
    assert_eq!(names, [".ralph/PRD-1/plan.md", ".ralph/PRD-1/prd.md", ".ralph/PRD-1/progress.md"]);
}

#[test]
fn a_linked_plan_is_written_where_it_is_and_the_mode_stays() {
    let root = temp();
    let root = root.path();
    let real = put(root, "notes/real.md", PLAN);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).expect("a mode");
    symlink("notes/real.md", root.join("PLAN.md")).expect("a link");
    let mut plan = open(root);
    plan.mark(&one(), Status::Done).expect("a mark");
    assert!(fs::symlink_metadata(root.join("PLAN.md")).expect("a link").is_symlink());
    assert_eq!(fs::metadata(&real).expect("a file").mode() & 0o777, 0o600);
    assert_eq!(get(root, "notes/real.md"), PLAN.replace("- [ ] b", "- [x] b"));
}

#[test]
fn files_that_are_no_plans_are_refused_without_waiting_for_them() {
    let root = temp();
    let root = root.path();
    let large = root.join("large.md");
    fs::File::create(&large).and_then(|file| file.set_len(65 * 1024 * 1024)).expect("a sparse file");
    assert!(matches!(PlanFile::open(PlanLocation::new(large)), Err(PlanFileError::TooLarge { .. })));
    let device = PlanLocation::new("/dev/zero".into());
    assert!(matches!(PlanFile::open(device), Err(PlanFileError::NotAFile { .. })));
    assert!(matches!(PlanFile::open(PlanLocation::new(root.to_owned())), Err(PlanFileError::NotAFile { .. })));
}

#[test]
fn a_failed_write_leaves_memory_and_plan_as_they_were() {
    let root = prd_home();
    let root = root.path();
    let mut plan = open(root);
    fs::remove_file(root.join(".ralph/PRD-1/prd.md")).expect("a removal");
    fs::create_dir_all(root.join(".ralph/PRD-1/prd.md/full")).expect("a folder in the way");
    assert!(matches!(plan.mark(&one(), Status::Done), Err(PlanFileError::Write { .. })));
    assert_eq!(plan.document().text(), PLAN);
    assert_eq!(get(root, ".ralph/PRD-1/plan.md"), PLAN);
}

#[test]
fn progress_entries_go_to_the_prd_folder_or_to_the_path_that_was_asked_for() {
    let entry = StoryEntry {
        at: "2026-11-15 02:30".to_owned(),
        story: one(),
        title: "One".to_owned(),
        thread: None,
        run: "r1".to_owned(),
        run_log: None,
        commit: Some("abc1234".to_owned()),
        verification: vec![("make".to_owned(), true)],
    };
    let root = prd_home();
    let root = root.path();
    let mut plan = open(root);
    plan.record_story(&entry).expect("an entry");
    plan.record_story(&entry).expect("an entry");
    assert_eq!(get(root, ".ralph/PRD-1/progress.md"), format!("{0}\n{0}", entry.text()));
    let elsewhere = PlanRequest { progress_path: Some("log/progress.md".into()), ..request(root) };
    let mut plan = PlanFile::open(find(&elsewhere).expect("a plan")).expect("a readable plan");
    plan.record_story(&entry).expect("an entry");
    assert_eq!(get(root, "log/progress.md"), entry.text());
    let bare = temp();
    put(bare.path(), "PLAN.md", PLAN);
    let mut plan = open(bare.path());
    plan.record_story(&entry).expect("nothing to do");
    plan.record_status(&LoopStatus { iteration: 1, state: LoopState::InProgress }).expect("nothing to do");
    assert_eq!(fs::read_dir(bare.path()).expect("a folder").count(), 1);
}

#[test]
fn a_ralph_loop_has_its_prompt_and_its_status() {
    let root = temp();
    let root = root.path();
    let home = ".claude/data/ralph-loops/shop";
    put(root, &format!("{home}/feature_list.json"), "{\"features\": [{\"id\": 1, \"description\": \"a\", \"passes\": false}]}\n");
    put(root, &format!("{home}/RALPH_PROMPT.md"), "Be kind.\n");
    put(root, &format!("{home}/progress.txt"), "# Progress\n- Iteration: 0\n- Max Iterations: 15\n- Status: UNKNOWN\n\nnotes\n");
    let mut plan = open(root);
    assert_eq!(plan.context(), Some("Be kind.\n"));
    assert_eq!(plan.max_iterations(), Some(15));
    plan.mark(&StoryId::from("1"), Status::Done).expect("a mark");
    assert!(get(root, &format!("{home}/feature_list.json")).contains("\"passes\": true}"));
    let state = LoopState::ReachedLimit { remaining: vec![StoryId::from("1")] };
    plan.record_status(&LoopStatus { iteration: 3, state }).expect("a status");
    assert_eq!(
        get(root, &format!("{home}/progress.txt")),
        "# Progress\n- Iteration: 3\n- Max Iterations: 15\n- Status: REACHED_LIMIT\n- Remaining: 1\n\nnotes\n"
    );
}

#[test]
fn a_companion_that_is_no_plan_is_protected_but_not_ticked() {
    let root = prd_home();
    let root = root.path();
    put(root, ".ralph/PRD-1/prd.md", "Only prose.\n");
    let mut plan = open(root);
    plan.mark(&one(), Status::Done).expect("a mark");
    assert_eq!(get(root, ".ralph/PRD-1/prd.md"), "Only prose.\n");
}

#[test]
fn plain_lines_become_checks_when_their_program_exists() {
    let text = "- [ ] A1: a\n  - Verification:\n    - `make quick`\n    - A=1 make slow\n    - frobnicate slow\n";
    let document = Document::parse("p.md", text.as_bytes(), &DIALECT).expect("a plan");
    let checks = resolve_checks(&document.plan().stories[0], |program| program == "make");
    assert_eq!(checks, [CommandSpec::Shell("make quick".to_owned()), CommandSpec::Shell("A=1 make slow".to_owned())]);
}
