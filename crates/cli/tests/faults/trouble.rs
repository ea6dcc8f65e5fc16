//! Trouble of the machine: whatever cannot be written, the run ends with a clear message, nothing is lost, and once the trouble is
//! over the next run ends as an undisturbed one.

use std::time::Duration;

use verdone_runtime::fault::Point;
use verdone_testkit::Output;

use crate::crash_matrix::{THREADS, moments};
use crate::world::{PLAN, VERDONE, World, in_parallel};

/// The user's own files: nothing may ever happen to them.
#[track_caller]
fn assert_nothing_lost(world: &World, output: &Output) {
    for (path, text) in [("key.secret", "ignored\n"), ("notes.txt", "the user's own\n"), ("draft.txt", "half a thought\n")] {
        // An attempt that could not be rolled back yet still has what it did to them; the checkpoint has them.
        let there = std::fs::read_to_string(world.sandbox.path(path)).ok().as_deref() == Some(text);
        assert!(there || world.checkpoints_hold(text), "{path} is lost\n{}", output.transcript());
    }
}

#[track_caller]
fn assert_recovers(world: &World, trouble: &Output) {
    assert_nothing_lost(world, trouble);
    let output = world.run();
    assert_eq!(output.code, 0, "{}\n{}", trouble.transcript(), output.transcript());
    world.assert_sound();
    assert_eq!(&world.look(), World::expected(), "{}\n{}", trouble.transcript(), output.transcript());
}

