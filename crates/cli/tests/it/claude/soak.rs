//! Many stories with the real client while the API, the client and Verdone fail at random: 24 stories by default, 200 with
//! `VERDONE_FAULTS=all`. `VERDONE_SEED` repeats a run.

#![expect(clippy::print_stdout, reason = "a seed that is not told cannot be repeated")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_testkit::model_server::{Answer, ApiError, Fault, Script, Stall, Times, Turn, When};
use verdone_testkit::{Running, Signal};

use crate::claude::trouble::{client, send};
use crate::claude::world::{PATIENCE, World};

const SETTINGS: &str = "[agent]\nname = \"claude\"\n[limits]\nturn_time = \"4s\"\ngrace = \"2s\"\nmax_iterations = 0\ncrashes = 0\n\
                        consecutive_failures = 0\nno_changes = 0\nno_progress = 0\n";
/// The maximum time per story, on a loaded machine.
const PER_STORY: Duration = Duration::from_secs(30);

/// What goes wrong in the first turn of a story; after that, the agent is honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    Nothing,
    /// Claims to be done without doing anything.
    Lie,
    Wrong,
    /// Leaves a process behind in a separate process session.
    Leftover,
    Overload,
    /// The connection breaks in the middle of an answer.
    Broken,
    /// Longer than the turn's time limit.
    Hang,
    /// Waits for the test, which then kills a process.
    Kill,
}

impl Trouble {
    fn drawn(random: &mut Random) -> Self {
        match random.below(50) {
            0..5 => Self::Lie,
            5..10 => Self::Wrong,
            10..13 => Self::Leftover,
            13..16 => Self::Overload,
            16..18 => Self::Broken,
            18..20 => Self::Hang,
            20..25 => Self::Kill,
            _ => Self::Nothing,
        }
    }

    fn answers(self, id: &str) -> Vec<Answer> {
        match self {
            Self::Nothing => vec![],
            Self::Lie => vec![Turn::say("It is done, trust me.").into()],
            Self::Wrong => vec![Turn::write(file(id), "wrong\n").into(), Turn::say("It is done.").into()],
            Self::Leftover => vec![Turn::bash("setsid sleep 700 > /dev/null 2>&1 & echo started").into()],
            Self::Overload => vec![ApiError::status(529).into()],
            Self::Broken => vec![Turn::say("Half of an answer").fault(Fault::Drop).into()],
            Self::Hang => vec![Turn::say("Too late.").stall(Stall::Seconds(60.0)).into()],
            Self::Kill => vec![Turn::say("Half of an answer").fault(Fault::Stall(Stall::UntilReleased)).into()],
        }
    }
}

fn file(id: &str) -> String {
    format!("s/{id}.txt")
}

fn id(number: usize) -> String {
    format!("US-{number:03}")
}

#[test]
fn many_stories_with_random_faults_all_end_right_and_memory_stays_flat() {
    let all = std::env::var_os("VERDONE_FAULTS").is_some_and(|value| value == "all");
    let stories = if all { 200 } else { 24 };
    let mut random = Random::from_time();
    println!("VERDONE_SEED={}", random.seed);
    let troubles: Vec<Trouble> = (0..stories).map(|_| Trouble::drawn(&mut random)).collect();
    let (mut plan, mut script) = ("# Plan\n\n".to_owned(), Script::new());
    for (number, trouble) in (1..).zip(&troubles) {
        let id = id(number);
        plan +=
            &format!("### {id}: Story {number}\n\n- [ ] Write it\n  - Verification: `grep -qx 'done {id}' {}`\n\n", file(&id));
        script = script.on(&id, trouble.answers(&id));
        let honest = Turn::write(file(&id), &format!("done {id}\n"));
        script = script.rule(When { after_tool: Some(false), ..When::prompt(&id) }, Times::Always, honest.clone());
        // The command's result mentions the process that it left behind; the honest work follows that result.
        script = script.rule(When { tool_result: Some("started".to_owned()), ..When::prompt(&id) }, Times::Always, honest);
        script = script.rule(When::prompt(&id), Times::Always, Turn::say("It is done."));
    }
    let Some(world) = World::with(&[(".verdone/config.toml", SETTINGS), ("PLAN.md", &plan)], script) else { return };
    let mut soak = Soak { world, random, stories, memory: BTreeMap::new(), killed: BTreeMap::new() };
    let begun = Instant::now();
    soak.run();
    let took = begun.elapsed();
    let mut drawn: BTreeMap<String, usize> = BTreeMap::new();
    for trouble in &troubles {
        *drawn.entry(format!("{trouble:?}")).or_default() += 1;
    }
    println!("{stories} stories in {took:?}: {drawn:?}, killed {:?}", soak.killed);
    soak.assert_right();
    soak.assert_flat();
}

struct Soak {
    world: World,
    random: Random,
    stories: usize,
    /// Memory in kilobytes by number of completed stories.
    memory: BTreeMap<usize, u64>,
    killed: BTreeMap<&'static str, usize>,
}

