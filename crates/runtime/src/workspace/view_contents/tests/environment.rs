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

#[test]
fn a_list_of_hosts_leaves_a_private_network_with_a_proxy_that_programs_know_of() {
    let mut world = World::new();
    world.set("https_proxy", "http://proxy.example:8080");
    let hosts = ["api.example.com", "localhost:5432", "localhost:3128"].map(str::to_owned).to_vec();
    world.seal.agent_network = NetworkAccess::Hosts(hosts);
    let visible = world.build(ViewKind::Agent);
    assert_eq!(visible.plan.network, Network::ListenOn(vec![3129, 3128, 5432]));
    let variables = set(&visible);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        assert_eq!(variables.get(name), Some(&"http://127.0.0.1:3129"), "{name}");
    }
    for name in ["NO_PROXY", "no_proxy"] {
        assert_eq!(variables.get(name), Some(&"localhost,127.0.0.1,::1"), "{name}");
    }
    assert_eq!(variables.get("NODE_USE_ENV_PROXY"), Some(&"1"));
    let check = world.build(ViewKind::Check);
    assert_eq!(check.plan.network, Network::Open, "each setting is for its own views");
    assert!(!set(&check).contains_key("HTTPS_PROXY"));
    world.seal.check_network = NetworkAccess::Hosts(vec!["example.org".to_owned()]);
    assert_eq!(world.build(ViewKind::Check).plan.network, Network::ListenOn(vec![3128]));
    for (kind, network) in [(ViewKind::Read, Network::Off), (ViewKind::Script, Network::Open)] {
        let visible = world.build(kind);
        assert_eq!(visible.plan.network, network, "{kind:?}");
        assert!(!set(&visible).contains_key("HTTPS_PROXY"), "{kind:?}");
    }
}
