//! A long run with an agent that does whatever agents do, on a machine that kills and interrupts: 20 iterations in the suite;
//! `VERDONE_SOAK=N` sets another number. `VERDONE_SEED` sets another seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_runtime::base::fault::Point;
use verdone_testkit::{Sandbox, Signal};

use crate::faults::world::{PATIENCE, Random, VERDONE, first_seed, in_parallel, sandbox, wanted};

const STORIES: usize = 25;
/// More than there are cores, because agents hang much of the time.
const WORLDS_AT_A_TIME: usize = 4;
/// A project that is not done after this many runs had more trouble than most.
const MOST_RUNS: usize = 12;

/// The seed determines what the agent does in its n-th turn; in two of five cases, it is simply honest.
const AGENT: &str = r#"#!/bin/sh
s=$VERDONE_STORY
echo turn >> "$SOAK/turns"
n=$(wc -l < "$SOAK/turns")
draw=$((0x$(printf '%s-%s' "$SEED" "$n" | sha256sum | cut -c1-7) % 40))
honest() { mkdir -p s; echo "done $s" > "s/$s.txt"; }
wrong() { mkdir -p s; echo "wrong $n" > "s/$s.txt"; }
echo "turn $n draws $draw"
case $draw in
  0) echo "all done, trust me" ;;
  1) sed -i "/$s:/,/- \[ \]/s/- \[ \]/- [x]/" PLAN.md; echo "ticked it" ;;
  2) wrong ;;
  3) wrong; kill -9 $$ ;;
  4) wrong; exit 1 ;;
  5) wrong; trap '' TERM; sleep 600 ;;
  6) honest; (setsid sh -c 'trap "" TERM HUP; sleep 300' >/dev/null 2>&1 &) ;;
  7) wrong; printf half > half.txt; sleep 600 ;;
  8) honest; git add -A s; git commit -qm "agent $n" ;;
  9) wrong; git add -A s; git commit -qm "agent $n" ;;
  10) git commit -q --amend -m "agent $n"; honest ;;
  11) rm -rf .git/hooks; honest ;;
  12) echo 'nonsense = [' >> .verdone/config.toml; honest ;;
  13) rm notes.txt; honest ;;
  14) echo scribble > notes.txt; wrong ;;
  15) yes "$s $n" | head -c 3000000; honest ;;
  16) head -c 2000000 /dev/zero > "s-$s.bin"; honest ;;
  17) echo "s/$s.txt" >> .gitignore; honest ;;
  18) git checkout -q -b "agent-$n"; honest ;;
  19) git stash -q -u; wrong ;;
  20) rm PLAN.md; mkdir PLAN.md; honest ;;
  21) git init -q nested; honest ;;
  22) echo forged >> ".verdone/runs/$VERDONE_RUN/journal.jsonl"; honest ;;
  23) : > .git/index.lock; honest ;;
  *) honest ;;
esac
"#;

#[derive(Debug, Default)]
struct Tally {
    runs: AtomicUsize,
    killed: AtomicUsize,
    signalled: AtomicUsize,
    iterations: AtomicUsize,
    committed: AtomicUsize,
    untested: AtomicUsize,
    kept: AtomicUsize,
    dropped: AtomicUsize,
    finished: AtomicUsize,
}

struct World {
    sandbox: Sandbox,
    random: Random,
    initial: String,
}

#[test]
fn many_iterations_with_an_agent_and_a_machine_at_their_worst_end_right() {
    let (wanted, first) = (wanted("VERDONE_SOAK", 20), first_seed());
    println!("VERDONE_SEED={first}");
    let mut random = Random::new(first);
    let begun = Instant::now();
    let tally = Tally::default();
    // Worlds are started until there are enough iterations; these seeds are more than enough.
    let seeds: Vec<u64> = (0..wanted.max(8)).map(|_| random.below(1 << 40)).collect();
    in_parallel(&seeds, WORLDS_AT_A_TIME, |seed| {
        if tally.iterations.load(Ordering::Relaxed) < wanted {
            World::new(*seed).live(&tally, wanted);
        }
    });
    println!("{tally:?} in {:?}", begun.elapsed());
    assert!(tally.iterations.load(Ordering::Relaxed) >= wanted);
    assert!(tally.committed.load(Ordering::Relaxed) > 0 && tally.kept.load(Ordering::Relaxed) > 0);
}

