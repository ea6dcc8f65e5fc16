//! `--allow-dirty`: the user's changes are out of the way while the run works, and back exactly as they were when it has ended,
//! however it ended; or they are nowhere in the tree, and the user is told how to get them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_testkit::{Output, Running, Signal};

use crate::crashes::wait_for_events;
use crate::signals::{HANGS_ONCE, wait_for_file};
use crate::world::{HONEST, ONE, PATIENCE, Settings, VERDONE, World, always, text};

/// Looks at the tree during the turn, and does what the story wants.
const LOOKS: &str = "{ run = \"git status --porcelain --untracked-files=no > ../tmp/during; cat README.md >> ../tmp/during\" }, { create = \"a\", text = \"one\\n\" }";
const README: &str = "# A project\n\nfirst\nsecond\nthird\nfourth\nfifth\nsixth\nlast\n";

/// A project with files of every kind to change.
fn world(script: &str, settings: &Settings<'_>) -> World {
    let world = World::folder(script, settings);
    let sandbox = &world.sandbox;
    sandbox.write("PLAN.md", ONE);
    sandbox.write("README.md", README);
    sandbox.write(".gitattributes", "*.crlf text eol=crlf\n");
    sandbox.write(".gitignore", "*.log\n");
    for name in ["one.txt", "two.txt", "old.txt", "gone.txt", "folder/x", "odd\n\"name\t", "-dash", "windows.crlf"] {
        sandbox.write(name, format!("{name}\n1\n2\n"));
    }
    sandbox.write_script("run.sh", "#!/bin/sh\n");
    symlink("one.txt", sandbox.path("link")).unwrap();
    sandbox.repo();
    world
}

