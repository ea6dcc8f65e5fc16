//! Machine failures: whatever cannot be written, the run ends with a clear message, nothing is lost, and once the cause is gone, the next
//! run ends like an undisturbed one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_runtime::base::fault::Point;
use verdone_testkit::Output;

use crate::faults::crash_matrix::{ELSEWHERE, moments};
use crate::faults::git_calls::{GitCalls, replace_git};
use crate::faults::world::{Kind, SCRIPT, THREADS, VERDONE, World, in_parallel};

/// Asserts that the user's files are untouched, and that the next run continues.
#[track_caller]
fn assert_recovers(world: &World, trouble: &Output) {
    world.assert_mine(&trouble.transcript());
    world.assert_ends_as_undisturbed_after(trouble.transcript());
}

fn all_of(output: &Output) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn a_write_that_fails_anywhere_is_reported_and_the_next_run_continues() {
    let traced = World::new();
    traced.run_with_fault("trace=../tmp/trace").assert_code(0);
    let all = moments(&traced.sandbox.read("../tmp/trace"));
    let mut cases = Vec::new();
    for (number, point) in Point::ALL.iter().filter(|point| point.can_fail()).enumerate() {
        let reached = all.iter().filter(|moment| moment.point == point.name()).count();
        // Disturb the middle occurrence of each point. Points that this run does not reach are in the recovery, which reopens a journal.
        let (error, words) =
            [("ENOSPC", "No space left on device"), ("EIO", "Input/output error"), ("EACCES", "Permission denied")][number % 3];
        let lasting = if number % 2 == 0 { "+" } else { "" };
        if reached > 0 {
            cases.push((format!("fail={error}@{}:{}{lasting}", point.name(), reached.div_ceil(2)), words));
        } else {
            let elsewhere = *point == Point::JournalReopen || ELSEWHERE.contains(&point.name());
            assert!(elsewhere, "no run reaches {}", point.name());
        }
    }
    in_parallel(&cases, THREADS, |(fault, words)| {
        let world = World::new();
        let output = world.run_with_fault(fault);
        // Failures that can wait (a note, a progress file, a request, a landing) do not end the run.
        assert!([0, 1].contains(&output.code), "{}", output.transcript());
        let quiet = ["inbox-taken"].iter().any(|name| fault.contains(name));
        assert!(all_of(&output).contains(words) || quiet, "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn trouble_in_the_recovery_is_reported_and_the_next_run_recovers() {
    let after_a_turn = World::end_of_first_turn();
    let cases = [
        (after_a_turn, "journal-reopen:1"),
        (after_a_turn, "journal-append:1"),
        (after_a_turn, "journal-torn:1"),
        (after_a_turn, "journal-written:1"),
        ("land-files-moved:1", "land-branch:1"),
        ("land-files-moved:2", "land-files:1"),
    ];
    in_parallel(&cases, THREADS, |(first, place)| {
        let world = World::new();
        world.run_with_fault(&format!("kill@{first}")).assert_code(-9);
        let output = world.run_with_fault(&format!("fail=ENOSPC@{place}"));
        output.assert_code(1);
        assert!(output.stderr.contains("cannot recover the last run"), "{}", output.transcript());
        assert!(output.stderr.contains("No space left on device"), "{}", output.transcript());
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
    let saves = "#!/bin/sh\nenv > ~/shared/seen-by-\"${0##*/}\"\n";
    world.sandbox.write_script(".git/hooks/pre-commit", saves);
    world.sandbox.write_script(".verdone/hooks/finished", saves);
    let script =
        "[[turn]]\nsteps = [{ run = 'env > ~/shared/seen-by-agent; echo one > a; echo two > b; echo changed > kept.txt' }]\n";
    world.sandbox.write(".verdone/script.toml", script);
    world.run_with_fault("trace=../tmp/trace");
    for child in ["agent", "pre-commit", "finished"] {
        let seen = world.sandbox.read(format!("../home/shared/seen-by-{child}"));
        assert!(seen.contains("VERDONE_RUN=") && !seen.contains("VERDONE_FAULT"), "{child}: {seen}");
    }
}

/// Runs a shell script as root of a separate namespace, where it may mount anything.
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
fn a_full_disk_at_any_time_is_reported_and_loses_nothing() {
    let verdone = &*VERDONE;
    let free_kilobytes = [0, 8, 24, 48, 80, 120, 200, 320];
    in_parallel(&free_kilobytes, THREADS, |free| {
        let world = World::new();
        let output = in_namespace(
            &world,
            &format!(
                "mkdir ../small; mount -t tmpfs -o size=8m none ../small; cp -a . ../small/work; cd ../small/work
             size=$((8192 - {free})); used=$(stat -f -c '%b %f' . | {{ read all left; echo $(( (all - left) * 4 )); }})
             dd if=/dev/zero of=../filler bs=1024 count=$((size - used)) 2>/dev/null
             code=0; VERDONE_FAULT=any-room {verdone} run || code=$?
             rm ../filler; rm -rf ../../work/* ../../work/.[a-z]*; cp -a . ../../work; exit $code"
            ),
        );
        assert!([0, 1].contains(&output.code), "{}", output.transcript());
        if output.code == 1 {
            assert!(
                ["No space left on device", "Out of diskspace"].iter().any(|words| all_of(&output).contains(words)),
                "{}",
                output.transcript()
            );
        } else {
            assert!(*free > 100, "it was not full\n{}", output.transcript());
        }
        assert_recovers(&world, &output);
    });
}

#[test]
fn a_state_folder_on_a_full_disk_is_reported_with_what_to_do() {
    let verdone = &*VERDONE;
    let kilobytes = [4, 64, 160, 300];
    in_parallel(&kilobytes, THREADS, |size| {
        let world = World::new();
        let output = in_namespace(
            &world,
            &format!(
                "mkdir -p ~/.local/state; mount -t tmpfs -o size={size}k none ~/.local/state
                 VERDONE_FAULT=any-room exec {verdone} run"
            ),
        );
        output.assert_code(1);
        let said = all_of(&output);
        assert!(said.contains("No space left on device") || said.contains("the disk is full"), "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn the_state_folder_may_be_on_another_file_system_than_the_project() {
    let verdone = &*VERDONE;
    in_parallel(&Kind::ALL, THREADS, |kind| {
        let world = World::with_kind(*kind);
        let output = in_namespace(
            &world,
            &format!(
                "mkdir -p ~/.local/state; mount -t tmpfs none ~/.local/state; {verdone} run; ls ~/.local/state/verdone/workspaces"
            ),
        );
        output.assert_code(0);
        assert!(output.stdout.ends_with('\n') && !output.stdout.contains(".lock"), "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn what_is_mounted_below_home_is_there_for_agents_and_keeps_its_content() {
    let verdone = &*VERDONE;
    let world = World::new();
    let looks = "cat ~/data/mine ~/deep/er/too > ~/shared/seen; echo spoilt > ~/data/mine || true";
    world.sandbox.write(
        ".verdone/script.toml",
        SCRIPT.replacen("{ create = \"sub/c\"", &format!("{{ run = \"{looks}\" }}, {{ create = \"sub/c\""), 1),
    );
    let output = in_namespace(
        &world,
        &format!(
            "mkdir ~/data ~/deep ~/deep/er; mount -t tmpfs none ~/data; echo mine > ~/data/mine
             mount -t tmpfs none ~/deep/er; echo too > ~/deep/er/too
             code=0; {verdone} run || code=$?; cat ~/data/mine; exit $code"
        ),
    );
    output.assert_code(0);
    assert!(output.stdout.ends_with("\nmine\n"), "{}", output.transcript());
    assert_eq!(world.sandbox.read("../home/shared/seen"), "mine\ntoo\n", "{}", output.transcript());
}

#[test]
fn what_is_mounted_read_only_is_named_and_nothing_is_touched() {
    let verdone = &*VERDONE;
    let cases = [(".verdone", ".verdone"), (".", "work"), (".git", ".git"), ("../home", "state")];
    in_parallel(&cases, THREADS, |(dir, named)| {
        let world = World::new();
        let output = in_namespace(
            &world,
            &format!("mount --bind {dir} {dir}; mount -o remount,ro,bind {dir}; cd \"$PWD\"; exec {verdone} run"),
        );
        assert!([1, 2].contains(&output.code), "{}", output.transcript());
        let said = all_of(&output).to_lowercase();
        assert!(said.contains("read-only") && said.contains(named), "{}", output.transcript());
        assert_recovers(&world, &output);
    });
}

#[test]
fn a_file_size_limit_is_trouble_like_any_other() {
    let verdone = &*VERDONE;
    let world = World::new();
    let output = world.sandbox.run("sh", ["-c", &format!("trap '' XFSZ; ulimit -f 4; exec {verdone} run")]);
    output.assert_code(1);
    assert!(all_of(&output).contains("File too large"), "{}", output.transcript());
    assert_recovers(&world, &output);
}

#[test]
fn a_branch_that_is_in_the_way_of_the_runs_own_stops_it_before_any_work() {
    let world = World::new();
    world.git(&["branch", "verdone"]);
    let output = world.run();
    assert!([1, 2].contains(&output.code), "{}", output.transcript());
    assert!(all_of(&output).contains("git branch -m verdone"), "{}", output.transcript());
    assert!(!output.stdout.contains("create x"), "the agent was started\n{}", output.transcript());
    world.git(&["branch", "-D", "--quiet", "verdone"]);
    assert_recovers(&world, &output);
}

#[test]
fn a_lock_that_another_git_process_left_is_named_and_only_landing_waits_for_it() {
    let world = World::new();
    let lock = world.sandbox.path(".git/index.lock");
    fs::write(&lock, "").unwrap();
    // Older than the run by more than one tick of the file system's clock.
    while lock.metadata().unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    let output = world.run();
    output.assert_code(0);
    assert!(output.stdout.contains("index.lock"), "{}", output.transcript());
    assert!(lock.exists(), "another's lock is not ours to remove");
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "1", "{}", output.transcript());
    fs::remove_file(lock).unwrap();
    assert_recovers(&world, &output);
}

#[test]
fn git_that_disappears_in_the_middle_is_reported_and_nothing_is_lost() {
    let calls = [5, 30, 60, 90];
    in_parallel(&calls, THREADS, |calls| {
        let world = World::new();
        let bin = world.sandbox.root().join("bin");
        // A view cannot write there, so the first call outside of a view removes git.
        let happens = format!("mv {0}/git {0}/hidden 2>/dev/null", bin.display());
        let git_calls = GitCalls::new(&world, *calls, false, &happens);
        let output = world.run();
        assert!([1, 2].contains(&output.code), "{}", output.transcript());
        assert!(all_of(&output).contains("git was not found on PATH"), "{}", output.transcript());
        fs::rename(bin.join("hidden"), bin.join("git")).unwrap();
        git_calls.end();
        assert_recovers(&world, &output);
    });
}

#[test]
fn git_that_hangs_is_ended_and_reported() {
    let world = World::new();
    let well = world.sandbox.home().join("shared/well");
    replace_git(&world, |real| {
        format!(
            "#!/bin/sh\ncase \"$*\" in *update-ref*) [ -f {} ] || exec sleep 600;; esac\nexec {} \"$@\"\n",
            well.display(),
            real.display()
        )
    });
    let output = world.run_with_fault("git-deadline=2000");
    output.assert_code(1);
    assert!(all_of(&output).contains("git update-ref did not finish within 2 s"), "{}", output.transcript());
    fs::write(well, "").unwrap();
    assert_recovers(&world, &output);
}

/// Kills `git notes add` while it holds its lock, until there is a file `well`.
fn kills_notes(world: &World, also: &str) -> PathBuf {
    let well = world.sandbox.home().join("shared/well");
    let notes = world.sandbox.path(".git/refs/notes");
    replace_git(world, |real| {
        let (well, notes, real) = (well.display(), notes.display(), real.display());
        let kill = format!("mkdir -p {notes}; touch {notes}/verdone.lock; {also}; kill -9 $$");
        format!("#!/bin/sh\ncase \"$*\" in *notes*add*) [ -f {well} ] || {{ {kill}; }};; esac\nexec {real} \"$@\"\n")
    });
    well
}

#[test]
fn a_git_process_that_is_killed_while_it_writes_a_note_is_started_again() {
    let world = World::new();
    let well = world.sandbox.home().join("shared/well");
    kills_notes(&world, &format!("touch {}", well.display()));
    let output = world.run();
    output.assert_code(0);
    assert!(well.is_file() && !all_of(&output).contains("note could not be written"), "{}", output.transcript());
    assert_recovers(&world, &output);
}

#[test]
fn a_commit_whose_files_a_hook_rewrote_is_not_made_without_its_note() {
    let world = World::new();
    let well = kills_notes(&world, ":");
    let output = world.run();
    output.assert_code(1);
    assert!(all_of(&output).contains("git notes failed"), "{}", output.transcript());
    fs::write(well, "").unwrap();
    assert_recovers(&world, &output);
}

/// A run that died after the first turn, with its journal then damaged.
fn with_damage(damage: impl Fn(&Path)) -> World {
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
            lines[2].insert(3, '\u{0}');
            (lines.join("\n") + "\n").into_bytes()
        },
        |mut lines| {
            lines.insert(1, "\u{1}".repeat(1_000_000));
            (lines.join("\n") + "\n").into_bytes()
        },
        // Torn last line: the usual result of a crash.
        |lines| lines.join("\n").into_bytes(),
    ];
    for (number, damage) in broken.into_iter().enumerate() {
        let world = with_damage(|dir| {
            let path = dir.join("journal.jsonl");
            let lines = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
            fs::write(path, damage(lines)).unwrap();
        });
        for command in ["status", "log"] {
            let output = world.verdone(&[command]);
            assert!(
                output.code == 0 || (output.stderr.contains("journal.jsonl:") && output.stderr.contains("verdone run")),
                "{}",
                output.transcript()
            );
        }
        let (dir, output) = (world.run_dir(), world.run());
        output.assert_code(0);
        if number < 3 {
            let said = output.stdout.contains("not a journal line") && output.stdout.contains("is saved as");
            assert!(said, "{}", output.transcript());
            assert!(dir.join("journal-broken-1.jsonl").exists());
        }
        assert_recovers(&world, &output);
        world.verdone(&["status"]).assert_code(0);
    }
}

#[test]
fn without_a_readable_journal_the_next_run_starts_over() {
    let gone: [fn(&Path); 6] = [
        // The line that says which story was started.
        |dir| {
            let text = fs::read_to_string(dir.join("journal.jsonl")).unwrap();
            fs::write(dir.join("journal.jsonl"), text.replace("story_selected", "story_forgotten")).unwrap();
        },
        |dir| {
            fs::write(dir.join("journal.jsonl"), vec![0xfe; 1_000_000].chunks(1000).collect::<Vec<_>>().join(&b'\n')).unwrap();
        },
        |dir| fs::write(dir.join("journal.jsonl"), "").unwrap(),
        |dir| fs::remove_file(dir.join("journal.jsonl")).unwrap(),
        |dir| fs::remove_dir_all(dir).unwrap(),
        |dir| {
            fs::remove_dir_all(dir).unwrap();
            fs::write(dir, "a file").unwrap();
        },
    ];
    in_parallel(&[0, 1, 2, 3, 4, 5], THREADS, |number| {
        let world = with_damage(gone[*number]);
        for command in ["status", "log"] {
            let output = world.verdone(&[command]);
            assert!([0, 1, 2].contains(&output.code) && !output.stderr.contains("panicked"), "{}", output.transcript());
        }
        let output = world.run();
        assert_recovers(&world, &output);
    });
}

#[test]
fn a_kept_attempt_is_found_without_any_journal() {
    let world = World::new();
    world.run().assert_code(0);
    fs::remove_dir_all(world.sandbox.path(".verdone/runs")).unwrap();
    world.git(&["gc", "--quiet", "--prune=now"]);
    let attempts = world.attempts();
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    assert!(attempts[0].ends_with("/US-001-1"), "{attempts:?}");
    assert_eq!(world.git(&["show", &format!("{}:x", attempts[0])]), "rejected work");
}