#[test]
fn a_write_that_fails_anywhere_is_told_costs_nothing_and_the_next_run_goes_on() {
    let traced = World::new();
    traced.run_with_fault("trace=../tmp/trace").assert_code(0);
    let all = moments(&traced.sandbox.read("../tmp/trace"));
    let mut cases = Vec::new();
    for (number, point) in Point::ALL.iter().filter(|point| point.can_fail()).enumerate() {
        let reached = all.iter().filter(|moment| moment.point == point.name()).count();
        // The middle one is in the thick of it; only recovery reopens a journal.
        let (error, words) =
            [("ENOSPC", "No space left on device"), ("EIO", "Input/output error"), ("EACCES", "Permission denied")][number % 3];
        let lasting = if number % 2 == 0 { "+" } else { "" };
        if reached > 0 {
            cases.push((format!("fail={error}@{}:{}{lasting}", point.name(), reached.div_ceil(2)), words));
        } else {
            assert_eq!(*point, Point::JournalReopen, "no run reaches {}", point.name());
        }
    }
    in_parallel(&cases, THREADS, |(fault, words)| {
        let world = World::new();
        let output = world.run_with_fault(fault);
        // What is only told (a note, a progress file, a request) does not end the run.
        assert!([0, 1].contains(&output.code), "{}", output.transcript());
        let quiet = ["inbox-taken"].iter().any(|name| fault.contains(name));
        let said = output.stdout.contains(words) || output.stderr.contains(words);
        assert!(said || quiet, "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn trouble_in_the_recovery_is_told_and_the_next_run_recovers() {
    let cases = [
        "journal-reopen:1",
        "chain-append:1",
        "chain-append:2",
        "restore-head:1",
        "restore-index:1",
        "restore-write:1",
        "restore-rename:1",
        "restore-checkout:1",
        "restore-extra:1",
        "index-write:1",
        "index-locked:1",
        "protected-keep:1",
        "protected-remove:1",
    ];
    in_parallel(&cases, THREADS, |place| {
        let world = World::new();
        // After the first turn, which did all that has to be undone.
        world.run_with_fault(&format!("kill@{}", World::end_of_first_turn())).assert_code(-9);
        let output = world.run_with_fault(&format!("fail=ENOSPC@{place}"));
        output.assert_code(1);
        assert!(output.stderr.contains("the last run cannot be put in order"), "{}", output.transcript());
        assert!(output.stderr.contains("No space left on device") && output.stderr.contains("hint:"), "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn a_fault_that_means_nothing_is_a_start_error() {
    let world = World::new();
    for value in ["", "kill@nowhere:1", "fail=ENOSPC@step-begin:1", "on", "trace=/nowhere/x"] {
        let output = world.run_with_fault(value);
        output.assert_code(2);
        assert!(output.stderr.contains("VERDONE_FAULT"), "{}", output.stderr);
    }
    assert!(!world.sandbox.path(".verdone/runs").exists());
}

#[test]
fn faults_are_not_passed_on_to_children() {
    let world = World::new();
    let saves = "#!/bin/sh\nenv > ../tmp/seen-by-\"${0##*/}\"\n";
    world.sandbox.write_script(".git/hooks/post-commit", saves);
    world.sandbox.write_script(".verdone/hooks/finished", saves);
    world.sandbox.write(
        ".verdone/script.toml",
        "[[turn]]\nsteps = [{ run = 'env > ../tmp/seen-by-agent; echo one > a; echo two > b' }]\n",
    );
    world.git(&["commit", "--quiet", "--all", "--message", "initial"]);
    world.run_with_fault("trace=../tmp/trace");
    for child in ["agent", "post-commit", "finished"] {
        let seen = world.sandbox.read(format!("../tmp/seen-by-{child}"));
        assert!(seen.contains("VERDONE_RUN=") && !seen.contains("VERDONE_FAULT"), "{child}: {seen}");
    }
}

/// Runs a shell script as root of a name space of its own, where it may mount what it likes.
fn in_namespace(world: &World, script: &str) -> Output {
    for tool in ["unshare", "mount", "umount"] {
        if !world.sandbox.root().join("bin").join(tool).exists() {
            world.sandbox.add_tool(tool);
        }
    }
    let output = world.sandbox.run("unshare", ["-Urm", "sh", "-ec", script]);
    assert!(!output.stderr.contains("unshare:"), "these tests need user and mount name spaces\n{}", output.transcript());
    output
}

#[test]
fn a_full_disk_at_any_time_is_told_and_loses_nothing() {
    let free_kilobytes = [0, 8, 24, 48, 80, 120, 200, 320];
    in_parallel(&free_kilobytes, THREADS, |free| {
        let world = World::new();
        let output = in_namespace(
            &world,
            &format!(
                "mkdir ../small; mount -t tmpfs -o size=8m none ../small; cp -a . ../small/work; cd ../small/work
             size=$((8192 - {free})); used=$(stat -f -c '%b %f' . | {{ read all left; echo $(( (all - left) * 4 )); }})
             dd if=/dev/zero of=../filler bs=1024 count=$((size - used)) 2>/dev/null
             code=0; VERDONE_FAULT=any-room {VERDONE} run || code=$?
             rm ../filler; rm -rf ../../work/* ../../work/.[a-z]*; cp -a . ../../work; exit $code"
            ),
        );
        assert!([0, 1].contains(&output.code), "{}", output.transcript());
        if output.code == 1 {
            let said = output.stdout.contains("No space left on device") || output.stderr.contains("No space left on device");
            assert!(said, "{}", output.transcript());
        } else {
            assert!(*free > 100, "it was not full\n{}", output.transcript());
        }
        assert_recovers(&world, &output);
    });
}

#[test]
fn what_is_mounted_read_only_is_named_and_nothing_is_touched() {
    let cases = [(".verdone", ".verdone"), (".", "work"), (".git", ".git"), (".ralph/PRD-1", "PRD-1")];
    in_parallel(&cases, THREADS, |(dir, named)| {
        let world = World::new();
        let output = in_namespace(
            &world,
            &format!("mount --bind {dir} {dir}; mount -o remount,ro,bind {dir}; cd \"$PWD\"; exec {VERDONE} run"),
        );
        output.assert_code(1);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("Read-only file system") && said.contains(named), "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn a_file_size_limit_is_trouble_like_any_other() {
    let world = World::new();
    let output = world.sandbox.run("sh", ["-c", &format!("trap '' XFSZ; ulimit -f 4; exec {VERDONE} run")]);
    output.assert_code(1);
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains("File too large") || said.contains("fast-import"), "{}", output.transcript());
    assert_recovers(&world, &output);
}

#[test]
fn refs_that_cannot_be_written_stop_the_run_before_any_work() {
    let world = World::new();
    world.sandbox.write(".git/refs/verdone", "in the way\n");
    let output = world.run();
    output.assert_code(1);
    assert!(output.stdout.contains("refs/verdone"), "{}", output.transcript());
    assert!(!output.stdout.contains("create x"), "the agent was started\n{}", output.transcript());
    std::fs::remove_file(world.sandbox.path(".git/refs/verdone")).unwrap();
    assert_recovers(&world, &output);
}

#[test]
fn a_stale_lock_of_git_is_named_with_what_to_do() {
    let world = World::new();
    world.sandbox.write(".git/index.lock", "");
    let lock = world.sandbox.path(".git/index.lock");
    // Older than the run by more than a tick of the file system's clock.
    while lock.metadata().unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    let output = world.run();
    output.assert_code(1);
    assert!(output.stdout.contains(&format!("another git process holds {}", lock.display())), "{}", output.transcript());
    assert!(output.stdout.contains("remove that file"), "{}", output.transcript());
    assert!(lock.exists(), "another's lock is not ours to remove");
    std::fs::remove_file(lock).unwrap();
    assert_recovers(&world, &output);
}

#[test]
fn locks_that_a_killed_git_left_are_removed_in_the_run_and_in_the_recovery() {
    for then in ["", "; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 60"] {
        let world = World::new();
        let locks = ".git/index.lock .git/HEAD.lock .git/refs/heads/main.lock";
        let once = format!("test -f ../tmp/once || {{ : > ../tmp/once; touch {locks}{then}; }}; ");
        let script = world.sandbox.read(".verdone/script.toml").replacen("{ run = \"", &format!("{{ run = \"{once}"), 1);
        world.sandbox.write(".verdone/script.toml", script);
        let output = world.run();
        output.assert_code(if then.is_empty() { 0 } else { -9 });
        let output = if then.is_empty() { output } else { world.run() };
        output.assert_code(0);
        assert!(output.stdout.contains(".git/refs/heads/main.lock"), "{}", output.transcript());
        world.assert_sound();
    }
}

#[test]
fn git_that_disappears_in_the_middle_is_told_and_nothing_is_lost() {
    let world = World::new();
    let script = world.sandbox.read(".verdone/script.toml").replacen(
        "{ run = \"",
        "{ run = \"test -f ../tmp/once || { : > ../tmp/once; mv ../bin/git ../bin/hidden; }; PATH=$PATH:../bin; ",
        1,
    );
    world.sandbox.write(".verdone/script.toml", script.replace("git init -q nested", "mkdir nested"));
    let output = world.run();
    output.assert_code(1);
    assert!(output.stdout.contains("git was not found on PATH"), "{}", output.transcript());
    std::fs::rename(world.sandbox.root().join("bin/hidden"), world.sandbox.root().join("bin/git")).unwrap();
    assert_nothing_lost(&world, &output);
    let output = world.run();
    output.assert_code(0);
    world.assert_sound();
}

#[test]
fn git_that_hangs_is_ended_and_told() {
    let world = World::new();
    let git = world.sandbox.root().join("bin/git");
    let real = std::fs::read_link(&git).unwrap();
    std::fs::remove_file(&git).unwrap();
    let wrapper = format!(
        "#!/bin/sh\ncase \"$*\" in *fast-import*) [ -f ../tmp/well ] || exec sleep 600;; esac\nexec {} \"$@\"\n",
        real.display()
    );
    world.sandbox.add_script("git", &wrapper);
    let output = world.run_with_fault("git-deadline=2000");
    output.assert_code(1);
    assert!(output.stdout.contains("git fast-import did not finish within 2 s"), "{}", output.transcript());
    world.sandbox.write("../tmp/well", "");
    assert_recovers(&world, &output);
}

/// A run that died after the first turn, its journal then damaged.
fn with_damage(damage: impl Fn(&std::path::Path)) -> World {
    let world = World::new();
    world.run_with_fault(&format!("kill@{}", World::end_of_first_turn())).assert_code(-9);
    damage(&world.run_dir());
    world
}

#[test]
fn a_journal_with_broken_lines_is_set_aside_and_what_can_be_read_of_it_is_used() {
    let broken: [fn(Vec<String>) -> Vec<u8>; 4] = [
        |mut lines| {
            "garbage".clone_into(&mut lines[1]);
            (lines.join("\n") + "\n").into_bytes()
        },
        |mut lines| {
            lines[4].insert(3, '\u{0}');
            (lines.join("\n") + "\n").into_bytes()
        },
        |mut lines| {
            lines.insert(1, "\u{1}".repeat(1_000_000));
            (lines.join("\n") + "\n").into_bytes()
        },
        // Torn: the ordinary trace of a crash.
        |lines| lines.join("\n").into_bytes(),
    ];
    for (number, damage) in broken.into_iter().enumerate() {
        let world = with_damage(|dir| {
            let path = dir.join("journal.jsonl");
            let lines = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
            std::fs::write(path, damage(lines)).unwrap();
        });
        for command in ["status", "log"] {
            let output = world.sandbox.verdone(VERDONE, [command]);
            assert!(
                output.code == 0 || (output.stderr.contains("journal.jsonl:") && output.stderr.contains("verdone run")),
                "{}",
                output.transcript()
            );
        }
        let (dir, output) = (world.run_dir(), world.run());
        output.assert_code(0);
        if number < 3 {
            assert!(
                output.stdout.contains("not a journal line") && output.stdout.contains("is kept as"),
                "{}",
                output.transcript()
            );
            assert!(dir.join("journal-broken-1.jsonl").exists());
        }
        world.assert_sound();
        assert_eq!(&world.look(), World::expected(), "{}", output.transcript());
        world.sandbox.verdone(VERDONE, ["status"]).assert_code(0);
    }
}

#[test]
fn without_a_readable_journal_the_tree_is_kept_as_found_and_the_user_decides() {
    let gone: [fn(&std::path::Path); 6] = [
        // The line that says which story was begun.
        |dir| {
            let text = std::fs::read_to_string(dir.join("journal.jsonl")).unwrap();
            std::fs::write(dir.join("journal.jsonl"), text.replace("story_selected", "story_forgotten")).unwrap();
        },
        |dir| {
            std::fs::write(dir.join("journal.jsonl"), vec![0xfe; 1_000_000].chunks(1000).collect::<Vec<_>>().join(&b'\n'))
                .unwrap();
        },
        |dir| std::fs::write(dir.join("journal.jsonl"), "").unwrap(),
        |dir| std::fs::remove_file(dir.join("journal.jsonl")).unwrap(),
        |dir| std::fs::remove_dir_all(dir).unwrap(),
        |dir| {
            std::fs::remove_dir_all(dir).unwrap();
            std::fs::write(dir, "a file").unwrap();
        },
    ];
    for damage in gone {
        let world = with_damage(damage);
        for command in ["status", "log"] {
            let output = world.sandbox.verdone(VERDONE, [command]);
            assert!([0, 1, 2].contains(&output.code) && !output.stderr.contains("panicked"), "{}", output.transcript());
        }
        let output = world.run();
        // What the agent left is there, so the run is refused as in any tree with changes; or it is only commits.
        assert!(output.stdout.contains("the work tree as it was found is kept as"), "{}", output.transcript());
        assert!(world.checkpoints_hold("half a thought\nscribbled\n"), "{}", output.transcript());
        // The user takes the checkpoint of the attempt: everything is in it.
        assert!(world.checkpoints_hold("the user's own\n") && world.checkpoints_hold("half a thought\n"));
        world.git(&["reset", "--quiet", "--hard", ":/^initial"]);
        std::fs::remove_dir_all(world.sandbox.path("nested")).ok();
        std::fs::remove_file(world.sandbox.path(".verdone/guardrails.md")).ok();
        std::fs::remove_file(world.sandbox.path(".git/hooks/post-commit")).ok();
        world.sandbox.write("notes.txt", "the user's own\n");
        world.sandbox.write("draft.txt", "half a thought\n");
        assert_eq!(world.sandbox.read(".ralph/PRD-1/plan.md"), PLAN);
        let output = world.run();
        output.assert_code(0);
        world.assert_sound();
        assert_eq!(&world.look(), World::expected(), "{}", output.transcript());
    }
}