/// Ways to be dirty, and for each a command that changes one of the same files, and the file's name.
type State = (&'static str, fn(&World), &'static str, &'static str);

const STATES: [State; 6] = [
    ("edited", edited, "echo theirs >> README.md", "README.md"),
    ("staged", staged, "echo theirs >> two.txt", "two.txt"),
    ("added", added, "echo theirs > new.txt; git add -f new.txt", "new.txt"),
    ("removed", removed, "echo theirs >> old.txt", "old.txt"),
    ("swapped", swapped, "echo theirs >> folder/x", "folder/x"),
    ("everything", everything, "git rm -q gone.txt", "gone.txt"),
];

fn edited(world: &World) {
    world.sandbox.write("README.md", README.replace("first", "mine"));
    world.sandbox.write("windows.crlf", "lf\ncrlf\r\nmixed\n");
    world.sandbox.write("odd\n\"name\t", b"not text \xff\0\r\n");
    world.sandbox.write("-dash", "");
}

fn staged(world: &World) {
    world.sandbox.write("one.txt", "staged\n");
    world.sandbox.write("two.txt", "staged half\n");
    world.git(&["add", "one.txt", "two.txt"]);
    world.sandbox.write("two.txt", "staged half\nand more\n");
    fs::set_permissions(world.sandbox.path("two.txt"), fs::Permissions::from_mode(0o600)).unwrap();
}

fn added(world: &World) {
    world.sandbox.write("new.txt", "new\n");
    world.sandbox.write("forced.log", "ignored, added all the same\n");
    world.sandbox.write("new and gone.txt", "x\n");
    world.git(&["add", "--force", "new.txt", "forced.log", "new and gone.txt"]);
    fs::remove_file(world.sandbox.path("new and gone.txt")).unwrap();
    world.sandbox.write("intended.txt", "later\n");
    world.git(&["add", "--intent-to-add", "intended.txt"]);
}

fn removed(world: &World) {
    world.git(&["rm", "--quiet", "gone.txt"]);
    world.git(&["mv", "old.txt", "folder/renamed here.txt"]);
    world.git(&["rm", "--quiet", "--cached", "one.txt"]);
    fs::remove_file(world.sandbox.path("-dash")).unwrap();
}

fn swapped(world: &World) {
    fs::remove_file(world.sandbox.path("link")).unwrap();
    symlink("nowhere", world.sandbox.path("link")).unwrap();
    fs::set_permissions(world.sandbox.path("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(world.sandbox.path("two.txt")).unwrap();
    world.sandbox.write("two.txt/inside", "a folder now\n");
    world.git(&["add", "--all", "two.txt"]);
    fs::remove_dir_all(world.sandbox.path("folder")).unwrap();
    world.sandbox.write("folder", "a file that nobody added\n");
}

fn everything(world: &World) {
    edited(world);
    world.sandbox.write("one.txt", "staged\n");
    world.git(&["add", "one.txt"]);
    world.sandbox.write("one.txt", "staged\nand more\n");
    added(world);
    world.git(&["rm", "--quiet", "gone.txt"]);
    swapped(world);
    world.sandbox.write("mine.txt", "untracked\n");
    world.sandbox.write("out.log", "ignored\n");
}

/// What the story itself changes.
const OF_THE_STORY: [&str; 3] = ["a", "PLAN.md", "half"];

/// Mode and bytes, or a link's target.
type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// What git says, what the index holds and every file, but for what belongs to the story.
fn seen(world: &World) -> (Vec<String>, Vec<String>, Files) {
    let lines = |arguments: &[&str]| -> Vec<String> {
        let of_the_story = |line: &str| OF_THE_STORY.iter().any(|name| line.ends_with(&format!("\t{name}")));
        let output = world.git(arguments);
        output.split('\0').filter(|line| !of_the_story(line)).map(str::to_owned).collect()
    };
    let mut files = Files::new();
    collect(&world.sandbox.work(), &world.sandbox.work(), &mut files);
    files.retain(|path, _| !OF_THE_STORY.iter().any(|name| path == Path::new(name)));
    (lines(&["status", "--porcelain=v2", "-z", "--untracked-files=all"]), lines(&["ls-files", "-s", "-z"]), files)
}

fn collect(top: &Path, dir: &Path, out: &mut Files) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, meta) = (entry.path(), entry.metadata().unwrap());
        let name = path.strip_prefix(top).unwrap().to_owned();
        if name == Path::new(".git") || name == Path::new(".verdone/runs") {
            continue;
        }
        if meta.is_dir() {
            collect(top, &path, out);
        } else if meta.is_symlink() {
            out.insert(name, (0, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
        } else {
            out.insert(name, (meta.permissions().mode(), fs::read(&path).unwrap()));
        }
    }
}

fn run(world: &World, code: i32) -> Output {
    world.run_with(&["--allow-dirty"], code)
}

fn start(world: &World) -> Running {
    world.sandbox.spawn(VERDONE, ["run", "--allow-dirty"])
}

#[test]
fn a_complete_run_works_on_head_and_leaves_the_changes_as_they_were() {
    for (name, dirty, ..) in STATES {
        let world = world(&always(LOOKS), &Settings::default());
        dirty(&world);
        let before = seen(&world);
        let output = run(&world, 0);
        assert_eq!(seen(&world), before, "{name}");
        assert_eq!(world.sandbox.read("../tmp/during"), README, "{name}: nothing of the user's was there during the turn");
        assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na", "{name}");
        assert!(output.stdout.contains("Set aside until the run ends: "), "{name}\n{}", output.stdout);
        assert!(output.stdout.contains("Your changes are back: "), "{name}\n{}", output.stdout);
        assert_eq!(world.git(&["for-each-ref", "refs/stash"]), "", "{name}");
    }
}

#[test]
fn a_failed_run_and_an_interrupted_one_leave_everything_as_it_was() {
    for (name, dirty, ..) in STATES {
        let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
        let failing =
            world(&always("{ create = \"x\" }, { run = \"echo theirs > new.txt; git add -A; git commit -qm mine\" }"), &settings);
        dirty(&failing);
        let before = seen(&failing);
        run(&failing, 4);
        assert_eq!(seen(&failing), before, "{name}, failed");

        let world = world(HANGS_ONCE, &Settings::default());
        dirty(&world);
        let before = seen(&world);
        let running = start(&world);
        running.wait_for("\u{2502} in-the-turn", PATIENCE);
        running.signal(Signal::INT);
        running.wait(PATIENCE).assert_code(130);
        assert_eq!(seen(&world), before, "{name}, interrupted");
        world.sandbox.assert_no_survivors(PATIENCE);
    }
}

#[test]
fn however_a_run_ends_the_changes_come_back() {
    let gate = "[[gate]]\nname = \"no\"\ncommand = \"false\"\n";
    let endings = [
        ("a script ends it", 4, "", "", "started", "exit 2"),
        ("red before any work", 4, "", gate, "started", "exit 0"),
        ("a limit", 3, "max_iterations = 1\nattempts = 3\nturns = 1", "", "started", "exit 0"),
        ("the agent crashes", 1, "crashes = 1", "", "started", "exit 0"),
        ("the script at the end fails", 4, "attempts = 1\nturns = 1", "", "finished", "exit 1"),
    ];
    for (name, code, limits, tables, script, body) in endings {
        let agent = if code == 1 { always("{ crash = 3 }") } else { always("{ create = \"x\" }") };
        let world = world(&agent, &Settings { limits, tables, ..Settings::default() });
        world.sandbox.write_script(format!(".verdone/hooks/{script}"), &format!("#!/bin/sh\n{body}\n"));
        everything(&world);
        let before = seen(&world);
        run(&world, code);
        assert_eq!(seen(&world), before, "{name}");
        assert_eq!(world.all("changes_put_back").len(), 1, "{name}");
    }
}

#[test]
fn an_overlap_leaves_a_clean_tree_and_tells_the_one_command() {
    for (name, dirty, theirs, path) in STATES {
        let world = world(&always(&format!("{{ run = \"{theirs}\" }}, {{ create = \"a\" }}")), &Settings::default());
        dirty(&world);
        let mine = fs::read(world.sandbox.path(path)).ok();
        let output = run(&world, 0);
        let loose = if name == "everything" { "?? mine.txt" } else { "" };
        assert_eq!(world.git(&["status", "--porcelain"]), loose, "{name}");
        let kept = world.last("changes_kept");
        let command = text(&kept["command"]);
        assert!(kept["overlap"].as_array().unwrap().iter().any(|name| name == path), "{name}: {kept}");
        let run = text(&world.events()[0]["run"]);
        let page = world.verdone(&["status"]).stdout + &world.verdone(&["log"]).stdout;
        let report = world.verdone(&["report"]).stdout;
        for said in [&output.stdout, &page, &report] {
            let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains("commits changed the same files: ") && said.contains(&command), "{name}\n{said}");
        }
        assert!(output.stdout.contains(&format!("refs/verdone/{run}")), "{name}\n{}", output.stdout);
        if let Some(mine) = mine {
            let stash = command.rsplit(' ').next().unwrap();
            let kept = world.sandbox.run("git", ["show", &format!("{stash}:{path}")]).stdout;
            assert_eq!(kept.as_bytes(), mine, "{name}");
        }
    }
}

#[test]
fn the_command_that_is_told_brings_the_changes_back() {
    let world = world(
        &always("{ edit = \"README.md\", find = \"last\", replace = \"theirs\" }, { create = \"a\" }"),
        &Settings::default(),
    );
    world.sandbox.write("README.md", README.replace("first", "mine"));
    world.sandbox.write("one.txt", "staged\n");
    world.git(&["add", "one.txt"]);
    run(&world, 0);
    world.assert_clean();
    let command = text(&world.last("changes_kept")["command"]);
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    world.git(&words);
    assert_eq!(world.sandbox.read("README.md"), README.replace("first", "mine").replace("last", "theirs"));
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\nM  one.txt");

    // What is nowhere else is not pruned by accident.
    let pruned = world.verdone(&["prune", "--keep", "0"]);
    assert!(pruned.stdout.contains("keeps uncommitted changes of yours"), "{}", pruned.stdout);
    assert!(!world.git(&["for-each-ref", "refs/verdone"]).is_empty());
}

#[test]
fn what_a_check_left_in_the_place_of_a_file_is_not_replaced() {
    let world = world(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE.replace("test -f a", "test -f a && echo debris > new.txt"));
    world.git(&["commit", "--quiet", "--all", "-m", "plan"]);
    world.sandbox.write("new.txt", "mine\n");
    world.git(&["add", "new.txt"]);
    let output = run(&world, 0);
    assert!(output.stdout.contains("something else is in their place: new.txt"), "{}", output.stdout);
    assert_eq!(world.sandbox.read("new.txt"), "debris\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "?? new.txt");
}

#[test]
fn on_another_branch_the_changes_do_not_come_back() {
    let world = world(HONEST, &Settings::default());
    world.sandbox.write_script(".verdone/hooks/finished", "#!/bin/sh\ngit switch -q -c elsewhere\n");
    world.sandbox.write("one.txt", "mine\n");
    let output = run(&world, 0);
    assert!(output.stdout.contains("the branch was moved meanwhile: HEAD went from main to elsewhere"), "{}", output.stdout);
    assert_eq!(world.git(&["status", "--porcelain", "--untracked-files=no"]), "");
}

#[test]
fn the_plan_and_the_settings_stay_in_the_tree() {
    let world = world(HONEST, &Settings::default());
    world.sandbox.write("PLAN.md", ONE.replace("Write a", "Write the a"));
    let config = world.sandbox.read(".verdone/config.toml") + "# edited\n";
    world.sandbox.write(".verdone/config.toml", &config);
    world.sandbox.write("one.txt", "mine\n");
    run(&world, 0);
    assert_eq!(world.subjects()[0], "feat(US-001): Write the a");
    assert_eq!(world.last("changes_set_aside")["files"], serde_json::json!(["one.txt"]));
    assert_eq!(world.sandbox.read(".verdone/config.toml"), config);
    assert_eq!(world.git(&["status", "--porcelain"]), " M .verdone/config.toml\n M one.txt");
}

#[test]
fn a_clean_tree_sets_nothing_aside() {
    let world = world(HONEST, &Settings::default());
    world.sandbox.write("mine.txt", "untracked");
    run(&world, 0);
    assert!(world.all("changes_set_aside").is_empty() && world.all("put_back_started").is_empty());
}

#[test]
fn before_the_first_commit_what_is_staged_comes_back() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    for (script, code) in [(HONEST.to_owned(), 0), (always("{ create = \"x\" }, { commit = \"mine\" }"), 4)] {
        let world = World::folder(&script, &settings);
        world.sandbox.write("PLAN.md", ONE);
        world.git(&["init", "--quiet"]);
        world.sandbox.write("one.txt", "staged\n");
        world.sandbox.write("two.txt", "staged\n");
        world.git(&["add", "one.txt", "two.txt"]);
        world.sandbox.write("two.txt", "and more\n");
        let before = seen(&world);
        run(&world, code);
        let after = seen(&world);
        assert_eq!((after.1, after.2), (before.1, before.2));
        let head = world.sandbox.run("git", ["ls-tree", "-r", "--name-only", "HEAD"]);
        assert_eq!((head.code == 0, head.stdout.as_str()), (code == 0, if code == 0 { "a\n" } else { "" }));
    }
}

#[test]
fn an_undone_rollback_comes_beside_the_users_own_changes() {
    let settings = Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() };
    let world = world(&always("{ create = \"half\", text = \"work\" }"), &settings);
    everything(&world);
    let mine = |world: &World| (seen(world).1, seen(world).2);
    let before = mine(&world);
    run(&world, 4);
    assert_eq!(mine(&world), before);
    for _ in 1..=2 {
        world.verdone(&["undo"]).assert_code(0);
        assert_eq!(world.sandbox.read("half"), "work");
        assert_eq!(mine(&world), before);
        world.verdone(&["undo"]).assert_code(0);
        assert!(!world.has("half"));
        assert_eq!(mine(&world), before);
    }
}