impl World {
    fn new(seed: u64) -> Self {
        let mut sandbox = sandbox();
        sandbox.set("SOAK", sandbox.home().join("shared"));
        sandbox.set("SEED", seed.to_string());
        let agent = sandbox.add_script("soaked-agent", AGENT);
        let story = |number: usize| {
            let id = format!("US-{number:03}");
            format!("### {id}: Story {number}\n\n- [ ] Write it\n  - Verification: `grep -qx 'done {id}' s/{id}.txt`\n\n")
        };
        sandbox.write("PLAN.md", format!("# Plan\n\n{}", (1..=STORIES).map(story).collect::<String>()));
        let limits =
            "[limits]\ngrace = \"100ms\"\nturns = 1\nturn_time = \"1s\"\ncrashes = 0\nconsecutive_failures = 0\nno_changes = 0\n";
        sandbox.write(
            ".verdone/config.toml",
            format!("[protect]\nwork = [\"*\"]\n[run]\nland = \"auto\"\n[workspace]\nwritable = [\"~/shared\"]\n[agent]\nname = \"command\"\n[agent.command]\nrun = [{:?}]\n{limits}", agent.display().to_string()),
        );
        sandbox.write(".gitignore", "*.secret\n");
        sandbox.repo();
        sandbox.write("notes.txt", "the user's own\n");
        sandbox.write("key.secret", "ignored\n");
        let initial = sandbox.git(["rev-parse", "HEAD"]);
        Self { sandbox, random: Random::new(seed), initial }
    }

    /// Runs until the plan is done, `MOST_RUNS` is reached, or there were enough iterations; then checks everything.
    fn live(mut self, tally: &Tally, wanted: usize) {
        let mut counted = 0;
        for number in 1..=MOST_RUNS {
            let enough = tally.iterations.load(Ordering::Relaxed) + self.iterations() - counted >= wanted;
            let last = enough || number == MOST_RUNS;
            let code = if last { self.run_undisturbed() } else { self.run_disturbed(tally) };
            tally.runs.fetch_add(1, Ordering::Relaxed);
            let now = self.iterations();
            tally.iterations.fetch_add(now - counted, Ordering::Relaxed);
            counted = now;
            // After a killed run, things are in order again only after the next run.
            if code != -9 {
                self.assert_right(tally, false);
            }
            if code == 0 || last {
                break;
            }
        }
        self.run_undisturbed();
        tally.iterations.fetch_add(self.iterations() - counted, Ordering::Relaxed);
        self.assert_right(tally, true);
    }

    fn run_undisturbed(&self) -> i32 {
        // So that a soak with few iterations ends soon.
        self.sandbox.verdone(&*VERDONE, ["run", "--max-iterations", "3"]).code
    }

    fn run_disturbed(&mut self, tally: &Tally) -> i32 {
        if self.random.below(3) == 0 {
            let point = Point::ALL[self.random.below(Point::ALL.len() as u64) as usize];
            let fault = format!("VERDONE_FAULT=kill@{}:{}", point.name(), 1 + self.random.below(20));
            let code = self.sandbox.run("env", [&fault, VERDONE.as_str(), "run"]).code;
            tally.killed.fetch_add(usize::from(code == -9), Ordering::Relaxed);
            return code;
        }
        let run = self.sandbox.spawn(&*VERDONE, ["run"]);
        let until = Instant::now() + Duration::from_millis(200 + self.random.below(6000));
        while Instant::now() < until && !run.has_ended() {
            // The moment is what is random here.
            std::thread::sleep(Duration::from_millis(10));
        }
        let signal = [Signal::KILL, Signal::INT, Signal::TERM, Signal::HUP][self.random.below(4) as usize];
        if !run.has_ended() {
            let counter = if signal == Signal::KILL { &tally.killed } else { &tally.signalled };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        run.signal(signal);
        run.wait(PATIENCE).code
    }

    fn events(&self) -> Vec<Value> {
        let runs = fs::read_dir(self.sandbox.path(".verdone/runs")).into_iter().flatten().flatten();
        let mut dirs: Vec<_> = runs.map(|entry| entry.path()).collect();
        dirs.sort();
        let journals = dirs.iter().filter_map(|dir| fs::read_to_string(dir.join("journal.jsonl")).ok());
        journals.flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()).collect()
    }

