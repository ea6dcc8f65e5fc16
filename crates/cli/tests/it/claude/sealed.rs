//! The client in a sealed workspace: everything it needs works, and whatever it destroys, plants or reads stays inside.
//!
//! Commands that the policy would deny are in scripts, which it cannot inspect: here the kernel has to enforce the limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use verdone_testkit::model_server::{Request, Script, Turn};

use crate::claude::guarded::{done, events_named, not_done, remote_of, results, steps, tree, user_settings};
use crate::claude::world::{ONE, PATIENCE, World};

const AGENT: &str = "[agent]\nname = \"claude\"\n";
/// For an agent that never succeeds.
const ONCE: &str = "[agent]\nname = \"claude\"\n[limits]\nattempts = 1\nturns = 1\n";

/// A model that writes a script and runs it.
fn hidden(script: &str) -> [Turn; 2] {
    [Turn::write("hidden.sh", script), Turn::bash("sh ./hidden.sh 2>&1; echo ended")]
}

/// A project with a dependency that git ignores, and a story whose check needs it.
fn with_a_package(script: Script) -> Option<World> {
    let plan = "# Plan\n\n### US-001: Greet\n\n- [ ] Write the greeting\n  - Verification: `sh test.sh`\n";
    let files = [
        (".verdone/config.toml", AGENT),
        ("PLAN.md", plan),
        (".gitignore", "node_modules/\n"),
        ("test.sh", "node_modules/.bin/has greeting hello\n"),
        ("greeting", "none\n"),
    ];
    let world = World::with(&files, script)?;
    world.sandbox.write_script("node_modules/.bin/has", "#!/bin/sh\ngrep -q \"$2\" \"$1\" && echo '1 passed'\n");
    Some(world)
}

/// The files of the checkout and the home folder that no agent may change: all except those that Verdone and the client write.
fn users_files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let home = world.sandbox.home();
    let own = |path: &Path| {
        let text = path.to_string_lossy();
        ["/.git/", "/.verdone/runs", "/.verdone/cache", "/.verdone/.gitignore", "/.verdone/guardrails.md"]
            .iter()
            .any(|part| text.contains(part))
            || [".local/state/verdone", ".claude/projects"].iter().any(|part| path.starts_with(home.join(part)))
    };
    let all = tree(&world.sandbox.work()).into_iter().chain(tree(&home));
    all.filter(|(path, _)| !own(path)).collect()
}

#[track_caller]
fn assert_same(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) {
    let changed: Vec<_> = before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).map(|(path, _)| path).collect();
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(changed.is_empty() && new.is_empty(), "changed: {changed:?}, new: {new:?}");
}

