//! Rules over calls: paths, plans, tools, prompts, config. The table of commands is in the crate's integration tests.

use serde_json::json;

use super::example::context;
use super::*;

fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall { tool: tool.to_owned(), input }
}

fn decide(call: &ToolCall, context: &PolicyContext) -> Decision {
    evaluate(call, context, &built_in())
}

fn rule(decision: &Decision) -> Option<&str> {
    (decision.verdict == PolicyVerdict::Deny).then(|| decision.rule.as_ref().map_or("", |(name, _)| name))
}

fn write(path: &str, context: &PolicyContext) -> Option<String> {
    rule(&decide(&call("Write", json!({ "file_path": path, "content": "" })), context)).map(str::to_owned)
}

#[test]
fn every_built_in_rule_keeps_its_own_examples() {
    let problems = check_examples(&built_in());
    assert!(problems.is_empty(), "{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_built_in_rule_has_a_name_of_its_own_a_reason_an_alternative_and_examples() {
    let rules = built_in();
    for (index, rule) in rules.iter().enumerate() {
        assert!(!rules[..index].iter().any(|other| other.name == rule.name), "{}", rule.name);
        assert!(!rule.reason.is_empty() && !rule.alternative.is_empty(), "{}", rule.name);
        // Rules that need a story's scope or a line of 128 KB are tested elsewhere.
        let shown =
            matches!(rule.name.as_ref(), "story-scope" | "unreadable-command") || rule.examples.matches.iter().count() >= 3;
        assert!(shown && rule.examples.not_matches.iter().count() >= 3, "{}", rule.name);
    }
}

#[test]
fn a_denial_names_rule_command_reason_and_alternative() {
    let decision = decide(&ToolCall::bash("make && bash -c 'git push' | tee log"), &context());
    assert_eq!(decision.rule, Some(("git-push".to_owned(), Source::BuiltIn)));
    let found = decision.command.expect("a command is named");
    assert_eq!(found.text, "git push");
    assert_eq!(&"make && bash -c 'git push' | tee log"[found.range], "bash -c 'git push'");
    assert!(!decision.reason.is_empty() && !decision.alternative.is_empty());
}

#[test]
fn a_path_does_not_get_around_a_rule_by_how_it_is_written() {
    let context = context();
    let git = [
        ".git/config",
        "./.git/config",
        "src/../.git/config",
        "/work/project/.git/config",
        "/work//project/./.git/config",
        "/proc/self/cwd/.git/config",
        "/proc/self/root/work/project/.git/config",
        "/work/project/src/../../project/.git/config",
    ];
    for path in git {
        assert_eq!(write(path, &context).as_deref(), Some("git-dir"), "{path}");
    }
    for path in ["../x", "/work/projectx/a", "/work/project/../a", "~/x", "/proc/self/cwd/../x", "/tmp/../etc/x", "/tmp"] {
        assert_eq!(write(path, &context).as_deref(), Some("outside-write"), "{path}");
    }
    for path in ["src/a.rs", "/work/project/a", "/proc/self/cwd/a", "/tmp/a", "/work/project/x/../y", "/dev/null"] {
        assert_eq!(write(path, &context), None, "{path}");
    }
}

#[test]
fn links_that_the_caller_resolved_are_followed_before_dots_are_removed() {
    let mut context = context();
    let through = ToolCall::bash("echo x > link/../x; touch door/new");
    let asked = paths_to_resolve(&through, &context);
    assert_eq!(asked, ["/work/project/door/new", "/work/project/link/../x"]);
    assert_eq!(paths_to_resolve(&ToolCall::bash("cd /tmp/x && git status"), &context), ["/tmp/x"]);
    assert_eq!(rule(&decide(&through, &context)), None);
    context.resolved.insert("/work/project/door".to_owned(), "/etc".to_owned());
    assert_eq!(decide(&through, &context).path.as_deref(), Some("/etc/new"));
    context.resolved.clear();
    context.resolved.insert("/work/project/link/../x".to_owned(), "/home/dev/x".to_owned());
    assert_eq!(decide(&through, &context).path.as_deref(), Some("/home/dev/x"));
}

#[test]
fn a_repository_of_the_agents_own_in_a_temporary_directory_is_its_own() {
    let mut context = context();
    let found = |command: &str, context: &PolicyContext| rule(&decide(&ToolCall::bash(command), context)).map(str::to_owned);
    let own = "git init -q /tmp/x && cd /tmp/x && git config user.name x && git checkout -b y && git reset --hard";
    assert_eq!(found(own, &context), None);
    assert_eq!(found("cd /tmp/x && git push", &context).as_deref(), Some("git-push"));
    assert_eq!(found("cd /tmp/x && git config --global a.b c", &context).as_deref(), Some("git-config"));
    assert_eq!(found("cd /tmp/x && git -C /work/project reset --hard", &context).as_deref(), Some("git-reset-hard"));
    assert_eq!(found("cd /tmp/x && cd /work/project && git reset --hard", &context).as_deref(), Some("git-reset-hard"));
    assert_eq!(found("cd /tmp/x && GIT_DIR=/work/project/.git git reset --hard", &context).as_deref(), Some("git-reset-hard"));
    let exported = "export GIT_DIR=/work/project/.git; cd /tmp/x && git reset --hard";
    assert_eq!(found(exported, &context).as_deref(), Some("git-reset-hard"));
    assert_eq!(found("cd /tmp && git reset --hard", &context).as_deref(), Some("git-reset-hard"));
    context.temp = vec!["/work".to_owned()];
    assert_eq!(found("cd /work/project/src && git reset --hard", &context).as_deref(), Some("git-reset-hard"));
    context.temp = vec!["/tmp".to_owned()];
    context.resolved.insert("/tmp/x".to_owned(), "/work/project".to_owned());
    assert_eq!(found("cd /tmp/x && git reset --hard", &context).as_deref(), Some("git-reset-hard"));
}

#[test]
fn case_makes_no_difference_where_the_file_system_says_so() {
    let mut context = context();
    assert_eq!(write(".GIT/config", &context), None);
    assert_eq!(write("/Work/Project/a", &context).as_deref(), Some("outside-write"));
    context.ignore_case = true;
    assert_eq!(write(".GIT/config", &context).as_deref(), Some("git-dir"));
    assert_eq!(write(".Claude/Settings.json", &context).as_deref(), Some("agent-settings"));
    assert_eq!(write(".ENV", &context).as_deref(), Some("env-file"));
    assert_eq!(write("/Work/Project/a", &context), None);
}

#[test]
fn the_plan_may_be_edited_but_not_its_marks_and_checks() {
    let context = context();
    let edit = |old: &str, new: &str| {
        let edit = call("Edit", json!({ "file_path": "/work/project/plan.md", "old_string": old, "new_string": new }));
        rule(&decide(&edit, &context)).map(str::to_owned)
    };
    assert_eq!(edit("# Plan", "# The plan"), None);
    assert_eq!(edit("US-001: One", "US-001: First"), None);
    assert_eq!(edit("- [ ] US-001", "- [x] US-001").as_deref(), Some("plan-status"));
    assert_eq!(edit("[ ]", "[X]").as_deref(), Some("plan-status"));
    assert_eq!(edit("make test", "true").as_deref(), Some("plan-checks"));
    let whole = |content: &str| {
        let write = call("Write", json!({ "file_path": "plan.md", "content": content }));
        rule(&decide(&write, &context)).map(str::to_owned)
    };
    let text = context.plans[0].text.clone();
    assert_eq!(whole(&format!("{text}\nMore words.\n")), None);
    assert_eq!(whole(&text.replace("[ ]", "[x]")).as_deref(), Some("plan-status"));
    assert_eq!(whole(&text.replace("make test", "true")).as_deref(), Some("plan-checks"));
    let many = json!({ "file_path": "plan.md", "edits": [{ "old_string": "# Plan", "new_string": "#" }, { "old_string": "[ ]", "new_string": "[x]" }] });
    assert_eq!(rule(&decide(&call("MultiEdit", many), &context)), Some("plan-status"));
}

#[test]
fn an_enforced_scope_keeps_writes_inside_it() {
    let mut context = context();
    context.scope = Some(Scope {
        paths: vec!["src/api".to_owned(), "docs/*.md".to_owned()],
        enforced: true,
        exempt: vec!["progress.md".to_owned()],
    });
    assert_eq!(write("src/api/v1/a.rs", &context), None);
    assert_eq!(write("docs/a.md", &context), None);
    assert_eq!(write("/tmp/a", &context), None);
    assert_eq!(write("progress.md", &context), None);
    assert_eq!(write(".verdone/guardrails.md", &context), None);
    let denied = decide(&ToolCall::bash("echo x > src/other.rs"), &context);
    assert!(denied.reason.ends_with("which is `src/api`, `docs/*.md`"), "{}", denied.reason);
    assert_eq!(write("src/apix/a.rs", &context).as_deref(), Some("story-scope"));
    assert_eq!(rule(&decide(&ToolCall::bash("cd docs && touch sub/a.md"), &context)), Some("story-scope"));
    context.scope = Some(Scope { enforced: false, ..context.scope.take().unwrap_or_default() });
    assert_eq!(write("src/apix/a.rs", &context), None);
}

#[test]
fn tools_without_a_rule_follow_the_table_in_a_run_only() {
    let mut context = context();
    for tool in ["Read", "Grep", "Glob", "Agent", "TodoWrite", "TaskCreate", "mcp__probe__add", "WebFetch", "StructuredOutput"] {
        assert_eq!(decide(&call(tool, json!({})), &context).verdict, PolicyVerdict::Allow, "{tool}");
    }
    for tool in ["EnterWorktree", "CronCreate", "ScheduleWakeup", "SendMessage", "Whatever"] {
        assert_eq!(decide(&call(tool, json!({})), &context).verdict, PolicyVerdict::Deny, "{tool}");
    }
    assert!(decide(&call("Whatever", json!({})), &context).alternative.contains("tools = { \"Whatever\" = \"allow\" }"));
    let asked = decide(&call("AskUserQuestion", json!({})), &context);
    assert!(asked.needs_human && asked.verdict == PolicyVerdict::Deny && asked.reason.starts_with("needs a human"));
    context.tools = [("What*".to_owned(), PolicyVerdict::Allow), ("WebFetch".to_owned(), PolicyVerdict::Deny)].into();
    assert_eq!(decide(&call("Whatever", json!({})), &context).verdict, PolicyVerdict::Allow);
    assert_eq!(decide(&call("WebFetch", json!({})), &context).verdict, PolicyVerdict::Deny);
    let interactive = PolicyContext { mode: Mode::Interactive, ..example::context() };
    assert_eq!(decide(&call("EnterWorktree", json!({})), &interactive).verdict, PolicyVerdict::Allow);
    assert_eq!(rule(&decide(&ToolCall::bash("git push"), &interactive)), Some("git-push"));
}

fn config(text: &str) -> (Vec<Rule>, Vec<RuleProblem>) {
    let config: PolicyConfig = toml::from_str(text).expect("the example is a config");
    rules(&config, ".verdone/config.toml", |index| index + 10)
}

#[test]
fn a_rule_of_the_user_is_found_with_its_place_and_a_built_in_one_can_be_switched_off() {
    let (rules, problems) = config(
        r#"
        off = ["git-stash"]
        [[rule]]
        name = "no-deploy"
        verdict = "ask"
        reason = "deploying is ours"
        program = ["make", "just"]
        subcommand = ["deploy"]
        matches = ["make -j2 deploy", "bash -c 'just deploy'"]
        not_matches = ["make", "echo make deploy"]
        [[rule]]
        name = "no-migrations"
        verdict = "deny"
        reason = "old migrations never change"
        write = ["db/migrations/**"]
        matches = ["Write: db/migrations/001.sql", "sed -i s/a/b/ db/migrations/001.sql"]
        not_matches = ["Read: db/migrations/001.sql", "Write: db/schema.sql"]
        [[rule]]
        name = "no-secrets"
        verdict = "deny"
        reason = "no passwords in prompts"
        prompt = ["password:"]
        matches = ["my password: x"]
        not_matches = ["a password"]
        "#,
    );
    assert_eq!((problems, check_examples(&rules)), (vec![], vec![]));
    assert_eq!(evaluate(&ToolCall::bash("git stash"), &context(), &rules).verdict, PolicyVerdict::Allow);
    let asked = evaluate(&ToolCall::bash("make deploy"), &context(), &rules);
    assert_eq!(asked.rule, Some(("no-deploy".to_owned(), Source::File { path: ".verdone/config.toml".to_owned(), line: 10 })));
    assert!(asked.needs_human && asked.verdict == PolicyVerdict::Deny);
    let interactive = PolicyContext { mode: Mode::Interactive, ..context() };
    assert_eq!(evaluate(&ToolCall::bash("make deploy"), &interactive, &rules).verdict, PolicyVerdict::Ask);
    assert_eq!(evaluate(&ToolCall::bash("make deploy; git push"), &interactive, &rules).verdict, PolicyVerdict::Deny);
    assert_eq!(evaluate_prompt("the password: hunter2", Mode::Interactive, &rules).verdict, PolicyVerdict::Deny);
    assert_eq!(evaluate_prompt("hello", Mode::Interactive, &rules).verdict, PolicyVerdict::Allow);
}

#[test]
fn patterns_of_a_rule_know_alternatives_classes_and_folders() {
    let rule = |line: &str| {
        let text = format!("[[rule]]\nname = \"r\"\nverdict = \"deny\"\nreason = \"x\"\n{line}\n");
        config(&text).0
    };
    let denies = |rules: &[Rule], command: &str, context: &PolicyContext| {
        let decision = evaluate(&ToolCall::bash(command), context, rules);
        decision.rule.is_some_and(|(name, _)| name == "r")
    };
    let context = context();
    for (line, command, expected) in [
        ("write = [\"**/*.{pem,key}\"]", "touch a/b.pem", true),
        ("write = [\"**/*.{pem,key}\"]", "touch b.key", true),
        ("write = [\"**/*.{pem,key}\"]", "touch a/b.crt", false),
        ("write = [\"./conf/[a-c]?.toml\"]", "touch conf/b1.toml", true),
        ("write = [\"./conf/[a-c]?.toml\"]", "touch conf/d1.toml", false),
        ("write = [\"*.lock\"]", "touch a/b.lock", false),
        ("write = [\"db/migrations/**\"]", "rm -rf db/migrations", true),
        ("write = [\"db/migrations/**\"]", "rm -rf db/seeds", false),
        ("read = [\"~/.ssh/**\"]", "cat ~/.ssh/id_ed25519", true),
        ("read = [\"/etc/{shadow,sudoers}\"]", "cat /etc/shadow", true),
        ("write = [\"app/[id]/page.tsx\"]", "touch 'app/[id]/page.tsx'", true),
    ] {
        assert_eq!(denies(&rule(line), command, &context), expected, "{line} {command}");
    }
    let folded = PolicyContext { ignore_case: true, ..context };
    assert!(denies(&rule("write = [\"Secrets/*.PEM\"]"), "touch secrets/a.pem", &folded));
}

#[test]
fn another_agent_is_the_users_to_start_unless_it_takes_the_guards_away() {
    let interactive = PolicyContext { mode: Mode::Interactive, ..context() };
    let found = |command: &str, context: &PolicyContext| rule(&decide(&ToolCall::bash(command), context)).map(str::to_owned);
    assert_eq!(found("claude -p x", &context()).as_deref(), Some("nested-agent"));
    assert_eq!(found("claude -p x", &interactive), None);
    assert_eq!(found("claude -p x", &PolicyContext { held: true, ..interactive.clone() }).as_deref(), Some("nested-agent"));
    assert_eq!(found("claude --dangerously-skip-permissions", &interactive).as_deref(), Some("unguarded-agent"));
}

#[test]
fn a_command_in_the_background_is_only_for_sessions_that_stay_open() {
    let input = serde_json::json!({ "command": "npm run dev", "run_in_background": true });
    let call = ToolCall { tool: "Bash".to_owned(), input };
    let denied = decide(&call, &context());
    assert_eq!((rule(&denied), denied.verdict), (Some("background-command"), PolicyVerdict::Deny));
    assert!(denied.alternative.contains("foreground"), "{}", denied.alternative);
    let interactive = PolicyContext { mode: Mode::Interactive, ..context() };
    assert_eq!(decide(&call, &interactive).verdict, PolicyVerdict::Allow);
    // The Stop gate lets a loop's session wait for it.
    assert_eq!(decide(&call, &PolicyContext { held: true, ..interactive }).verdict, PolicyVerdict::Allow);
}

#[test]
fn a_config_that_means_nothing_is_a_problem_with_a_suggestion() {
    let (_, problems) = config(
        "off = [\"git-pussh\"]\n[[rule]]\nname = \"git-push\"\nverdict = \"deny\"\nreason = \"x\"\nprogram = [\"x\"]\nwrite = [\"y\"]\n[[rule]]\nname = \"b\"\nverdict = \"deny\"\nreason = \"x\"\n",
    );
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "two rules are named `git-push`",
            "rule `git-push` mixes `program` and `write`: split it into two rules",
            "rule `b` matches nothing: give it `tools`, `program`, `write`, `read` or `prompt`",
            "no built-in rule is named `git-pussh`; did you mean `git-push`?",
        ]
    );
    let (rules, _) = config(
        "[[rule]]\nname = \"a\"\nverdict = \"deny\"\nreason = \"x\"\nprogram = [\"make\"]\nmatches = [\"echo make\"]\nnot_matches = [\"make\"]\n",
    );
    assert_eq!(
        check_examples(&rules).iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["rule `a` does not match its example `echo make`", "rule `a` matches `make`, but must not"]
    );
    assert!(toml::from_str::<PolicyConfig>("unknwon = \"deny\"").is_err());
}