    fn iterations(&self) -> usize {
        self.events().iter().filter(|event| event["event"] == "story_selected").count()
    }

    /// Invariants after every run that was not killed; at the end, also the expensive checks.
    fn assert_right(&self, tally: &Tally, at_the_end: bool) {
        let told = std::panic::AssertUnwindSafe(|| self.assert_invariants(tally, at_the_end));
        if let Err(panic) = std::panic::catch_unwind(told) {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let log = self.sandbox.verdone(&*VERDONE, ["log"]).stdout;
            panic!("{}\nthe last run:\n{log}", text.unwrap_or_default());
        }
    }

    fn assert_invariants(&self, tally: &Tally, at_the_end: bool) {
        let git = |arguments: &[&str]| self.sandbox.git(arguments);
        let history = || git(&["log", "--oneline", "--graph", "-20"]);
        self.sandbox.assert_no_survivors(PATIENCE);
        assert_eq!(self.sandbox.read("notes.txt"), "the user's own\n", "lost bytes");
        assert_eq!(self.sandbox.read("key.secret"), "ignored\n", "lost bytes");
        assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        let commits = git(&["log", "--format=%H %T %s"]);
        let mut done = BTreeMap::new();
        for line in commits.lines() {
            let [id, tree, subject] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let Some((story, _)) = subject.strip_prefix("feat(").and_then(|rest| rest.split_once(')')) else {
                assert!(id == self.initial, "{subject} is on the branch\n{}", history());
                continue;
            };
            let note = git(&["notes", "--ref=verdone", "show", id]);
            let note: Value = serde_json::from_str(&note).unwrap_or_else(|error| panic!("{subject}: {error}"));
            assert_eq!(note["tree"], tree, "{subject}\n{}", history());
            // A story is untested if ignore rules from the attempt affected it.
            let verified = note["proof"] == "verified";
            assert!(verified || note["proof"] == "untested", "{subject}: {note}");
            let twice = done.insert(story.to_owned(), (id.to_owned(), verified));
            assert_eq!(twice, None, "{story} was committed twice\n{}", history());
        }
        let plan = self.sandbox.read("PLAN.md");
        let ticked: BTreeSet<String> =
            plan.split("### ").filter(|part| part.contains("- [x]")).map(|part| part[..6].to_owned()).collect();
        assert_eq!(ticked, done.keys().cloned().collect(), "ticked is not what is committed");
        if !at_the_end {
            return;
        }
        assert_eq!(git(&["status", "--porcelain"]), "?? notes.txt");
        let events = self.events();
        let all = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
        let refs = git(&["for-each-ref", "--format=%(objectname)", "refs/verdone/attempts"]);
        for event in all("attempt_kept") {
            let kept = event["kept"].as_str().unwrap();
            assert!(refs.contains(kept), "{kept} was kept, and no ref holds it");
        }
        git(&["clone", "--quiet", ".", "../tmp/clean"]);
        for (story, (commit, verified)) in &done {
            if !verified {
                tally.untested.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            git(&["-C", "../tmp/clean", "checkout", "--quiet", commit]);
            let file = fs::read_to_string(self.sandbox.root().join(format!("tmp/clean/s/{story}.txt"))).unwrap_or_default();
            assert_eq!(file, format!("done {story}\n"), "false done: the check of {story} does not pass on its commit");
        }
        git(&["fsck", "--full", "--strict", "--no-dangling"]);
        tally.committed.fetch_add(done.len(), Ordering::Relaxed);
        tally.kept.fetch_add(all("attempt_kept").len(), Ordering::Relaxed);
        tally.dropped.fetch_add(all("attempt_dropped").len(), Ordering::Relaxed);
        tally.finished.fetch_add(usize::from(done.len() == STORIES), Ordering::Relaxed);
    }
}