#[test]
fn the_client_edits_tests_with_the_users_packages_and_commits_and_the_files_count() {
    let edit = json!({ "file_path": "greeting", "old_string": "none", "new_string": "hello" });
    let script = steps([
        Turn::call("Read", json!({ "file_path": "greeting" })),
        Turn::bash("sh test.sh"),
        Turn::call("Edit", edit),
        Turn::bash("sh test.sh && echo planted > node_modules/planted"),
        Turn::bash("git add --all && git commit --quiet --message 'a commit of my own' && git log -1 --format=%s"),
        Turn::say("Done."),
    ]);
    let Some(world) = with_a_package(script) else { return };
    let before = users_files(&world);
    done(&world);
    assert!(results(&world, 2)[0].is_error, "red before the edit: {:?}", results(&world, 2));
    assert!(results(&world, 4)[0].text.contains("1 passed"), "{:?}", results(&world, 4));
    assert!(results(&world, 5)[0].text.contains("a commit of my own"), "{:?}", results(&world, 5));
    assert_eq!(world.sandbox.git(["show", "HEAD:greeting"]), "hello");
    assert_eq!(world.sandbox.git(["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\ngreeting");
    let everywhere = world.sandbox.git(["log", "--all", "--format=%s"]);
    assert!(!everywhere.contains("of my own"), "{everywhere}");
    // Landing writes only the files of the commit.
    let mut after = users_files(&world);
    for path in ["PLAN.md", "greeting"] {
        let path = world.sandbox.path(path);
        assert_ne!(after.get(&path), before.get(&path), "{}", path.display());
        after.insert(path.clone(), before[&path].clone());
    }
    assert_same(&before, &after);
}

#[test]
fn whatever_the_client_deletes_is_still_there_for_the_user() {
    let ruin = [
        ("find", "find . -mindepth 1 -delete".to_owned()),
        ("git", "rm -rf .git".to_owned()),
        ("home", "rm -rf \"$HOME\"/* \"$HOME\"/.[!.]*; rm -rf \"$HOME\"".to_owned()),
        ("up", "rm -rf .. ; rm -rf ../*".to_owned()),
        (
            "python3",
            "python3 -c 'import os, shutil\nfor n in os.listdir(): shutil.rmtree(n, True) if os.path.isdir(n) else os.remove(n)'"
                .to_owned(),
        ),
        ("perl", "perl -MFile::Path -e 'File::Path::remove_tree(glob(\".* *\"))'".to_owned()),
        ("rsync", "mkdir /tmp/empty && rsync -a --delete /tmp/empty/ ./".to_owned()),
    ];
    // One attempt for each; every attempt starts with all files again.
    let seen = "test -f README.md && echo readme is there; ls -d .git/config .git/base-objects/* src/deep/file $HOME/notes";
    let attempt = |command: &str| {
        let script = format!("{seen}\necho --- now\n{command}\necho --- after\n{seen}\n");
        [Turn::write("/tmp/ruin.sh", &script), Turn::bash("sh /tmp/ruin.sh 2>&1"), Turn::say("Done.")]
    };
    let script = steps(ruin.iter().flat_map(|(_, command)| attempt(command)));
    let config = format!("{AGENT}[limits]\nattempts = {}\nturns = 1\nno_changes = 0\nconsecutive_failures = 0\n", ruin.len());
    let files = [(".verdone/config.toml", config.as_str()), ("PLAN.md", ONE), ("src/deep/file", "mine\n")];
    let Some(world) = World::with(&files, script) else { return };
    for tool in ["python3", "perl", "rsync"] {
        world.sandbox.add_program(tool, &Path::new("/usr/bin").join(tool));
    }
    fs::write(world.sandbox.home().join("notes"), "mine\n").unwrap();
    world.sandbox.write("untracked", "not committed\n");
    let before = users_files(&world);
    let output = world.start(&["run"]).wait(PATIENCE * 5);
    output.assert_code(4);
    world.assert_scripted();
    world.sandbox.assert_no_survivors(PATIENCE);
    assert_same(&before, &users_files(&world));
    assert_eq!(world.subjects().len(), 1);
    world.sandbox.git(["fsck", "--strict", "--no-dangling"]);
    for (number, (tool, _)) in ruin.iter().enumerate() {
        let told = &results(&world, number * 3 + 2)[0].text;
        let (full, left) = told.split_once("--- now").unwrap_or_else(|| panic!("{tool}: {told}\n{}", output.transcript()));
        assert!(full.contains("readme is there") && full.contains("src/deep/file") && full.contains("notes"), "{tool}: {told}");
        let left = left.split_once("--- after").map_or("", |(_, left)| left);
        let gone = match *tool {
            "git" => !left.contains(".git/config\n"),
            "home" => !left.contains("notes\n"),
            _ => !left.contains("readme is there"),
        };
        assert!(gone, "{tool} deleted nothing, so it shows nothing: {told}");
    }
}

#[test]
fn secrets_of_the_user_cannot_be_read_and_other_files_can() {
    let look = "cat ~/.ssh/id_ed25519 ~/.aws/credentials ~/.netrc ~/.config/gh/hosts.yml; ls -la ~/.ssh; cat ~/notes\n\
                cat /proc/1/root$HOME/.ssh/id_ed25519; cat $XDG_RUNTIME_DIR/secret; env | grep -i agent";
    let script =
        steps([Turn::call("Read", json!({ "file_path": "/root/.ssh/id_ed25519" }))].into_iter().chain(hidden(look)).chain([
            Turn::write("a", "one\n"),
            Turn::bash("rm hidden.sh"),
            Turn::say("Done."),
        ]));
    let Some(mut world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], script) else { return };
    let runtime = world.sandbox.root().join("runtime");
    world.sandbox.set("XDG_RUNTIME_DIR", &runtime);
    world.sandbox.set("SSH_AUTH_SOCK", runtime.join("AGENT-SOCKET"));
    let home = world.sandbox.home();
    let secrets = [
        home.join(".ssh/id_ed25519"),
        home.join(".aws/credentials"),
        home.join(".netrc"),
        home.join(".config/gh/hosts.yml"),
        runtime.join("secret"),
    ];
    for path in &secrets {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "TOP-SECRET\n").unwrap();
    }
    fs::write(home.join("notes"), "anybody may read this\n").unwrap();
    done(&world);
    let told = &results(&world, 3)[0].text;
    assert!(told.contains("anybody may read this") && told.contains("ended"), "{told}");
    let leaked = |request: &Request| {
        request.tool_results().iter().any(|result| result.text.contains("TOP-SECRET") || result.text.contains("AGENT-SOCKET"))
    };
    assert!(!world.model.requests().iter().any(leaked), "{told}");
}

