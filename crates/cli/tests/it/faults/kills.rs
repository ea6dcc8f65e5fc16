//! `kill -9` at random moments: Verdone, the agent, a git process, or everything at once. 12 cases in the suite; `VERDONE_KILLS` sets
//! another number.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use verdone_testkit::{Output, Running, Signal};

use crate::faults::git_calls::GitCalls;
use crate::faults::world::{Kind, PATIENCE, Random, THREADS, World, first_seed, in_parallel, wanted};

/// Lets git work for a moment, then kills it with its wrapper.
const KILL_GIT: &str = "exec 3<&0; $real \"$@\" <&3 & sleep @LIVES@; kill -9 $!; kill -9 $$";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Verdone,
    Agent,
    Git,
    Everything,
}

/// Everything that the seed determines.
#[derive(Debug, Clone, Copy)]
struct Case {
    #[expect(dead_code, reason = "told where the case fails")]
    seed: u64,
    victim: Victim,
    kind: Kind,
    /// Whether to disturb `verdone land` instead of the run before it.
    in_landing: bool,
    /// Up to three kills in a row, each in thousandths of an undisturbed run's duration.
    moments: [u64; 3],
    kills: usize,
    /// How long a git process lives before it is killed.
    git_lives: &'static str,
}

impl Case {
    fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let victim = [Victim::Verdone, Victim::Git, Victim::Everything, Victim::Agent][(seed % 4) as usize];
        let kind = Kind::ALL[(seed / 4 % 4) as usize];
        let in_landing = !kind.lands_itself && victim != Victim::Agent && random.below(3) == 0;
        Self {
            seed,
            victim,
            kind,
            in_landing,
            moments: [0; 3].map(|_| random.below(1000)),
            kills: [1, 1, 1, 2, 3][random.below(5) as usize],
            git_lives: ["0", "0.002", "0.004", "0.008"][random.below(4) as usize],
        }
    }
}

/// How long an undisturbed command takes, and how many git processes it starts.
#[derive(Debug, Clone, Copy)]
struct Measured {
    run: (Duration, u64),
    land: (Duration, u64),
}

impl Measured {
    fn with_kind(kind: Kind) -> Self {
        static MEASURED: [OnceLock<Measured>; 4] = [const { OnceLock::new() }; 4];
        *MEASURED[kind.number()].get_or_init(|| {
            let world = World::with_kind(kind);
            let measure = |command: &str| {
                let calls = GitCalls::new(&world, 0, true, ":");
                let output = world.verdone(&[command]);
                assert!(output.code == 0 || (command == "land" && kind.lands_itself), "{}", output.transcript());
                (output.duration, calls.end())
            };
            Self { run: measure("run"), land: measure("land") }
        })
    }
}

#[test]
fn after_a_kill_at_a_random_moment_the_next_run_ends_as_an_undisturbed_one() {
    let (first, count) = (first_seed(), wanted("VERDONE_KILLS", 12));
    println!("seeds {first} to {}; one again: VERDONE_SEED=N VERDONE_KILLS=1", first + count as u64 - 1);
    let cases: Vec<Case> = (first..).take(count).map(Case::from_seed).collect();
    let killed = AtomicUsize::new(0);
    let begun = Instant::now();
    in_parallel(&cases, THREADS, |case| {
        let world = World::with_kind(case.kind);
        if case.in_landing {
            world.run().assert_code(0);
        }
        let mut said = String::new();
        for moment in &case.moments[..case.kills] {
            let (output, hit) = disturb(&world, *case, *moment);
            assert!(output.code != 101 && !output.stderr.contains("panicked"), "{}", output.transcript());
            said += &output.transcript();
            killed.fetch_add(usize::from(hit), Ordering::Relaxed);
            world.sandbox.assert_no_survivors(PATIENCE);
            world.assert_nothing_mounted();
            world.assert_mine(&said);
        }
        world.assert_ends_as_undisturbed_after(said);
    });
    let (killed, planned) = (killed.into_inner(), cases.iter().map(|case| case.kills).sum::<usize>());
    println!("{count} cases, {killed} of {planned} kills hit, {:?}", begun.elapsed());
    assert!(killed * 2 > planned, "only {killed} of {planned} kills hit anybody");
}

/// Runs a command and kills one of its processes; returns whether one was killed.
fn disturb(world: &World, case: Case, moment: u64) -> (Output, bool) {
    let (command, (whole, calls)) = {
        let measured = Measured::with_kind(case.kind);
        if case.in_landing { ("land", measured.land) } else { ("run", measured.run) }
    };
    if case.victim == Victim::Git {
        let at = 1 + moment * calls / 1000;
        let calls = GitCalls::new(world, at, true, &KILL_GIT.replace("@LIVES@", case.git_lives));
        let output = world.verdone(&[command]);
        return (output, calls.end() >= at);
    }
    let run = world.start(command);
    // The random moment is the point of this test, so there is no event to wait for.
    std::thread::sleep(whole * u32::try_from(moment).unwrap() / 1000);
    let mut hit = !run.has_ended();
    match case.victim {
        Victim::Verdone => run.signal(Signal::KILL),
        Victim::Everything => kill_all(world),
        Victim::Agent => hit = kill_agent(world, &run),
        Victim::Git => unreachable!("killed by its wrapper"),
    }
    (run.wait(PATIENCE), hit)
}

/// Kills every process of the sandbox, including those started meanwhile.
pub(crate) fn kill_all(world: &World) {
    loop {
        let all = world.sandbox.survivors();
        if all.is_empty() {
            return;
        }
        for found in all {
            kill(found.pid);
        }
    }
}

/// Waits until an agent is working, then kills it.
fn kill_agent(world: &World, run: &Running) -> bool {
    while !run.has_ended() {
        let agents: Vec<u32> = world
            .sandbox
            .survivors()
            .iter()
            .filter(|found| found.command.contains(" scripted-agent "))
            .map(|found| found.pid)
            .collect();
        if !agents.is_empty() {
            agents.into_iter().for_each(kill);
            return true;
        }
    }
    false
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The process may have ended already.
        let _ = kill_process(pid, Signal::KILL);
    }
}