#[test]
fn reads_through_the_shell_are_known() {
    let read = |command: &str| reads(&ToolCall::bash(command), &context());
    assert_eq!(read("cat src/a.rs src/b.rs"), ["/work/project/src/a.rs", "/work/project/src/b.rs"]);
    assert_eq!(read("cd src && sed -n '1,20p' a.rs | head -5"), ["/work/project/src/a.rs"]);
    assert_eq!(read("grep -n x a.rs; wc -l < b.rs"), ["/work/project/a.rs", "/work/project/b.rs"]);
    assert_eq!(read("cat $x; ls a.rs; echo cat b.rs; cat *.rs"), Vec::<String>::new());
}

#[test]
fn a_pattern_that_takes_the_plan_along_is_denied() {
    let context = context();
    let found = |command: &str| rule(&decide(&ToolCall::bash(command), &context)).map(str::to_owned);
    let denied = ["rm *.md", "rm -rf *", "mv p* x", "git rm plan.md", "git mv plan.md y", "sort -o plan.md x", "rm ./plan.m?"];
    for command in denied {
        assert_eq!(found(command).as_deref(), Some("plan-status"), "{command}");
    }
    for command in ["rm *.txt", "rm -rf docs/*", "rm -rf .cache*", "git rm --cached plan.md", "sort plan.md -o x"] {
        assert_eq!(found(command), None, "{command}");
    }
}

