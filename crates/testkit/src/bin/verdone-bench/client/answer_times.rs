//! Sits between a run and the client, forwards every line, and records how long each answer of the run took: from the last byte of the
//! request's line to the last byte of the answer's, including both pipes and scheduling.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// `tap CLIENT LOG ARGUMENTS`.
pub(crate) fn tap(mut args: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let (client, log) = args.next().zip(args.next()).ok_or("tap needs a client and a log")?;
    let error = |error: std::io::Error| error.to_string();
    let args: Vec<String> = args.collect();
    if args == ["--version"] {
        let status = Command::new(client).args(args).status().map_err(error)?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut log = File::create(log).map_err(error)?;
    let mut child = Command::new(client).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(error)?;
    let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("the client has no pipes")?;
    let asked: Mutex<HashMap<String, (String, Instant)>> = Mutex::new(HashMap::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut to = to;
            pass(std::io::stdin().lock(), &mut to, |line, now| {
                let id = line["response"]["request_id"].as_str().unwrap_or_default();
                if let Some((event, since)) = asked.lock().ok().and_then(|mut asked| asked.remove(id)) {
                    let _ = writeln!(log, "{event} {:.4}", (now - since).as_secs_f64() * 1000.0);
                }
            });
        });
        let mut out = std::io::stdout().lock();
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let said: Value = serde_json::from_slice(&line).unwrap_or_default();
            if said["request"]["subtype"] == "hook_callback"
                && let (Some(id), Some(event)) = (said["request_id"].as_str(), said["request"]["callback_id"].as_str())
                && let Ok(mut asked) = asked.lock()
            {
                // Written while holding the lock, so that no answer can be looked up before its start time is stored.
                let _ = out.write_all(&line).and_then(|()| out.flush());
                asked.insert(id.to_owned(), (event.to_owned(), Instant::now()));
            } else if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                break;
            }
            line.clear();
        }
    });
    let status = child.wait().map_err(error)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn pass(mut from: impl BufRead, to: &mut impl Write, mut on: impl FnMut(&Value, Instant)) {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let now = Instant::now();
        on(&serde_json::from_slice(&line).unwrap_or_default(), now);
        if to.write_all(&line).and_then(|()| to.flush()).is_err() {
            return;
        }
        line.clear();
    }
}