#[test]
fn a_push_from_a_script_reaches_neither_a_repository_beside_nor_the_users_own() {
    let push = |remote: &Path, own: &Path| {
        format!(
            "git commit --quiet --allow-empty --message mine\ngit push --force origin HEAD:main\n\
             git push --force {0} HEAD:refs/heads/pushed\ngit --git-dir {0} update-ref refs/heads/pushed HEAD\n\
             git push --force {1} HEAD:refs/heads/pushed\n",
            remote.display(),
            own.display(),
        )
    };
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], Script::new()) else { return };
    let remote = remote_of(&world);
    world.sandbox.git(["push", "--quiet", "origin", "main"]);
    let before = tree(&remote);
    let pushes = hidden(&push(&remote, &world.sandbox.path(".git")));
    let rest = [Turn::bash("rm hidden.sh"), Turn::write("a", "one\n"), Turn::say("Done.")];
    world.model.extend(steps(pushes.into_iter().chain(rest)));
    done(&world);
    assert!(results(&world, 2)[0].text.contains("ended"), "{:?}", results(&world, 2));
    assert_eq!(tree(&remote), before);
    let refs = world.sandbox.git(["for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains("pushed"), "{refs}");
    assert!(!world.sandbox.git(["log", "--all", "--format=%s"]).lines().any(|subject| subject == "mine"));
}

#[test]
fn a_client_that_the_client_starts_without_permissions_is_in_the_same_workspace() {
    let nested = "claude -p --dangerously-skip-permissions 'NESTED: clean up'";
    let ruin = "rm -rf ~/.claude ~/notes ./* .git\necho evil > ~/.claude.json\necho ruined\n";
    let first = [Turn::write("ruin.sh", ruin), Turn::bash(nested)];
    let script = Script::new()
        .on("NESTED", [Turn::bash("sh ./ruin.sh"), Turn::say("The nested one is done.")])
        .on("US-001", first.into_iter().chain(hidden(nested)).chain([Turn::say("Done.")]));
    let Some(world) = World::with(&[(".verdone/config.toml", ONCE), ("PLAN.md", ONE)], script) else { return };
    fs::write(world.sandbox.home().join("notes"), "mine\n").unwrap();
    user_settings(&world, "{}");
    let before = users_files(&world);
    not_done(&world, 4);
    assert!(results(&world, 2)[0].text.contains("unguarded-agent"), "{:?}", results(&world, 2));
    let told: Vec<_> = world.model.requests().iter().flat_map(Request::tool_results).collect();
    assert!(told.iter().any(|result| result.text.contains("ruined")), "the nested client never got to its work: {told:#?}");
    assert_same(&before, &users_files(&world));
}

#[test]
fn nothing_that_the_client_plants_in_the_home_folder_stays_and_its_transcript_does() {
    let hook = json!({ "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "touch ~/owned" }] }] } });
    let plant = format!(
        "echo '{hook}' > ~/.claude/settings.json\nmkdir -p ~/.claude/skills/evil ~/.claude/plugins\necho evil > ~/.claude/skills/evil/SKILL.md\n\
         echo evil > ~/.claude/CLAUDE.md\necho '{{\"mcpServers\":{{\"evil\":{{\"command\":\"evil\"}}}}}}' > ~/.claude.json\n\
         echo evil >> ~/.bashrc\nfor memory in ~/.claude/projects/*/memory; do echo evil > $memory/MEMORY.md; done\n\
         cat ~/.claude/settings.json ~/.claude/projects/*/memory/MEMORY.md\n\
         mkdir -p ~/.claude/projects/-home-u-planted/memory\necho evil > ~/.claude/projects/-home-u-planted/memory/MEMORY.md\n\
         rm -r ~/.claude/projects/-home-u-other && echo removed\n"
    );
    let rest = [Turn::bash("rm hidden.sh"), Turn::write("a", "one\n"), Turn::say("Done.")];
    let script = steps(hidden(&plant).into_iter().chain(rest));
    let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], script) else { return };
    user_settings(&world, "{\"env\":{\"MINE\":\"1\"}}");
    fs::write(world.sandbox.home().join(".bashrc"), "mine\n").unwrap();
    let others = world.sandbox.home().join(".claude/projects/-home-u-other/session.jsonl");
    fs::create_dir_all(others.parent().unwrap()).unwrap();
    fs::write(&others, "{}\n").unwrap();
    let mut before = users_files(&world);
    done(&world);
    let planted = &results(&world, 2)[0].text;
    let could = ["touch ~/owned", "evil", "removed"].iter().all(|text| planted.contains(text));
    assert!(could, "it could write there: {planted}");
    assert_eq!(fs::read_to_string(others).unwrap(), "{}\n", "sessions of another project");
    // Landing changed the work tree.
    let work = world.sandbox.work();
    let mut after = users_files(&world);
    before.retain(|path, _| !path.starts_with(&work));
    after.retain(|path, _| !path.starts_with(&work));
    assert!(before.len() >= 3);
    assert_same(&before, &after);

    let projects = tree(&world.sandbox.home().join(".claude/projects"));
    assert!(projects.values().all(|bytes| !bytes.starts_with(b"evil")), "{:?}", projects.keys());
    assert!(!world.sandbox.home().join(".claude/projects/-home-u-planted").exists());
    let journal = world.journal();
    let session = events_named(&journal, "turn_ended")[0]["session"]["id"].as_str().unwrap().to_owned();
    let transcript = projects.iter().find(|(path, _)| path.file_name().is_some_and(|name| *name == *format!("{session}.jsonl")));
    let (_, text) = transcript.unwrap_or_else(|| panic!("{session} has no transcript: {:?}", projects.keys()));
    assert!(String::from_utf8_lossy(text).contains("US-001"));
}

fn login(access: &str, until: u64) -> Value {
    json!({ "claudeAiOauth": {
        "accessToken": format!("sk-ant-oat01-{access}"), "refreshToken": format!("sk-ant-ort01-{access}"), "expiresAt": until,
        "scopes": ["user:inference"], "subscriptionType": "max"
    } })
}

#[test]
fn a_renewed_login_reaches_the_user_only_where_it_is_theirs_and_lasts_longer() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let minutes = |n: u64| u64::try_from((now + Duration::from_mins(n)).as_millis()).unwrap();
    // Expires soon, but not so soon that the client renews it.
    let old = login("old-old-old", minutes(10));
    let account = |id: &str| format!("sed -i 's/\"accountUuid\": *\"[a-z]*\"/\"accountUuid\":\"{id}\"/' ~/.claude.json\n");
    let write = |file: &str| format!("echo '{file}' > ~/.claude/.next && mv ~/.claude/.next ~/.claude/.credentials.json\n");
    let renewed = login("new-new-new", minutes(540));
    for (script, expected, told) in [
        (write(&renewed.to_string()), &renewed, None),
        (write(&login("new-new-new", minutes(9)).to_string()), &old, Some("it is not valid for longer than yours")),
        (write("{ broken"), &old, Some("it cannot be read")),
        (account("other") + &write(&renewed.to_string()), &old, Some("it is a login for another account")),
        ("rm ~/.claude/.credentials.json\n".to_owned(), &old, Some("it was removed")),
    ] {
        let rest = [Turn::bash("rm hidden.sh"), Turn::write("a", "one\n"), Turn::say("Done.")];
        let answers = steps(hidden(&script).into_iter().chain(rest));
        let Some(world) = World::with(&[(".verdone/config.toml", AGENT), ("PLAN.md", ONE)], answers) else { return };
        let home = world.sandbox.home();
        let answers = home.join(".claude.json");
        let mut state: Value = serde_json::from_str(&fs::read_to_string(&answers).unwrap()).unwrap();
        state["oauthAccount"] = json!({ "accountUuid": "mine" });
        fs::write(&answers, state.to_string()).unwrap();
        user_settings(&world, "{}");
        let path = home.join(".claude/.credentials.json");
        fs::write(&path, old.to_string()).unwrap();
        let output = done(&world);
        let found: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(found, *expected, "{script}\n{}", output.transcript());
        let said = format!("{}{}", output.stdout, output.stderr);
        let notice = ".claude/.credentials.json was not updated";
        match told {
            Some(why) => assert!(said.contains(notice) && said.contains(why), "{script}\n{}", output.transcript()),
            None => assert!(!said.contains(notice), "{}", output.transcript()),
        }
        let state: Value = serde_json::from_str(&fs::read_to_string(&answers).unwrap()).unwrap();
        assert_eq!(state["oauthAccount"]["accountUuid"], "mine");
    }
}

