//! `scripts/bench hooks`: the time of one hook call, next to an empty process that reads the same input, in one interleaved run.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::random::Random;

/// How many files the session has read.
const FEW: usize = 10;
const MANY: usize = 100_000;

struct Call {
    name: &'static str,
    program: PathBuf,
    /// Standard input.
    input: PathBuf,
    /// What has to be in the answer; a fast failure is no result.
    answer: &'static str,
    /// At most that many empty processes, where there is an aim.
    aim: Option<f64>,
    samples: Vec<f64>,
}

pub(crate) fn measure(mut args: impl Iterator<Item = String>) -> Result<String, String> {
    let (mut verdone, mut empty, mut rounds) = (None, None, 200_usize);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let absolute = || Path::new(&value).canonicalize().map_err(|error| format!("{value}: {error}"));
        match name.as_str() {
            "--verdone" => verdone = Some(absolute()?),
            "--empty" => empty = Some(absolute()?),
            "--rounds" => rounds = value.parse().map_err(|_| format!("{value:?} is not a number"))?,
            "--loop" => {}
            unknown => return Err(format!("unknown option {unknown}")),
        }
    }
    let verdone = verdone.ok_or("--verdone PATH is missing")?;
    let empty = empty.ok_or("--empty PATH is missing")?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let project = place.path().canonicalize().map_err(|error| error.to_string())?;
    let mut calls = prepare(&project, &verdone, &empty)?;
    let mut order: Vec<usize> = (0..calls.len()).collect();
    let mut random = Random::new();
    // The first rounds warm caches and are not counted.
    for round in 0..rounds + 5 {
        random.shuffle(&mut order);
        for &n in &order {
            let time = call(&calls[n], &project)?;
            if round >= 5 {
                calls[n].samples.push(time);
            }
        }
    }
    if rounds == 0 {
        return Err("--rounds has to be above 0".to_owned());
    }
    Ok(report(&mut calls, rounds))
}

fn prepare(project: &Path, verdone: &Path, empty: &Path) -> Result<Vec<Call>, String> {
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(project.join(".git")).map_err(io)?;
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").map_err(io)?;
    fs::create_dir(project.join(".verdone")).map_err(io)?;
    fs::write(project.join(".verdone/config.toml"), "plan = \"PLAN.md\"\n[limits]\nturns = 4\n").map_err(io)?;
    fs::write(project.join("a.rs"), "fn main() {}\n").map_err(io)?;
    let shown = project.display();
    let input = |name: &str, session: &str, rest: &str| -> Result<PathBuf, String> {
        let path = project.join(format!("{name}.json"));
        let text = format!("{{\"session_id\":\"{session}\",\"cwd\":\"{shown}\",{rest}}}");
        fs::write(&path, text).map_err(io)?;
        Ok(path)
    };
    let edit = format!(
        "\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Edit\",\
         \"tool_input\":{{\"file_path\":\"{shown}/a.rs\",\"old_string\":\"main\",\"new_string\":\"start\"}}"
    );
    let bash = "\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\
                \"tool_input\":{\"command\":\"cd src && cargo test --workspace 2>&1 | tail -n 20 > /tmp/out.log\"}";
    let read = |path: &str| {
        format!(
            "\"hook_event_name\":\"PostToolUse\",\"tool_name\":\"Read\",\"tool_input\":{{\"file_path\":\"{path}\"}},\
             \"tool_response\":{{\"type\":\"text\"}}"
        )
    };
    let tests = "\"hook_event_name\":\"PostToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"cargo test\"},\
                 \"tool_response\":{\"stdout\":\"running 1 test\\ntest a ... ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; \
                 0 measured; 0 filtered out; finished in 0.00s\\n\",\"stderr\":\"\"}";
    for (session, count) in [("few", FEW), ("many", MANY)] {
        // The hook makes the memory's first file, so that its place is the hook's business alone.
        let learn = input("learn", session, &read(&format!("{shown}/a.rs")))?;
        run(verdone, &learn, project)?;
        let known = project.join(".verdone/sessions").join(session).join("known");
        for n in 0..count {
            let shard = known.join(format!("{:02x}", n % 256));
            fs::create_dir_all(&shard).map_err(io)?;
            File::create(shard.join(format!("{n:062x}"))).map_err(io)?;
        }
    }
    let nothing = project.join("nothing");
    fs::write(&nothing, "").map_err(io)?;
    let case = |name, input: PathBuf, answer, aim| Call {
        name,
        program: verdone.to_owned(),
        input,
        answer,
        aim: Some(aim),
        samples: Vec::new(),
    };
    Ok(vec![
        Call { name: "empty process", program: empty.to_owned(), input: nothing, answer: "", aim: None, samples: Vec::new() },
        case("PreToolUse Edit, 10 files read", input("edit-few", "few", &edit)?, "\"allow\"", 2.0),
        case("PreToolUse Edit, 100,000 files read", input("edit-many", "many", &edit)?, "\"allow\"", 2.0),
        case("PreToolUse Bash", input("bash", "few", bash)?, "\"allow\"", 3.0),
        case("PostToolUse Read", input("read", "few", &read(&format!("{shown}/a.rs")))?, "", 2.0),
        case("PostToolUse Bash, tests", input("tests", "few", tests)?, "", 3.0),
        case("Stop", input("stop", "few", "\"hook_event_name\":\"Stop\"")?, "", 2.0),
    ])
}

fn call(call: &Call, project: &Path) -> Result<f64, String> {
    let started = Instant::now();
    let said = run(&call.program, &call.input, project)?;
    let time = started.elapsed().as_secs_f64() * 1_000.0;
    let right = if call.answer.is_empty() { said.is_empty() } else { said.contains(call.answer) };
    let fault = project.join(".verdone/sessions/faults.jsonl");
    if right && !fault.exists() { Ok(time) } else { Err(format!("{}: it answered {said:?}", call.name)) }
}

fn run(program: &Path, input: &Path, project: &Path) -> Result<String, String> {
    let stdin = File::open(input).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["hook", "--run"]).stdin(stdin).stderr(Stdio::null()).env_clear();
    command.env("HOME", project).env("CLAUDE_PROJECT_DIR", project);
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn report(calls: &mut [Call], rounds: usize) -> String {
    for call in calls.iter_mut() {
        call.samples.sort_by(f64::total_cmp);
    }
    let at = |call: &Call, percent: usize| call.samples[(call.samples.len() - 1) * percent / 100];
    let empty = at(&calls[0], 50);
    let mut text =
        format!("One hook call, in ms ({rounds} samples each)\n{:<38} {:>8} {:>8} {:>8}\n", "", "median", "p99", "x empty");
    for call in calls.iter() {
        let (middle, times) = (at(call, 50), at(call, 50) / empty);
        let aim = call.aim.map(|aim| if times <= aim { format!("  aim {aim}x: kept") } else { format!("  aim {aim}x: MISSED") });
        let _ = writeln!(text, "{:<38} {middle:>8.3} {:>8.3} {times:>8.2}{}", call.name, at(call, 99), aim.unwrap_or_default());
    }
    text
}