#[test]
fn tools_that_carry_a_command_are_judged_like_a_shell() {
    for tool in ["Monitor", "PowerShell"] {
        assert_eq!(rule(&decide(&call(tool, json!({ "command": "git push" })), &context())), Some("git-push"), "{tool}");
        assert_eq!(decide(&call(tool, json!({ "command": "ls" })), &context()).verdict, PolicyVerdict::Allow, "{tool}");
    }
}

#[test]
fn verdones_own_commands_are_the_users_in_a_run_only() {
    let undo = ToolCall::bash("verdone undo --yes");
    assert_eq!(rule(&decide(&undo, &context())), Some("verdone-itself"));
    let interactive = PolicyContext { mode: Mode::Interactive, ..context() };
    assert_eq!(rule(&decide(&undo, &interactive)), None);
}

#[test]
fn an_enforced_scope_holds_for_what_git_moves_and_removes() {
    let mut context = context();
    context.scope = Some(Scope { paths: vec!["src".to_owned()], enforced: true, exempt: Vec::new() });
    for command in ["git mv src/a docs/a", "git rm docs/b", "git -C docs rm b", "git rm -r docs"] {
        assert_eq!(rule(&decide(&ToolCall::bash(command), &context)), Some("story-scope"), "{command}");
    }
    for command in ["git mv src/a src/b", "git rm --cached docs/b", "git rm src/c"] {
        assert_eq!(rule(&decide(&ToolCall::bash(command), &context)), None, "{command}");
    }
}
