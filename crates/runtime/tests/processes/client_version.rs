//! What a client says about its version, with programs that only have one.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use verdone_core::config::ClaudeAgent;
use verdone_runtime::agent::check_claude;
use verdone_runtime::base::finding::{Finding, Health};

use crate::alone;

fn check(script: &str, patience: Duration) -> Finding {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("claude");
    std::fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let env = [("ANTHROPIC_API_KEY".to_owned(), "opens-nothing".to_owned())].into();
    let config = ClaudeAgent { binary: binary.display().to_string(), env, ..ClaudeAgent::default() };
    check_claude(&config, dir.path(), patience)
}

#[test]
fn a_client_that_hangs_instead_of_telling_its_version_is_reported_as_such() {
    let _one = alone();
    let begun = Instant::now();
    let found = check("echo 'Checking for updates'; sleep 600", Duration::from_millis(300));
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_eq!(found.health, Health::Bad);
    assert!(found.message.contains("--version did not end within 300ms: Checking for updates"), "{found:?}");
    assert!(found.hints[0].contains("by hand"), "{found:?}");
}

#[test]
fn a_client_that_fails_says_how() {
    let _one = alone();
    for (script, why) in [
        ("echo no license >&2; exit 3", "--version failed with exit code 3: no license"),
        ("exit 3", "--version failed with exit code 3"),
        ("kill -9 $$", "--version was ended by signal 9"),
        ("echo Claude", "--version printed no version: Claude"),
    ] {
        let found = check(script, Duration::from_mins(1));
        assert!(found.health == Health::Bad && found.message.ends_with(why), "{found:?}");
    }
}

#[test]
fn a_client_that_is_newer_than_the_tested_one_gets_a_note() {
    let _one = alone();
    for (version, health, said) in [
        ("2.1.325", Health::Good, "Claude Code 2.1.325"),
        ("2.1.324", Health::Good, "Claude Code 2.1.324"),
        ("2.1.326", Health::Neutral, "Claude Code 2.1.326 is newer than 2.1.325"),
        ("3.0.0", Health::Neutral, "Claude Code 3.0.0 is newer than 2.1.325"),
        ("2.1.100", Health::Bad, "Claude Code 2.1.100 is too old"),
    ] {
        let found = check(&format!("echo '{version} (Claude Code)'"), Duration::from_mins(1));
        assert!(found.health == health && found.message.starts_with(said), "{found:?}");
    }
}
