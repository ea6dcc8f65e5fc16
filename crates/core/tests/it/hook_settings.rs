//! Our hooks in settings files: what is added, and that removing it restores the original file, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

use proptest::prelude::*;
use serde_json::{Value, json};
use verdone_core::hook::settings::{After, Before, install, installed, uninstall};

const PROGRAM: &str = "/usr/bin/verdone";
const CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// Events that we must not subscribe to: a hook for them changes what the client does (it expects the path of a worktree, waits before it
/// switches models, lets a hook answer for the user), or they fire every few words.
const NEVER: [&str; 14] = [
    "WorktreeCreate",
    "WorktreeRemove",
    "PreModelSwitch",
    "PostModelSwitch",
    "Elicitation",
    "ElicitationResult",
    "MessageDisplay",
    "UserPromptExpansion",
    "PermissionDenied",
    "Setup",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
];
const EVENTS: [&str; 19] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "ConfigChange",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

fn put_in(text: &str) -> String {
    install(Before::Text(text), PROGRAM).unwrap_or_else(|problem| panic!("{problem:?} in {text:?}"))
}

fn take_out(text: &str) -> String {
    match uninstall(text).unwrap() {
        After::Text(text) => text,
        other => panic!("{other:?} of {text:?}"),
    }
}

/// Parses the text as a client does.
fn value(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Our handlers for an event, with their matchers.
fn ours(settings: &Value, event: &str) -> Vec<(Value, Value)> {
    let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
    let handlers = groups.iter().flat_map(|group| {
        let handlers = group["hooks"].as_array().cloned().unwrap_or_default();
        handlers.into_iter().map(|handler| (group["matcher"].clone(), handler))
    });
    handlers.filter(|(_, handler)| handler["args"] == json!(["hook"])).collect()
}

fn assert_has_all(text: &str, program: &str) {
    let settings = value(text);
    assert!(NEVER.iter().all(|event| ours(&settings, event).is_empty()), "{text}");
    if let Some(env) = settings["env"].as_object() {
        assert!(env.contains_key(CAP), "{text}");
    } else {
        assert!(settings.get("env").is_some(), "{text}");
    }
    for event in EVENTS {
        let found = ours(&settings, event);
        assert_eq!(found.len(), 1, "{event} in {text}");
        let (matcher, handler) = &found[0];
        let about_tools = ["PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"].contains(&event);
        assert_eq!(*matcher, if about_tools { json!("*") } else { Value::Null }, "{event}");
        let timeout = handler["timeout"].clone();
        assert!(timeout.as_u64().is_some_and(|seconds| (1..=120).contains(&seconds)), "{event}: {timeout}");
        assert_eq!(*handler, json!({"type": "command", "command": program, "args": ["hook"], "timeout": timeout}), "{event}");
    }
}

/// Whether `small` is `big` with some bytes removed.
fn is_kept(small: &str, big: &str) -> bool {
    let mut bytes = big.bytes();
    small.bytes().all(|wanted| bytes.any(|byte| byte == wanted))
}

fn assert_round_trip(text: &str) {
    let with = put_in(text);
    assert_has_all(&with, PROGRAM);
    assert!(is_kept(text, &with), "{text:?} in {with:?}");
    assert_eq!(put_in(&with), with, "put in twice");
    assert_eq!(take_out(&with), text, "out of {with}");
    let moved = install(Before::Text(&with), "/opt/verdone-2/verdone").unwrap();
    assert_has_all(&moved, "/opt/verdone-2/verdone");
    assert_eq!(take_out(&moved), text, "after a move");
}

#[test]
fn odd_files_come_back_as_they_were() {
    for text in [
        "",
        "\n",
        "\u{feff}",
        "\u{feff} \r\n",
        "{}",
        "{}\n",
        "{ }",
        "{\n}",
        "{\n\n  }\n",
        "\u{feff}{}",
        "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n",
        "{\"a\":1}",
        "{ \"a\" : 1 }",
        "  {\n    \"a\": [\n]}",
        "{\"hooks\":{}}",
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        "{\n  \"hooks\": {\"Stop\": [ ], \"PreToolUse\": [\n]},\n  \"z\": null}",
        "{\"hooks\":{\"Stop\":[]}}",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[]}]}}",
        "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"verdone hook\"}]}\n\t\t]\n\t}\n}",
        "{\"env\":{}}",
        "{\n  \"env\": {\n  }\n}\n",
        "{\n  \"env\": {\n    \"A\": \"1\"\n  },\n  \"hooks\": {}\n}\n",
        "{\"env\":{\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\":\"100\"}}",
        "{\"env\":{\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\":\"3\",\"B\":\"\"}}",
        "{\"env\": null, \"hooks\": {\"SubagentStop\": []}}",
        "{\"env\": {\"A\": \"1\"}, \"env\": {}, \"a\": 1}",
        "{\"hooks\": 5, \"hooks\": {\"Stop\": 1, \"Stop\": []}}",
        "{\"hooks\": {\"Stop\": []}, \"x\": \"\\ud800 \\\" } ,\", \"hooks\": {}}",
    ] {
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            let with = put_in(text);
            assert_eq!((put_in(&with), take_out(&with)), (with.clone(), text.to_owned()));
        } else {
            // Our JSON reader rejects the lone surrogate, so such a file is only compared as bytes.
            if text.contains("\\ud800") {
                assert_eq!(take_out(&put_in(text)), text);
            } else {
                assert_round_trip(text);
            }
        }
    }
}

