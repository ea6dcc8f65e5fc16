//! The variables that commands in a view get.

use super::*;

#[test]
fn the_environment_loses_what_acts_for_the_user_and_gains_what_tools_need() {
    let mut world = World::new();
    for name in [
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "NPM_TOKEN",
        "DOCKER_HOST",
        "TMP",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "PATH",
        "DATABASE_URL",
        "LANG",
    ] {
        world.set(name, "x");
    }
    world.set("GIT_CONFIG_COUNT", "1");
    world.seal.environment = vec!["NPM_*".to_owned()];
    let visible = world.build(ViewKind::Agent);
    let expected = ["TMP", "AWS_SECRET_ACCESS_KEY", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "GITHUB_TOKEN", "SSH_AUTH_SOCK"];
    assert_eq!(unset(&visible), expected);
    let set = set(&visible);
    for (name, value) in [
        ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
        ("GIT_CONFIG_COUNT", "3"),
        ("GIT_CONFIG_KEY_1", "commit.gpgSign"),
        ("GIT_CONFIG_VALUE_1", "false"),
        ("GIT_CONFIG_KEY_2", "tag.gpgSign"),
        ("GIT_CONFIG_VALUE_2", "false"),
        ("VERDONE_PORT_BASE", "12300"),
        ("COMPOSE_PROJECT_NAME", "verdone-r1-1"),
        ("TMPDIR", world.at("tmp").to_str().unwrap()),
    ] {
        assert_eq!(set.get(name), Some(&value), "{name}");
    }
}

#[test]
fn a_client_keeps_the_login_that_it_uses() {
    let mut world = World::new();
    for name in ["home/.aws/credentials", "home/.azure/token", "home/.codex/auth.json", "home/.claude/.credentials.json"] {
        world.write(name, b"x");
    }
    world.set("AWS_PROFILE", "x");
    world.set("CLAUDE_CODE_USE_BEDROCK", "1");
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    let hides = |lines: &[String], name: &str| lines.contains(&format!("mask home/{name}"));
    assert!(!hides(&lines, ".aws") && hides(&lines, ".azure") && hides(&lines, ".codex/auth.json"), "{lines:#?}");
    assert!(!hides(&lines, ".claude/.credentials.json") && unset(&visible).is_empty());
    assert!(visible.notes.iter().any(|note| note.contains("Amazon Bedrock")), "{:#?}", visible.notes);
    world.agent =
        AgentInUse { kind: AgentKind::Command, command: "cd x && /opt/codex exec -".to_owned(), ..AgentInUse::default() };
    let visible = world.build(ViewKind::Agent);
    let lines = world.lines(&visible);
    assert!(
        hides(&lines, ".aws") && !hides(&lines, ".codex/auth.json") && hides(&lines, ".claude/.credentials.json"),
        "{lines:#?}"
    );
    assert_eq!(unset(&visible), ["AWS_PROFILE"]);
    assert!(!lines.iter().any(|line| line.contains("projects")), "other agents have no state of theirs: {lines:#?}");
}
