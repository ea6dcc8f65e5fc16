//! The scripted model server as a program: `verdone-model SCRIPT.toml [--log FILE] [--until-eof]`. Prints its port and serves until it is
//! terminated or, with --until-eof, its standard input ends. The log gets one JSON object per request.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use verdone_testkit::model_server::{ModelServer, Request, Script};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut script, mut log, mut until_eof) = (None, None, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--log" => log = Some(args.next().ok_or("--log needs a file")?),
            "--until-eof" => until_eof = true,
            _ if arg.starts_with('-') || script.is_some() => return Err(format!("{arg:?} means nothing here")),
            _ => script = Some(arg),
        }
    }
    let path = script.ok_or("usage: verdone-model SCRIPT.toml [--log FILE] [--until-eof]")?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let mut log = log.map(|path| File::create(&path).map_err(|error| format!("{path}: {error}"))).transpose()?;
    let server = ModelServer::start(Script::from_toml(&text).map_err(|error| format!("{path}: {error}"))?);
    writeln!(std::io::stdout(), "{}", server.port()).map_err(|error| format!("the port cannot be told: {error}"))?;
    if until_eof {
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    for number in 1.. {
        let request = server.request(number);
        if let Some(log) = &mut log {
            // One write per line, so that readers only see complete lines, even if we are terminated.
            let line = format!("{}\n", line(&request));
            log.write_all(line.as_bytes()).map_err(|error| format!("the log cannot be written: {error}"))?;
        }
    }
    Ok(())
}

fn line(request: &Request) -> serde_json::Value {
    let headers: serde_json::Map<_, _> =
        request.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    serde_json::json!({
        "number": request.number,
        "at": request.at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
        "kind": format!("{:?}", request.kind()).to_lowercase(),
        "unscripted": request.is_unscripted,
        "method": request.method,
        "path": request.path,
        "headers": headers,
        "body": request.body,
    })
}