#[test]
fn a_file_and_a_folder_that_were_made_for_us_are_told() {
    let (no_file, no_folder) = (install(Before::NoFile, PROGRAM).unwrap(), install(Before::NoFolder, PROGRAM).unwrap());
    assert_has_all(&no_file, PROGRAM);
    assert_has_all(&no_folder, PROGRAM);
    assert_eq!(uninstall(&no_file), Ok(After::NoFile));
    assert_eq!(uninstall(&no_folder), Ok(After::NoFolder));
    for text in [&no_file, &no_folder] {
        let moved = install(Before::Text(text), "/opt/verdone").unwrap();
        assert_has_all(&moved, "/opt/verdone");
        assert_eq!(uninstall(&moved), uninstall(text), "a new program does not change what was there");
        let rewritten = serde_json::to_string_pretty(&value(text)).unwrap();
        assert_eq!(value(&rewritten), value(text));
    }
    let with_more = no_file.replacen('{', "{\n  \"model\": \"opus\",", 1);
    assert_eq!(take_out(&with_more), "{\n  \"model\": \"opus\"\n}\n", "what the user added stays, and the file with it");
}

#[test]
fn a_file_of_ours_reads_well() {
    let text = install(Before::NoFile, "/home/ada/.cargo/bin/verdone").unwrap();
    assert!(text.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [{ \"hooks\": [{ \"type\": \"command\", "), "{text}");
    assert!(text.ends_with(" }] }]\n  },\n  \"env\": { \"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": \"100\" }\n}\n"), "{text}");
    assert_eq!(text.lines().count(), EVENTS.len() + 5);
}

#[test]
fn a_limit_of_the_users_own_stays_and_one_that_was_changed_since_is_the_users() {
    let theirs = "{\"env\": {\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": \"3\"}}";
    assert_eq!(value(&put_in(theirs))["env"], json!({CAP: "3"}));
    assert_eq!(value(&put_in("{\"env\": {\"A\": \"1\"}}"))["env"], json!({CAP: "100", "A": "1"}));
    for before in [Before::NoFile, Before::Text("{}"), Before::Text("{\"env\": {}}")] {
        let with = install(before, PROGRAM).unwrap();
        let changed = with.replace("\"100\"", "\"40\"");
        assert_eq!(put_in(&changed), changed, "it is up to date");
        assert_eq!(value(&take_out(&changed)), json!({"env": {CAP: "40"}}));
        let gone = with.replace("\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": \"100\"", "");
        assert_eq!(value(&put_in(&gone))["env"], json!({CAP: "100"}), "what is missing is put in again");
    }
}

#[test]
fn hooks_of_an_earlier_version_get_the_limit_and_still_come_out_whole() {
    let with = put_in("{\"a\": 1}");
    let start = with.find("\"env\"").unwrap();
    let end = start + with[start..].find('}').unwrap() + 1;
    let old = format!("{}{}", &with[..start], with[end..].trim_start_matches(',').trim_start()).replace(
        "\"type\": \"command\", \"args\": [\"hook\"], \"command\": \"/usr/bin/verdone\"",
        "\"type\": \"command\", \"command\": \"/usr/bin/verdone\", \"args\": [\"hook\"]",
    );
    assert_eq!(value(&old).get("env"), None, "{old}");
    let new = put_in(&old);
    assert_has_all(&new, PROGRAM);
    assert_eq!(value(&take_out(&new)), json!({"a": 1}));
}

#[test]
fn hooks_of_the_user_keep_their_place_and_look() {
    let text = "{\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"hooks\": []\n            }\n        ]\n    }\n}\n";
    let with = put_in(text);
    assert!(with.contains("\n        \"SessionStart\": [{ \"hooks\""), "{with}");
    assert!(with.contains("\n        \"Stop\": [\n            { \"hooks\": [{ \"type\""), "{with}");
    let tight = put_in("{\"a\":1}");
    assert!(
        tight.starts_with("{\"hooks\":{\"SessionStart\":[{\"hooks\":[{\"type\":\"command\",") && !tight.contains(' '),
        "{tight}"
    );
}

#[test]
fn a_client_that_writes_the_file_anew_does_not_keep_us_in_it() {
    for text in [
        "{}",
        "{\"a\": 1, \"hooks\": {\"Stop\": [{\"hooks\": []}], \"Other\": []}}",
        "{\"hooks\": {}}",
        "{\"hooks\": {\"Stop\": []}}",
    ] {
        let with = put_in(text);
        let mut parsed = value(&with);
        assert_eq!(parsed["hooks"]["SessionStart"].as_array().map(Vec::len), Some(1));
        // Compares the values, not the order of our keys or the whitespace.
        let rewritten = pretty(&with);
        assert_eq!(value(&rewritten), parsed);
        assert_eq!(value(&take_out(&rewritten)), value(text), "{rewritten}");
        assert_eq!(install(Before::Text(&rewritten), PROGRAM).unwrap(), rewritten, "nothing to do");
        parsed["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] = json!(500);
        assert_has_all(&put_in(&parsed.to_string()), PROGRAM);
    }
}

/// Keeps the order of keys, like clients: every bracket and comma ends a line.
fn pretty(text: &str) -> String {
    let mut out = String::new();
    let (mut inside, mut escaped, mut depth) = (false, false, 0_usize);
    for c in text.chars() {
        if inside {
            out.push(c);
            inside = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' => {
                inside = true;
                out.push(c);
            }
            '{' | '[' => {
                depth += 1;
                out.push(c);
                out.push_str(&format!("\n{}", " ".repeat(depth * 2)));
            }
            '}' | ']' => {
                depth -= 1;
                out.push_str(&format!("\n{}", " ".repeat(depth * 2)));
                out.push(c);
            }
            ',' => out.push_str(&format!(",\n{}", " ".repeat(depth * 2))),
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[test]
fn handlers_that_the_user_put_beside_ours_stay() {
    let with = put_in("{}");
    let other = "{\"type\": \"command\", \"command\": \"mine\"}";
    let beside = with.replacen("[{ \"type\"", &format!("[{other}, {{ \"type\""), 1);
    let settings = value(&take_out(&beside));
    assert_eq!(settings, json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mine"}]}]}}));
    let named = with.replacen("[{ \"hooks\"", "[{ \"note\": 1, \"hooks\"", 1);
    assert_eq!(value(&take_out(&named)), json!({"hooks": {"SessionStart": [{"note": 1, "hooks": []}]}}));
}

#[test]
fn what_is_no_json_or_no_settings_is_refused_with_its_place() {
    for (text, line, column, message) in [
        ("{\n  // mine\n  \"a\": 1\n}", 2, 3, "expected a key in double quotes, found `/`"),
        ("{\"a\": 1,}", 1, 9, "a comma before the closing bracket"),
        ("{\"a\": 1", 1, 8, "the file ends too early"),
        ("[]", 1, 1, "settings must be an object, not a list"),
        ("\u{feff}nul", 1, 4, "the file ends too early"),
        ("{} {}", 1, 4, "unexpected text after"),
    ] {
        for problem in [install(Before::Text(text), PROGRAM).unwrap_err(), uninstall(text).unwrap_err()] {
            assert_eq!((problem.line, problem.column), (line, column), "{text}: {problem:?}");
            assert!(problem.message.starts_with(message), "{problem:?}");
        }
    }
    for (text, column, message) in [
        ("{\"hooks\": []}", 11, "`hooks` is a list, but clients expect an object"),
        ("{\"hooks\": null}", 11, "`hooks` is null, but clients expect an object"),
        ("{\"hooks\": {\"Stop\": {}}}", 20, "`Stop` is an object, but clients expect a list"),
    ] {
        let problem = install(Before::Text(text), PROGRAM).unwrap_err();
        assert_eq!((problem.line, problem.column, problem.message.as_str()), (1, column, message));
        assert_eq!(take_out(text), text, "nothing of ours is in it");
    }
}

#[test]
fn what_is_installed_is_told() {
    assert_eq!(installed("").unwrap(), None);
    assert_eq!(installed("{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}}").unwrap(), None);
    let found = installed(&put_in("{\"disableAllHooks\": true}")).unwrap().unwrap();
    assert_eq!(found.commands, [[PROGRAM, "hook"]]);
    assert_eq!((found.events, found.missing.len(), found.disabled), (19, 0, true));
    let fewer = put_in("{}").replacen("\"SessionStart\"", "\"Elsewhere\"", 1);
    assert_eq!(installed(&fewer).unwrap().unwrap().missing, ["SessionStart"]);
}

fn space() -> BoxedStrategy<String> {
    prop_oneof![
        4 => Just(String::new()),
        2 => Just(" ".to_owned()),
        2 => "\n {0,4}",
        1 => "\r\n\t{0,2}",
        1 => "[ \t\r\n]{0,4}",
    ]
    .boxed()
}

fn joined(open: char, close: char, elements: Vec<(String, String, String)>, empty: &str) -> String {
    let inner: Vec<String> = elements.into_iter().map(|(before, element, after)| format!("{before}{element}{after}")).collect();
    if inner.is_empty() { format!("{open}{empty}{close}") } else { format!("{open}{}{close}", inner.join(",")) }
}

fn list(element: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    (prop::collection::vec((space(), element, space()), 0..4), space())
        .prop_map(|(elements, empty)| joined('[', ']', elements, &empty))
        .boxed()
}

fn object(
    key: impl Strategy<Value = String> + 'static,
    element: impl Strategy<Value = String> + 'static,
) -> BoxedStrategy<String> {
    let member =
        (key, space(), space(), element).prop_map(|(key, before, after, value)| format!("\"{key}\"{before}:{after}{value}"));
    (prop::collection::vec((space(), member, space()), 0..5), space())
        .prop_map(|(members, empty)| joined('{', '}', members, &empty))
        .boxed()
}

fn anything() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[1-9][0-9]{0,3}(\\.[0-9]{1,2})?",
        "\"([ a-z{}\\[\\],:é]|\\\\\"|\\\\\\\\|\\\\n|\\\\u00e9){0,8}\"",
    ];
    leaf.prop_recursive(2, 8, 3, |inner| prop_oneof![list(inner.clone()), object("[a-z]{1,4}", inner)]).boxed()
}

fn handler() -> BoxedStrategy<String> {
    prop_oneof![
        Just("{\"type\": \"command\", \"command\": \"/usr/bin/verdone hook\"}".to_owned()),
        Just("{\"type\":\"command\",\"command\":\"other\",\"args\":[\"x\"]}".to_owned()),
        anything(),
    ]
    .boxed()
}

fn group() -> BoxedStrategy<String> {
    prop_oneof![object("matcher|hooks|x", list(handler())), anything()].boxed()
}

fn event_name() -> BoxedStrategy<String> {
    prop_oneof![prop::sample::select(&EVENTS[..]).prop_map(str::to_owned), "[A-Z][a-z]{1,5}"].boxed()
}

fn hooks() -> BoxedStrategy<String> {
    object(event_name(), prop_oneof![1 => space().prop_map(|space| format!("[{space}]")), 2 => list(group())]).boxed()
}

fn settings() -> BoxedStrategy<String> {
    let with_hooks =
        (object("[a-z]{1,5}", anything()), hooks(), space(), space(), any::<bool>()).prop_map(|(rest, hooks, a, b, first)| {
            let inner = &rest[1..rest.len() - 1];
            let member = format!("{a}\"hooks\":{b}{hooks}");
            match (inner.trim().is_empty(), first) {
                (true, _) => format!("{{{member}{inner}}}"),
                (false, true) => format!("{{{member},{inner}}}"),
                (false, false) => format!("{{{inner},{member}}}"),
            }
        });
    let variables = object("A|B|CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", prop_oneof![Just("\"100\"".to_owned()), anything()]);
    let with_env =
        (object("[a-z]{4,5}", anything()), variables, hooks(), space(), 0..4).prop_map(|(rest, env, hooks, a, order)| {
            let inner = &rest[1..rest.len() - 1];
            let (env, hooks) = (format!("{a}\"env\":{a}{env}"), format!("{a}\"hooks\":{hooks}"));
            let members = match order {
                0 => vec![env],
                1 => vec![env, hooks],
                2 => vec![hooks, env],
                _ => vec![inner.to_owned(), env],
            };
            format!("{{{}}}", members.into_iter().filter(|member| !member.trim().is_empty()).collect::<Vec<_>>().join(","))
        });
    let root = prop_oneof![1 => object("[a-z]{1,5}", anything()), 3 => with_hooks, 2 => with_env];
    (prop_oneof![Just(""), Just("\u{feff}")], space(), root, space())
        .prop_map(|(mark, before, root, after)| format!("{mark}{before}{root}{after}"))
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn taking_out_what_was_put_in_gives_the_same_bytes(text in settings()) {
        assert_round_trip(&text);
    }

    #[test]
    fn what_the_user_wrote_means_the_same_with_our_hooks_beside_it(text in settings()) {
        let (before, mut with) = (value(&text), value(&put_in(&text)));
        let hooks = with["hooks"].as_object_mut().unwrap();
        for event in EVENTS {
            let list = hooks[event].as_array_mut().unwrap();
            list.remove(0);
            if list.is_empty() && before["hooks"].get(event).is_none() {
                hooks.remove(event);
            }
        }
        if hooks.is_empty() && before.get("hooks").is_none() {
            with.as_object_mut().unwrap().remove("hooks");
        }
        if let Some(env) = with["env"].as_object_mut()
            && before["env"].get(CAP).is_none()
        {
            prop_assert_eq!(env.remove(CAP), Some(json!("100")));
            if env.is_empty() && before.get("env").is_none() {
                with.as_object_mut().unwrap().remove("env");
            }
        }
        prop_assert_eq!(with, before);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\",:a\\\\ \n\u{feff}1]{0,40}") {
        let _ = install(Before::Text(&text), PROGRAM);
        let _ = uninstall(&text);
        let _ = installed(&text);
    }
}