impl Soak {
    /// Runs until the plan is done, whichever process is killed on the way.
    fn run(&mut self) {
        let until = Instant::now() + PATIENCE + PER_STORY * u32::try_from(self.stories).unwrap();
        loop {
            let run = self.world.start(&["run"]);
            while !run.has_ended() {
                assert!(Instant::now() < until, "{} of {} stories are done", self.done(), self.stories);
                if self.world.model.stalled() > 0 {
                    self.kill_somebody(&run);
                }
                self.weigh(run.pid());
                // Which process is measured, and when, does not matter.
                std::thread::sleep(Duration::from_millis(50));
            }
            let output = run.wait(PATIENCE);
            self.world.sandbox.assert_no_survivors(PATIENCE);
            match output.code {
                0 => return,
                -9 | 130 | 143 => {}
                code => panic!("a run ended with {code}\n{}", output.transcript()),
            }
        }
    }

    /// Kills Verdone itself only in the first quarter, so that its memory is then measured in a single process.
    fn kill_somebody(&mut self, run: &Running) {
        let choices = if self.done() * 4 < self.stories { 4 } else { 1 };
        let whom = match self.random.below(choices) {
            0 => {
                if let Some(pid) = client(&self.world) {
                    send(pid, "-KILL");
                }
                "client"
            }
            1 | 2 => {
                run.signal(Signal::KILL);
                "verdone"
            }
            _ => {
                run.signal(Signal::TERM);
                "verdone, in order"
            }
        };
        *self.killed.entry(whom).or_default() += 1;
        self.world.model.release();
        let until = Instant::now() + PATIENCE;
        while self.world.model.stalled() > 0 {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn weigh(&mut self, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        if let Some(kilobytes) = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()) {
            self.memory.insert(self.done(), kilobytes);
        }
    }

    fn events(&self) -> Vec<Value> {
        let runs = fs::read_dir(self.world.sandbox.path(".verdone/runs")).into_iter().flatten().flatten();
        let journals = runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok());
        journals.flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()).collect()
    }

    fn done(&self) -> usize {
        let runs = fs::read_dir(self.world.sandbox.path(".verdone/runs")).into_iter().flatten().flatten();
        let journals = runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok());
        journals.map(|text| text.matches("\"event\":\"committed\"").count()).sum()
    }

    fn assert_right(&self) {
        let git = |arguments: &[&str]| self.world.sandbox.git(arguments);
        assert_eq!(git(&["status", "--porcelain"]), "");
        let log = git(&["log", "--format=%H %T %s"]);
        let mut seen = BTreeSet::new();
        for line in log.lines() {
            let [commit, tree, subject] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let Some((story, _)) = subject.strip_prefix("feat(").and_then(|rest| rest.split_once(')')) else {
                assert_eq!(subject, "initial");
                continue;
            };
            let note: Value = serde_json::from_str(&git(&["notes", "--ref=verdone", "show", commit])).unwrap();
            assert_eq!((&note["tree"], &note["proof"]), (&tree.into(), &"verified".into()), "{subject}");
            assert_eq!(git(&["show", &format!("{commit}:{}", file(story))]), format!("done {story}"));
            assert!(seen.insert(story.to_owned()), "{story} was committed twice");
        }
        assert_eq!(seen.len(), self.stories);
        let plan = self.world.sandbox.read("PLAN.md");
        assert_eq!(plan.matches("- [x]").count(), self.stories);
        let events = self.events();
        let turns = events.iter().filter(|event| event["event"] == "turn_ended");
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for turn in turns {
            let outcome = &turn["outcome"];
            let word = outcome.as_object().and_then(|fields| fields.keys().next().cloned());
            *outcomes.entry(word.unwrap_or_else(|| outcome.to_string())).or_default() += 1;
        }
        println!("turns: {outcomes:?}");
        assert!(!outcomes.contains_key("guard_dead") && !outcomes.contains_key("not_runnable"), "{outcomes:?}");
    }

    /// Compares the memory in the middle of the last quarter with the middle of the second.
    fn assert_flat(&self) {
        let middle = |from: usize, to: usize| {
            let mut weights: Vec<u64> = self.memory.range(from..to).map(|(_, weight)| *weight).collect();
            weights.sort_unstable();
            weights.get(weights.len() / 2).copied().unwrap_or_default()
        };
        let quarter = self.stories / 4;
        let (second, last) = (middle(quarter, 2 * quarter), middle(3 * quarter, 4 * quarter));
        println!("memory of the second quarter {second} kB, of the last {last} kB");
        assert!(second > 0 && last > 0, "{:?}", self.memory);
        assert!(last * 10 <= second * 13, "it grew from {second} kB to {last} kB: {:?}", self.memory);
    }
}

/// A pseudo-random sequence that is the same for the same seed.
struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    fn from_time() -> Self {
        let named = std::env::var("VERDONE_SEED").ok().map(|text| text.parse().expect("VERDONE_SEED is a number"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed: u64 = named.unwrap_or(now.as_micros() as u64);
        Self { seed, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % limit
    }
}