#[test]
fn undo_leaves_the_users_own_changes_alone() {
    let world = world(HONEST, &Settings::default());
    let base = world.head();
    everything(&world);
    let before = seen(&world);
    run(&world, 0);
    let done = world.head();
    for round in 1..=2 {
        world.verdone(&["undo"]).assert_code(0);
        assert_eq!(world.head(), base, "round {round}");
        assert!(!world.has("a"));
        assert_eq!(seen(&world), before, "round {round}, undone");
        world.verdone(&["undo"]).assert_code(0);
        assert_eq!(world.head(), done, "round {round}");
        assert_eq!(world.sandbox.read("a"), "one\n");
        assert_eq!(seen(&world), before, "round {round}, undone again");
    }
}

#[test]
fn undo_says_when_the_users_changes_cannot_stay() {
    let world = world(
        &always("{ edit = \"README.md\", find = \"last\", replace = \"theirs\" }, { create = \"a\" }"),
        &Settings::default(),
    );
    world.sandbox.write("README.md", README.replace("first", "mine"));
    run(&world, 0);
    let command = text(&world.last("changes_kept")["command"]);
    world.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    let both = world.sandbox.read("README.md");
    let undone = world.verdone(&["undo"]);
    undone.assert_code(0);
    assert!(undone.stdout.contains("not put back (commits changed the same files: README.md)"), "{}", undone.stdout);
    assert_eq!(world.sandbox.read("README.md"), README);
    world.verdone(&["undo"]).assert_code(0);
    assert_eq!(world.sandbox.read("README.md"), both);
}

