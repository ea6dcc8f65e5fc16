//! How long the real client takes from its start to its first request to the model, inside a workspace and outside.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use verdone_testkit::model_server::{ModelServer, Script, Turn};
use verdone_testkit::{Claude, Sandbox};

use super::{Settings, aim, head, median, progress, row};

const AIM: f64 = 1.1;
/// Prints the start time and becomes the client.
const START: &str = "date +%s%N; exec claude -p --permission-mode acceptEdits 'Say hello'";
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn measure(settings: &Settings) -> Result<String, String> {
    let Some(claude) = Claude::or_skip() else {
        return Ok("\nThe real client is not installed: `./scripts/test client` installs it.\n".to_owned());
    };
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for round in 0..=settings.rounds {
        progress("the client's start", round, settings.rounds);
        // Alternate the order, because the first one has colder caches.
        let mut order = [None, Some(settings.verdone.as_path())];
        if round % 2 == 0 {
            order.reverse();
        }
        for verdone in order {
            let took = start(&claude, verdone)?;
            if round > 0 {
                if verdone.is_some() { &mut inside } else { &mut outside }.push(took);
            }
        }
    }
    let mut text = head("The real client, from its start to its first request, in ms");
    row(&mut text, "outside", &outside, "");
    row(&mut text, "inside a workspace", &inside, &aim(median(&inside) / median(&outside), AIM, "outside"));
    Ok(text)
}

/// Returns milliseconds.
fn start(claude: &Claude, verdone: Option<&Path>) -> Result<f64, String> {
    let model = ModelServer::start(Script::new().otherwise(Turn::say("Hello.")));
    let mut sandbox = Sandbox::new().deadline(PATIENCE);
    claude.configure(&mut sandbox, &model);
    sandbox.write("README", "A project.\n");
    sandbox.write(".verdone/config.toml", "[agent]\nname = \"claude\"\n");
    sandbox.repo();
    let mut command = match verdone {
        Some(verdone) => {
            let mut command = sandbox.command(verdone);
            command.args(["workspace", "shell", "--", "sh"]);
            command
        }
        None => sandbox.command(sandbox.root().join("bin/sh")),
    };
    let output = command.args(["-c", START]).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let began = said.lines().next().and_then(|line| line.parse::<u64>().ok()).map(Duration::from_nanos);
    let turns = model.turns();
    let asked = turns.first().and_then(|request| request.at.duration_since(UNIX_EPOCH).ok());
    match asked.zip(began).and_then(|(asked, began)| asked.checked_sub(began)) {
        Some(took) if output.status.success() => Ok(took.as_secs_f64() * 1000.0),
        _ => Err(format!("the client asked nothing: {}\n{said}\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}