#[test]
fn a_story_is_done_by_the_client_where_the_kernel_gives_no_private_views() {
    for hooks in ["", "[agent.claude]\nhooks = \"exec\"\n"] {
        let push = Turn::bash("git push").and_call("Bash", json!({ "command": "ls", "description": "Looks" }));
        let scratch = Turn::bash("echo x > \"$TMPDIR/x\" && rm \"$TMPDIR/x\" && touch ~/.local/state/verdone/x");
        let script = steps([push, Turn::bash("echo x > \"$TMPDIR/x\""), scratch, Turn::write("a", "one\n"), Turn::say("Done.")]);
        let config = format!("{AGENT}{hooks}");
        let Some(mut world) = World::with(&[(".verdone/config.toml", &config), ("PLAN.md", ONE)], script) else { return };
        world.sandbox.set("VERDONE_LAUNCH_FAIL", "unshare");
        let output = done(&world);
        assert!(output.stdout.contains("no private view of the file system"), "{}", output.transcript());
        let judged: Vec<bool> = results(&world, 1).iter().map(|result| result.is_error).collect();
        assert_eq!(judged, [true, false], "{:?}", results(&world, 1));
        assert!(!results(&world, 2)[0].is_error, "its own temporary folder: {:?}", results(&world, 2));
        assert!(results(&world, 3)[0].text.contains("verdone-dir"), "{:?}", results(&world, 3));
        assert_eq!(world.sandbox.git(["show", "--name-only", "--format=", "HEAD"]), "PLAN.md\na");
    }
}