#[test]
fn a_dry_run_tells_what_would_be_set_aside_and_touches_nothing() {
    let world = world(HONEST, &Settings::default());
    staged(&world);
    let before = seen(&world);
    let output = world.run_with(&["--dry-run", "--allow-dirty"], 0);
    assert!(output.stdout.contains("Aside    one.txt\nAside    two.txt\n"), "{}", output.stdout);
    assert!(!output.stdout.contains("Problem"), "{}", output.stdout);
    assert_eq!(seen(&world), before);
    let refused = world.run(2);
    assert!(refused.stderr.contains("--allow-dirty"), "{}", refused.stderr);
    assert_eq!(seen(&world), before);
}

#[test]
fn what_cannot_be_set_aside_is_refused() {
    let world = world(HONEST, &Settings::default());
    world.git(&["init", "--quiet", "sub"]);
    world.git(&["-C", "sub", "commit", "--quiet", "--allow-empty", "-m", "one"]);
    world.git(&["add", "sub"]);
    world.git(&["commit", "--quiet", "-m", "sub"]);
    world.git(&["-C", "sub", "commit", "--quiet", "--allow-empty", "-m", "two"]);
    let output = run(&world, 2);
    assert!(output.stderr.contains("have changes that a checkpoint cannot keep: sub"), "{}", output.stderr);
    world.git(&["-C", "sub", "reset", "--quiet", "--hard", "HEAD^"]);

    fs::File::options().write(true).open(world.sandbox.path("one.txt")).unwrap().set_len(100_000_001).unwrap();
    let output = run(&world, 2);
    assert!(output.stderr.contains("too large to snapshot: one.txt"), "{}", output.stderr);
    world.git(&["checkout", "--quiet", "one.txt"]);

    world.sandbox.write_script(".fresher/hooks/started", "#!/bin/sh\n");
    world.git(&["add", ".fresher"]);
    let output = run(&world, 2);
    assert!(output.stderr.contains("uncommitted settings cannot be set aside: .fresher/hooks/started"), "{}", output.stderr);
    world.git(&["rm", "--quiet", "-r", "--cached", ".fresher"]);

    world.sandbox.write("two.txt", "mine\n");
    world.git(&["switch", "--quiet", "--create", "side"]);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "side"]);
    world.git(&["switch", "--quiet", "main"]);
    world.git(&["merge", "--quiet", "--no-ff", "--no-commit", "side"]);
    let output = run(&world, 2);
    assert!(output.stderr.contains("merge is in progress"), "{}", output.stderr);
    assert_eq!(world.sandbox.read("two.txt"), "mine\n");
}

