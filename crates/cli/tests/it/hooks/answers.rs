//! Every real input in both modes.

use std::fs;
use std::path::Path;

use verdone_testkit::assert_file;

use crate::hooks::world::{MODES, Mode, World};

fn inputs() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/fixtures/hooks");
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() > 50, "the inputs are not there");
    found
}

#[test]
fn every_real_input_gets_an_answer_that_the_client_obeys() {
    let world = World::new();
    world.write(".verdone/guardrails.md", "- Run the linter before you finish.\n");
    let root = world.root.display().to_string();
    let mut text = String::new();
    for (name, input) in inputs() {
        let input = input.replace("/home/dev", &root);
        let event = name.split('.').next().unwrap();
        text.push_str(&format!("{name}\n"));
        for mode in MODES {
            let _ = fs::remove_dir_all(world.work.join(".verdone/sessions"));
            let said = world.send(mode, event, input.as_bytes());
            let name_of_mode = match mode {
                Mode::Run => "run",
                Mode::Session => "session",
            };
            let said = said.map_or("(silent)".to_owned(), |said| said.to_string().replace(&root, "/home/dev"));
            text.push_str(&format!("  {name_of_mode:<8} {said}\n"));
            let sessions = fs::read_dir(world.work.join(".verdone/sessions")).unwrap().count();
            assert_eq!(sessions, 2, "{name}: one session and its .gitignore, and no fault");
        }
    }
    assert_file(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/hook-answers.txt"), &text);
    assert_eq!(fs::read_dir(world.work.join(".git")).unwrap().count(), 1, "git's folder is left alone");
}

#[test]
fn without_a_verdone_folder_or_beside_a_run_an_installed_hook_is_silent() {
    let mut worlds = [World::without_verdone(), World::new()];
    worlds[1].set("VERDONE_RUN", "20261115-020338-5f3a");
    for world in &worlds {
        for (name, input) in inputs() {
            let event = name.split('.').next().unwrap();
            let said = world.send(Mode::Session, event, input.as_bytes());
            assert_eq!(said, None, "{name}");
            assert_eq!(world.send(Mode::Session, event, b"{ broken"), None, "{name}");
        }
        assert!(!world.work.join(".verdone/sessions").exists());
    }
    // The hook of a run answers anyway.
    let push = serde_json::json!({ "command": "git push" });
    worlds[1].judge(Mode::Run, "Bash", &push).denied_by("git-push");
}

#[test]
fn the_project_is_found_by_the_clients_variable_and_not_by_where_the_agent_is() {
    let mut world = World::new();
    let elsewhere = World::without_verdone();
    let push = serde_json::json!({ "command": "git push" });
    let mut input = world.event("PreToolUse", "Bash", &push);
    input["cwd"] = elsewhere.work.display().to_string().into();
    assert!(world.ask(Mode::Session, &input).is_some());
    world.set("CLAUDE_PROJECT_DIR", &elsewhere.work.display().to_string());
    assert!(world.ask(Mode::Session, &input).is_none());
    // Subfolders belong to the folder that has `.verdone/`.
    fs::create_dir(world.work.join("sub")).unwrap();
    let sub = world.path("sub");
    world.set("CLAUDE_PROJECT_DIR", &sub);
    assert!(world.ask(Mode::Session, &input).is_some());
}
