//! Merging of layers, and the positions of faults.

use super::*;
use crate::base::span::Span;

fn file(text: &str) -> Layer {
    Layer::from_toml("config.toml", text).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

fn flag(name: &str, key: &str, value: impl Into<Value>) -> Layer {
    Layer::value(Origin::Flag(name.to_owned()), key, value)
}

#[test]
fn no_layer_gives_the_defaults() {
    let resolved = resolve(&[]).unwrap();
    assert_eq!(resolved.config, Config::default());
    assert!(resolved.origins.is_empty());
    assert_eq!(resolve(&[file("")]).unwrap().config, Config::default());
}

#[test]
fn the_stronger_layer_wins_key_by_key_and_is_named() {
    let env = Layer::value(Origin::Env("MAX_ITERATIONS".to_owned()), "limits.max_iterations", 7);
    let weak = Layer::value(Origin::Env("TIMEOUT_AGENT".to_owned()), "limits.turn_time", "90s");
    let text = "plan = \"a.md\"\n[limits]\nmax_iterations = 9\nturns = 2\n[[gate]]\nname = \"t\"\ncommand = \"true\"\n";
    let resolved = resolve(&[env, weak, file(text), flag("--max-iterations", "limits.max_iterations", 1)]).unwrap();
    let config = &resolved.config;
    assert_eq!((config.limits.max_iterations, config.limits.turns, config.limits.attempts), (1, 2, 3));
    assert_eq!(config.limits.turn_time, Span::from_secs(90));
    for (key, origin) in [
        ("limits.max_iterations", Origin::Flag("--max-iterations".to_owned())),
        ("limits.turns", Origin::File("config.toml".to_owned())),
        ("limits.turn_time", Origin::Env("TIMEOUT_AGENT".to_owned())),
        ("gate", Origin::File("config.toml".to_owned())),
        ("gate[0]", Origin::File("config.toml".to_owned())),
        ("limits.attempts", Origin::Default),
    ] {
        assert_eq!(resolved.origin(key), &origin, "{key}");
    }
}

#[test]
fn lists_replace_and_checks_are_added() {
    let gate = |name: &str| format!("[[gate]]\nname = \"{name}\"\ncommand = \"{name}\"\n");
    let replaced = resolve(&[file(&gate("one")), file(&gate("two"))]).unwrap();
    assert_eq!(replaced.config.gate.len(), 1);
    assert_eq!(replaced.config.gate[0].name, "two");

    let commands = ["make test", "one", "make test", "make  test"].map(str::to_owned);
    let added = resolve(&[file(&gate("one")), Layer::checks(Origin::Flag("--check".to_owned()), &commands)]).unwrap();
    let names: Vec<_> = added.config.gate.iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(names, ["one", "make test", "make test (2)"], "the same command is one gate, the same name is made unique");
    assert_eq!(added.config.gate[1].command, CommandSpec::Shell("make test".to_owned()));
    assert_eq!(added.origin("gate[0]"), &Origin::File("config.toml".to_owned()));
    assert_eq!(added.origin("gate[1]"), &Origin::Flag("--check".to_owned()));
}

#[test]
fn every_fault_in_a_file_has_its_place_and_a_way_on() {
    let cases: &[(&str, &str, (u32, u32), &str)] = &[
        ("plam = \"x\"\n", "unknown key `plam`", (1, 1), "did you mean `plan`?"),
        ("[limits]\n  turn = 3\n", "unknown key `turn` in `limits`", (2, 3), "did you mean `turns`?"),
        ("[limits]\nturns = 1\nmax-iterations = 3\n", "unknown key `max-iterations`", (3, 1), "did you mean `max_iterations`?"),
        ("max_iterations = 3\n", "unknown key `max_iterations`", (1, 1), "did you mean `limits.max_iterations`?"),
        (
            "[[gates]]\nname = \"t\"\ncommand = \"true\"\n",
            "`gates` must be a table, not a list",
            (1, 3),
            "did you mean `gate`? Write [[gate]]",
        ),
        ("[agent.comand]\nrun = \"x\"\n", "unknown key `comand` in `agent`", (1, 8), "did you mean `command`?"),
        (
            "[[gate]]\nname = \"a\"\ncommand = \"x\"\n[[gate]]\nname = \"b\"\ncommnd = \"y\"\n",
            "unknown key `commnd` in `gate[1]`",
            (6, 1),
            "did you mean `command`?",
        ),
        ("[agent]\nturns = 1\n", "unknown key `turns` in `agent`", (2, 1), "did you mean `limits.turns`? Known keys of `agent`:"),
        ("[agent]\nrun = \"x\"\n", "unknown key `run` in `agent`", (2, 1), "did you mean `agent.command.run`?"),
        ("qqqqqq = 1\n", "unknown key `qqqqqq`", (1, 1), "Known keys: `plan`, `red_check`"),
        ("[limits]\nturns = \"three\"\n", "`limits.turns` must be a whole number, 0 or more, not a string", (2, 9), ""),
        ("[limits]\nturns = 1.5\n", "must be a whole number, 0 or more, not 1.5", (2, 9), ""),
        ("[limits]\nturns = -1\n", "must be a whole number, 0 or more, not -1", (2, 9), ""),
        ("[limits]\nturns = 4294967296\n", "can be at most 4294967295", (2, 9), ""),
        ("[limits]\nturn_time = 30\n", "`limits.turn_time` must be a duration", (2, 13), "write \"30s\" for seconds"),
        ("[limits]\nturn_time = \"soon\"\n", "\"soon\" is not a duration", (2, 13), ""),
        ("limits = 3\n", "`limits` must be a table, not 3", (1, 10), ""),
        ("plan = [\"a\"]\n", "`plan` must be a string, not a list", (1, 8), ""),
        ("red_check = \"acept\"\n", "`red_check` cannot be \"acept\", expected one of", (1, 13), "did you mean \"accept\"?"),
        ("[agent]\nname = \"comand\"\n", "`agent.name` cannot be \"comand\"", (2, 8), "did you mean \"command\"?"),
        ("[agent]\nname = \"hal\"\n", "expected one of \"claude\", \"codex\", \"gemini\"", (2, 8), ""),
        ("[agent.command]\nrun = \" \"\n", "the agent's command is empty", (2, 7), ""),
        ("[agent.command]\nrun = [\"a\", 1]\n", "must be a command: a string for `sh -c`, or a list of strings", (2, 7), ""),
        ("[gate]\nname = \"t\"\ncommand = \"true\"\n", "`gate` must be a list of tables", (1, 2), "write [[gate]] instead"),
        ("[[gate]]\nname = \"t\"\n", "`gate[0]` needs the key `command`", (1, 1), ""),
        ("[[gate]]\nname = \"t\"\ncommand = \"\"\n", "the command of gate \"t\" is empty", (3, 11), ""),
        ("[[gate]]\nname = \"t\"\ncommand = []\n", "the command of gate \"t\" is empty", (3, 11), ""),
        ("[[gate]]\nname = \"\"\ncommand = \"x\"\n", "the gate's name is empty", (2, 8), ""),
        (
            "[[gate]]\nname = \"t\"\ncommand = \"x\"\n[[gate]]\nname = \"t\"\ncommand = \"y\"\n",
            "two gates are named \"t\"",
            (5, 8),
            "",
        ),
        (
            "[[gate]]\nname = \"t\"\nstage = \"qality\"\ncommand = \"x\"\n",
            "`gate[0].stage` cannot be \"qality\"",
            (3, 9),
            "did you mean \"quality\"?",
        ),
        ("[commit]\nsubject = \"\"\n", "the commit subject must be one line", (2, 11), ""),
        ("[merge]\ncommand = []\n", "the command is empty", (2, 11), ""),
        ("[merge]\ntimeout = \"0s\"\n", "the merge command needs a timeout", (2, 11), ""),
        ("plan = \"x\n", "invalid basic string", (1, 10), ""),
        ("é = 1\n", "", (1, 1), ""),
        ("plan = \"a\"\nplan = \"b\"\n", "duplicate key", (2, 1), ""),
        ("\u{feff}plam = 1\r\n", "unknown key `plam`", (1, 1), "did you mean `plan`?"),
    ];
    for (text, message, position, hint) in cases {
        let problem = Layer::from_toml("my/config.toml", text).expect_err(text);
        assert!(problem.message.contains(message), "{text}\n{problem}");
        assert_eq!(problem.position, Some(*position), "{text}\n{problem}");
        assert!(problem.hint.as_deref().unwrap_or_default().contains(hint), "{text}\n{:?}", problem.hint);
        assert!(problem.source_line.is_some(), "{text}");
        assert!(problem.to_string().starts_with(&format!("my/config.toml:{}:{}: ", position.0, position.1)));
        assert!(!problem.to_string().contains('\n'), "{problem:?}");
    }
}

#[test]
fn faults_outside_files_name_the_flag_or_variable() {
    let agent = resolve(&[flag("--agent", "agent.name", "scriptd")]).unwrap_err();
    assert_eq!(
        agent.to_string(),
        "--agent: `agent.name` cannot be \"scriptd\", expected one of \"claude\", \"codex\", \"gemini\", \
         \"opencode\", \"copilot\", \"qwen\", \"acp\", \"aider\", \"goose\", \"cursor\", \"command\", \"scripted\""
    );
    assert_eq!(agent.hint.as_deref(), Some("did you mean \"scripted\"?"));
    let check = resolve(&[Layer::checks(Origin::Flag("--check".to_owned()), &[" ".to_owned()])]).unwrap_err();
    assert_eq!(check.to_string(), "--check: the command of gate \"\" is empty");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[\\[\\]a-z_.=\" \n0-9é#]{0,80}") {
        let _ = Layer::from_toml("x", &text);
    }

    #[test]
    fn layers_are_associative_for_scalars(a in 0u32..9, b in 0u32..9, c in 0u32..9) {
        let layers = [flag("a", "limits.turns", a), flag("b", "limits.attempts", b), flag("c", "limits.turns", c)];
        let config = resolve(&layers).unwrap().config;
        proptest::prop_assert_eq!((config.limits.turns, config.limits.attempts), (c, b));
    }
}