#[test]
fn an_index_that_somebody_else_holds_costs_nothing() {
    let world = world(HONEST, &Settings::default());
    everything(&world);
    let before = seen(&world);
    world.sandbox.write(".git/index.lock", "");
    run(&world, 1);
    fs::remove_file(world.sandbox.path(".git/index.lock")).unwrap();
    assert_eq!(seen(&world), before, "nothing could leave, so nothing did");
    assert!(text(&world.last("run_stopping")["reason"]).contains("index.lock"));
    assert_eq!(world.all("changes_put_back").len(), 1);

    world.sandbox.write_script(".verdone/hooks/finished", "#!/bin/sh\n: > .git/index.lock\n");
    let output = run(&world, 0);
    fs::remove_file(world.sandbox.path(".git/index.lock")).unwrap();
    assert!(output.stdout.contains("Your changes were not put back: another git process holds"), "{}", output.stdout);
    assert_eq!(world.git(&["status", "--porcelain", "--untracked-files=no"]), "", "all of them or none");
    let command = text(&world.last("changes_kept")["command"]);
    world.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(world.sandbox.read("one.txt"), "staged\nand more\n");
}

/// Kills a run and lets the next one put things in order: in the end everything is as without the kill.
fn killed_and_run_again(at: &str, wait: impl Fn(&World, &Running)) {
    let script = "[[turn]]\nattempt = 1\nsteps = [{ create = \"x\" }, { run = \"test -f ../tmp/again\" }]\n\
                  [[turn]]\nsteps = [{ create = \"a\" }]\n";
    let world = world(script, &Settings { limits: "turns = 1", ..Settings::default() });
    everything(&world);
    let before = seen(&world);
    let running = start(&world);
    wait(&world, &running);
    running.signal(Signal::KILL);
    drop(running.wait(PATIENCE));
    let again = world.verdone(&["run", "--allow-dirty"]);
    again.assert_code(0);
    assert_eq!(seen(&world), before, "{at}\n{}", again.transcript());
    assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"], "{at}");
    assert_eq!(world.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "PLAN.md\na", "{at}");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn killed_after_any_event_the_next_run_brings_the_changes_through() {
    for events in 1..24 {
        killed_and_run_again(&format!("after {events} events"), |world, running| wait_for_events(world, running, events));
    }
}

#[test]
fn killed_while_the_changes_leave_or_come_back_nothing_of_them_is_lost() {
    for name in ["changes_set_aside", "put_back_started"] {
        for delay in [1, 5, 12, 20, 35] {
            killed_and_run_again(&format!("{delay} ms after {name}"), |world, running| {
                while !journals(world).contains(name) && !running.has_ended() {
                    std::thread::yield_now();
                }
                // There is no event in the middle of an effect: that is the point.
                std::thread::sleep(Duration::from_millis(delay));
            });
        }
    }
}

#[test]
fn a_recovery_that_is_killed_too_is_finished_by_the_next_one() {
    for delay in [60, 115, 130, 150, 180] {
        let world = world(HANGS_ONCE, &Settings::default());
        everything(&world);
        let before = seen(&world);
        let running = start(&world);
        running.wait_for("\u{2502} in-the-turn", PATIENCE);
        running.signal(Signal::KILL);
        drop(running.wait(PATIENCE));
        let running = start(&world);
        running.wait_for("did not end properly", PATIENCE);
        std::thread::sleep(Duration::from_millis(delay));
        running.signal(Signal::KILL);
        drop(running.wait(PATIENCE));
        world.verdone(&["run", "--allow-dirty"]).assert_code(0);
        assert_eq!(seen(&world), before, "killed {delay} ms into the recovery");
        assert_eq!(world.subjects(), ["feat(US-001): Write a", "initial"], "killed {delay} ms into the recovery");
        world.sandbox.assert_no_survivors(PATIENCE);
    }
}

fn journals(world: &World) -> String {
    let runs = fs::read_dir(world.sandbox.path(".verdone/runs")).into_iter().flatten().flatten();
    runs.filter_map(|dir| fs::read_to_string(dir.path().join("journal.jsonl")).ok()).collect()
}

#[test]
fn after_a_crash_a_run_without_the_flag_gives_the_changes_back_and_refuses() {
    let world = world(HANGS_ONCE, &Settings::default());
    everything(&world);
    let before = seen(&world);
    let running = start(&world);
    running.wait_for("\u{2502} in-the-turn", PATIENCE);
    running.signal(Signal::KILL);
    drop(running.wait(PATIENCE));
    assert!(world.verdone(&["status"]).stdout.contains("set aside"));
    let undo = world.verdone(&["undo"]);
    assert!(undo.stderr.contains("verdone run puts it in order first"), "{}", undo.stderr);
    let output = world.run(2);
    assert!(output.stdout.contains("your changes that it had set aside are back"), "{}", output.transcript());
    assert!(output.stderr.contains("uncommitted changes"), "{}", output.stderr);
    assert_eq!(seen(&world), before);
}

#[test]
fn a_file_that_git_was_killed_over_is_nobodys_work() {
    let world = world(HONEST, &Settings::default());
    world.sandbox.write_script(".verdone/hooks/started", "#!/bin/sh\n: > ../tmp/started; sleep 60\n");
    staged(&world);
    let before = seen(&world);
    let running = start(&world);
    wait_for_file(&world, "../tmp/started");
    running.signal(Signal::KILL);
    drop(running.wait(PATIENCE));
    // As git leaves files that it has removed, or opened, and not yet written.
    fs::remove_file(world.sandbox.path("one.txt")).unwrap();
    world.sandbox.write("two.txt", "");
    let output = world.run(2);
    assert!(output.stdout.contains("your changes that it had set aside are back"), "{}", output.transcript());
    assert_eq!(seen(&world), before);
}

#[test]
fn what_the_user_wrote_after_a_crash_is_not_replaced() {
    let world = world(HONEST, &Settings::default());
    world.sandbox.write_script(".verdone/hooks/started", "#!/bin/sh\n: > ../tmp/started; sleep 60\n");
    staged(&world);
    let running = start(&world);
    wait_for_file(&world, "../tmp/started");
    running.signal(Signal::KILL);
    drop(running.wait(PATIENCE));
    world.git(&["diff", "--exit-code", "HEAD", "--", "one.txt", "two.txt"]);
    world.sandbox.write("two.txt", "since the crash\n");
    let output = world.run(2);
    assert!(output.stdout.contains("were not put back (something else is in their place: two.txt)"), "{}", output.transcript());
    assert_eq!(world.sandbox.read("two.txt"), "since the crash\n");
    assert_eq!(world.git(&["status", "--porcelain", "--untracked-files=no"]), " M two.txt");
    // Out of the way, the one command gives them back.
    world.git(&["checkout", "--quiet", "two.txt"]);
    let command = text(&world.last("changes_kept")["command"]);
    assert!(output.stdout.contains(&command), "{}", output.stdout);
    world.git(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(world.sandbox.read("two.txt"), "staged half\nand more\n");
    assert_eq!(world.git(&["status", "--porcelain", "--untracked-files=no"]), "M  one.txt\nMM two.txt");
}

#[test]
fn a_branch_that_is_made_takes_the_changes_along_and_another_one_does_not() {
    let world = world(HONEST, &Settings::default());
    world.git(&["branch", "other"]);
    everything(&world);
    let before = seen(&world);
    let refused = world.run_with(&["--allow-dirty", "--branch", "other"], 2);
    assert!(refused.stderr.contains("they may not fit another branch"), "{}", refused.stderr);
    assert_eq!((seen(&world), world.git(&["branch", "--show-current"])), (before.clone(), "main".to_owned()));
    world.run_with(&["--allow-dirty", "--branch", "made"], 0);
    assert_eq!((seen(&world), world.git(&["branch", "--show-current"])), (before, "made".to_owned()));
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "feat(US-001): Write a");
}

#[test]
fn changes_that_were_not_put_back_are_told_about_by_later_runs_too() {
    let world = world(&always("{ create = \"a\" }, { append = \"README.md\", text = \"theirs\\n\" }"), &Settings::default());
    edited(&world);
    run(&world, 0);
    let command = text(&world.last("changes_kept")["command"]);
    let later = world.run(0);
    assert!(later.stdout.contains(&command), "{}", later.stdout);
    for output in [world.verdone(&["status"]), world.verdone(&["doctor"])] {
        assert!(output.stdout.contains(&command) || output.stderr.contains(&command), "{}{}", output.stdout, output.stderr);
    }
}
