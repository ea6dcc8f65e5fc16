use super::*;

fn session() -> Uuid {
    Uuid::from_random([7; 16])
}

fn launch(config: &ClaudeAgent, hooks: Hooks) -> Launch<'_> {
    let start = Start::Fresh { session: session() };
    Launch {
        config,
        hooks,
        start,
        hook_program: "/opt/my tools/verdone",
        budget_usd: None,
        schema: None,
        tools: None,
        apart: false,
    }
}

fn after<'a>(line: &'a CommandLine, option: &str) -> Option<&'a str> {
    let at = line.argv.iter().position(|word| word == option)?;
    line.argv.get(at + 1).map(String::as_str)
}

fn settings_of(line: &CommandLine) -> Value {
    serde_json::from_str(after(line, "--settings").unwrap()).unwrap()
}

#[test]
fn the_plain_client_is_started_in_its_normal_permission_mode() {
    let config = ClaudeAgent::default();
    let line = command_line(&launch(&config, Hooks::Callbacks));
    let settings = after(&line, "--settings").unwrap().to_owned();
    let expected = [
        "claude",
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "default",
        "--settings",
        &settings,
        "--session-id",
        "07070707-0707-4707-8707-070707070707",
    ];
    assert_eq!(line.argv, expected);
    assert!(line.set.contains(&("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS".to_owned(), "1".to_owned())));
    assert!(["CLAUDECODE", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"].iter().all(|name| line.unset.contains(name)));
}

#[test]
fn the_agent_of_a_run_gets_our_tools_and_a_judge_does_not() {
    let config = ClaudeAgent::default();
    let line = command_line(&Launch { tools: Some("/p/tools/socket"), ..launch(&config, Hooks::Callbacks) });
    let servers: Value = serde_json::from_str(after(&line, "--mcp-config").unwrap()).unwrap();
    let ours = &servers["mcpServers"]["verdone"];
    assert_eq!((&ours["command"], &ours["args"]), (&json!("/opt/my tools/verdone"), &json!(["mcp"])));
    assert_eq!((&ours["env"]["VERDONE_TOOLS"], &ours["alwaysLoad"]), (&json!("/p/tools/socket"), &json!(true)));
    assert_eq!(after(&command_line(&launch(&config, Hooks::Callbacks)), "--mcp-config"), None);
}

#[test]
fn everything_of_the_config_reaches_the_client() {
    let config = ClaudeAgent {
        binary: "/opt/claude".to_owned(),
        model: Some("opus".to_owned()),
        effort: Some("high".to_owned()),
        permission: ClaudePermission::AcceptEdits,
        args: vec!["--add-dir".to_owned(), "../lib".to_owned()],
        env: [("CLAUDE_CODE_MAX_RETRIES", "9"), ("X", "y z")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..ClaudeAgent::default()
    };
    let start = Start::Resume { session: session() };
    let line = command_line(&Launch { start, budget_usd: Some(1.234_567), ..launch(&config, Hooks::Callbacks) });
    assert_eq!(line.argv[0], "/opt/claude");
    assert_eq!(after(&line, "--resume"), Some(session().as_str()));
    assert_eq!(after(&line, "--session-id"), None);
    assert_eq!((after(&line, "--model"), after(&line, "--max-budget-usd")), (Some("opus"), Some("1.2345")));
    assert_eq!(after(&line, "--permission-mode"), Some("acceptEdits"));
    assert_eq!(line.argv[line.argv.len() - 2..], ["--add-dir", "../lib"]);
    let set = |name: &str| line.set.iter().filter(|(set, _)| set == name).map(|(_, value)| value.as_str()).collect::<Vec<_>>();
    assert_eq!(
        (set("CLAUDE_CODE_MAX_RETRIES"), set("X"), set("CLAUDE_CODE_EFFORT_LEVEL")),
        (vec!["9"], vec!["y z"], vec!["high"])
    );
    let bypass = ClaudeAgent { permission: ClaudePermission::Bypass, ..config };
    assert_eq!(after(&command_line(&launch(&bypass, Hooks::Exec)), "--permission-mode"), Some("bypassPermissions"));
}

#[test]
fn a_judge_gets_the_shape_of_its_answer_and_nothing_of_the_project_whatever_the_arguments_say() {
    let args = ["--json-schema", "{}", "--setting-sources", "user,project"].map(str::to_owned).to_vec();
    let config = ClaudeAgent { args, ..ClaudeAgent::default() };
    let line = command_line(&Launch { schema: Some("{\"type\":\"object\"}"), apart: true, ..launch(&config, Hooks::Callbacks) });
    let ours = ["--json-schema", "{\"type\":\"object\"}", "--setting-sources", "user", "--strict-mcp-config"];
    assert_eq!(line.argv[line.argv.len() - ours.len()..], ours, "the last ones count");
}

#[test]
fn with_callbacks_only_the_ends_of_a_session_are_processes() {
    let config = ClaudeAgent::default();
    let settings = settings_of(&command_line(&launch(&config, Hooks::Callbacks)));
    let hooks = settings["hooks"].as_object().unwrap();
    assert_eq!(hooks.keys().collect::<Vec<_>>(), ["SessionStart", "SessionEnd"]);
    let hook = &hooks["SessionStart"][0]["hooks"][0];
    assert_eq!(hook["command"], "/opt/my tools/verdone");
    assert_eq!(hook["args"], json!(["hook", "SessionStart", "--run"]), "never through a shell");
    assert_eq!(settings["disableAllHooks"], false);
}

#[test]
fn without_callbacks_every_event_is_a_process_and_guards_block_when_they_fail() {
    let config = ClaudeAgent::default();
    let settings = settings_of(&command_line(&launch(&config, Hooks::Exec)));
    let hooks = settings["hooks"].as_object().unwrap();
    assert_eq!(hooks.len(), 2 + callback_events().count());
    let blocking: Vec<&String> =
        hooks.iter().filter(|(_, entry)| entry[0]["hooks"][0]["onFailure"] == "block").map(|(name, _)| name).collect();
    assert_eq!(blocking, ["PreToolUse", "PermissionRequest", "ConfigChange"]);
}

#[test]
fn a_budget_is_never_rounded_up_and_never_zero() {
    for (rest, said) in [(20.0, "20.0000"), (0.123_49, "0.1234"), (0.0, "0.0001"), (-4.0, "0.0001"), (f64::NAN, "0.0001")] {
        assert_eq!(dollars(rest), said);
    }
}

#[test]
fn versions_are_read_and_compared() {
    assert_eq!(version("2.1.325 (Claude Code)\n"), Some(Version(2, 1, 325)));
    assert_eq!(version("2.1.300-beta.1"), Some(Version(2, 1, 300)));
    assert!(Version(2, 1, 294) < OLDEST_CLIENT && Version(2, 2, 0) > OLDEST_CLIENT);
    for text in ["", "claude", "2.1", "2..1", "v2.1.3"] {
        assert_eq!(version(text), None, "{text}");
    }
}

#[test]
fn what_the_user_is_and_where_the_api_is_stays() {
    for name in
        ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "HOME", "PATH", "SHELL"]
    {
        assert!(!SCRUBBED.contains(&name), "{name}");
    }
}
