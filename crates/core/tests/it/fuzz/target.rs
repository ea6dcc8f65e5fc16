//! The fuzz targets: their code, their inputs, and what must be true. A target fails by panicking; the number it returns identifies what an
//! input showed.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use serde_json::Value;
use verdone_core::check::{CommandSpec, tests_seen};
use verdone_core::hook::settings::{After, Before, install, installed, uninstall};
use verdone_core::hook::{HookInput, Response, Situation, Target as FileTarget, ValueEnd, event_in, respond, target};
use verdone_core::policy::{Mode, OnUnknown, PolicyContext, ToolCall, built_in, evaluate, paths_to_resolve};
use verdone_shell::{Variables, parse};

use crate::policy::project::{context, rules};
use crate::policy::table::{COMPUTED, DATA, DENIED, EVERYDAY};

pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]) -> u64,
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    pub(crate) words: &'static [&'static str],
}

/// Every command line is parsed in bounded time, and everything reported about it names parts of it.
pub(crate) const SHELL: Target = Target { name: "shell", run: shell, seeds: commands, words: SHELL_WORDS };
/// Any bytes on standard input give an error or an answer that the client accepts.
pub(crate) const HOOK: Target = Target { name: "hook", run: hook, seeds: inputs, words: HOOK_WORDS };
/// Any output of any command.
pub(crate) const TEST_OUTCOME: Target = Target { name: "test_outcome", run: outcome, seeds: outputs, words: OUTPUT_WORDS };
/// Any settings file is refused, or edited so that the edit can be reverted byte for byte.
pub(crate) const SETTINGS: Target = Target { name: "settings", run: settings, seeds: settings_files, words: JSON_WORDS };
/// Fails on purpose.
pub(crate) const TRAP: Target =
    Target { name: "trap", run: trap, seeds: || vec![b"a word ".to_vec()], words: &["tr", "ap", "x "] };

fn shell(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let script = parse(&text, &Variables::new());
    for simple in &script.commands {
        assert!(text.get(simple.range.clone()).is_some(), "a command's range is no part of the text");
    }
    let call = ToolCall::bash(&text);
    let mut place = context();
    paths_to_resolve(&call, &place);
    let decision = evaluate(&call, &place, &rules());
    if let Some(found) = &decision.command {
        assert!(text.get(found.range.clone()).is_some(), "the range of what was found is no part of the text");
    }
    place.on_unknown = OnUnknown::Deny;
    let strict = evaluate(&call, &place, &rules());
    assert!(strict.verdict >= decision.verdict, "a stricter setting allows more");
    let unknown: Vec<_> = script.unknown.iter().take(5).map(|unknown| unknown.why.describe()).collect();
    let programs: Vec<_> = script.commands.iter().take(6).map(|simple| (simple.words.first(), simple.certain)).collect();
    kind(&(unknown, format!("{programs:?}"), decision.rule.map(|(name, _)| name)))
}

fn hook(bytes: &[u8]) -> u64 {
    let whole = ValueEnd::default().find(bytes).unwrap_or(bytes.len());
    let bytes = &bytes[..whole];
    event_in(bytes);
    let input = match HookInput::parse(bytes) {
        Ok(input) => input,
        Err(error) => return kind(&std::mem::discriminant(&error)),
    };
    let event = input.common.event_name.as_ref();
    let Ok(call) = input.call().map(|call| call.for_policy(event)).transpose() else { return kind(&(event, "no call")) };
    let rules = built_in();
    let mut said = Vec::new();
    for mode in [Mode::Run, Mode::Interactive] {
        let context = PolicyContext { mode, cwd: input.common.cwd.to_string(), ..context() };
        let path = call.as_ref().and_then(|call| target(call, &context));
        let target = path.map(|path| FileTarget { path, exists: true, known: bytes.len().is_multiple_of(2) });
        let briefing = Some(event).filter(|event| event.len().is_multiple_of(2));
        let situation = Situation {
            rules: &rules,
            context: &context,
            call: call.as_ref(),
            target: target.as_ref(),
            briefing,
            tests: None,
            after_tool: &[],
            watch: None,
        };
        let response = respond(&input, &situation);
        assert_valid(event, &response);
        serde_json::to_string(&response.records).expect("records can be written");
        said.push(format!("{:?}", std::mem::discriminant(&response.answer)));
    }
    kind(&(event, call.map(|call| call.tool), said))
}

/// The client ignores any answer that is not exactly in this format, and allows the call.
fn assert_valid(event: &str, response: &Response) {
    let Some(answer) = response.answer.to_json() else { return };
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty() && text.len() <= 9_000);
    let inner = &answer["hookSpecificOutput"];
    let valid = match event {
        "PreToolUse" => {
            inner["permissionDecision"] == "allow"
                || (inner["permissionDecision"] == "deny" && text(&inner["permissionDecisionReason"]))
        }
        "PermissionRequest" => {
            let decision = &inner["decision"];
            decision["behavior"] == "allow" || (decision["behavior"] == "deny" && text(&decision["message"]))
        }
        "ConfigChange" | "UserPromptSubmit" => answer["decision"] == "block" && text(&answer["reason"]),
        "SessionStart" | "PostToolUse" | "PostToolUseFailure" => text(&inner["additionalContext"]),
        _ => false,
    };
    let named = inner.is_null() || inner["hookEventName"] == event;
    assert!(valid && named, "the client would ignore this answer to {event}: {answer}");
}

/// The first line is the command, the second its exit code.
fn outcome(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let (command, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let (code, output) = rest.split_once('\n').unwrap_or((rest, ""));
    let commands: Vec<Vec<&str>> = command.split(['|', ';', '&']).map(|part| part.split_whitespace().collect()).collect();
    let code = code.trim().parse().ok();
    let seen = tests_seen(&CommandSpec::Shell(command.to_owned()), code.unwrap_or(0), output, &[]);
    let count = seen.count.unwrap_or_default();
    assert!(!(seen.nothing_ran && seen.some_ran), "tests ran, and none did");
    assert_eq!(count.ran, count.passed.saturating_add(count.failed));
    let Some(outcome) = verdone_testlog::read(&commands, code, output) else { return 0 };
    let summary = verdone_testlog::describe_outcome(&outcome);
    assert!(!summary.trim().is_empty(), "an outcome without words");
    kind(&format!("{:?} {:?} {}", outcome.framework, outcome.state, outcome.failures.len().min(5)))
}

fn settings(bytes: &[u8]) -> u64 {
    let Ok(text) = std::str::from_utf8(bytes) else { return 0 };
    let Ok(with) = install(Before::Text(text), "/usr/bin/verdone") else { return 1 };
    let is_read = |text: &str| serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).is_ok();
    // Clients accept numbers of any size, this reader does not.
    assert!(is_read(&with) || !is_read(text), "the edited file is no JSON: {with}");
    assert_eq!(install(Before::Text(&with), "/usr/bin/verdone").ok().as_ref(), Some(&with), "a second edit changes something");
    let ours = installed(&with).expect("an edited file can be read").expect("our hooks are in it");
    assert!(ours.missing.is_empty(), "{ours:?}");
    let before = installed(text).ok().flatten();
    if before.is_none() {
        assert_eq!(uninstall(&with).ok(), Some(After::Text(text.to_owned())), "what comes back is not what was there");
    }
    kind(&(text.contains("\"hooks\""), before.map(|before| (before.events, before.commands.len(), before.disabled))))
}

fn trap(bytes: &[u8]) -> u64 {
    assert!(!bytes.windows(4).any(|part| part == b"trap"), "the trap was sprung");
    kind(bytes)
}

fn kind(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn commands() -> Vec<Vec<u8>> {
    let rules = built_in();
    let examples = rules.iter().flat_map(|rule| rule.examples.matches.iter().chain(rule.examples.not_matches.iter()));
    let denied = DENIED.iter().map(|(_, command)| *command).chain(COMPUTED.iter().map(|(_, command)| *command));
    let tables = denied.chain(DATA.iter().chain(EVERYDAY).copied());
    examples.chain(tables).map(|text| text.as_bytes().to_vec()).collect()
}

fn inputs() -> Vec<Vec<u8>> {
    files("hooks", |name| name.ends_with(".json")).into_iter().map(|(_, bytes)| bytes).collect()
}

fn outputs() -> Vec<Vec<u8>> {
    let commands = files("../../../testlog/tests/fixtures/outputs", |name| name.ends_with(".cmd"));
    let codes = files("../../../testlog/tests/fixtures/outputs", |name| name.ends_with(".exit"));
    // Long outputs contain nothing that shorter ones do not, and take most of the time.
    let outputs = files("../../../testlog/tests/fixtures/outputs", |name| name.ends_with(".txt"));
    let stem = |name: &str| name.rsplit_once('.').map(|(stem, _)| stem.to_owned());
    let find = |list: &[(String, Vec<u8>)], name: &str| {
        list.iter().find(|(other, _)| stem(other) == stem(name)).map(|(_, bytes)| bytes.trim_ascii().to_vec())
    };
    let short = outputs.into_iter().filter(|(name, bytes)| bytes.len() < 8_000 && name != "expected.txt");
    let whole = |(name, output): (String, Vec<u8>)| Some([find(&commands, &name)?, find(&codes, &name)?, output].join(&b'\n'));
    short.filter_map(whole).collect()
}

fn settings_files() -> Vec<Vec<u8>> {
    let ours = install(Before::NoFile, "/usr/bin/verdone").unwrap();
    let plain = [
        "",
        "{}",
        "{\n  \"model\": \"opus\"\n}\n",
        "{\n\t\"hooks\": {},\n\t\"env\": {\"A\": \"1\"}\n}",
        "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}],\"Stop\":[]}}",
        "{\r\n  \"permissions\": {\"allow\": [\"Bash(ls)\"]},\r\n  \"disableAllHooks\": true\r\n}\r\n",
    ];
    plain.into_iter().chain([ours.as_str()]).map(|text| text.as_bytes().to_vec()).collect()
}

fn files(folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let named = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<(String, Vec<u8>)> = named
        .filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path)))
        .filter(|(name, _)| wanted(name))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "the real inputs are not there");
    found
}

const SHELL_WORDS: &[&str] = &[
    "git ",
    "push",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "(",
    ")",
    "{ ",
    "}",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "$",
    "${",
    "}",
    "$'",
    "<<EOF\n",
    "EOF\n",
    "<<-'A'\n",
    "<<<",
    "<(",
    ">(",
    ">",
    ">>",
    "[[ ",
    " ]]",
    "((",
    "))",
    "if ",
    "then ",
    "else ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "while ",
    "case x in ",
    ") ",
    ";; ",
    "esac",
    "x=",
    "x+=(",
    "$x",
    "${x[@]}",
    "${x:-",
    "${x//a/b}",
    "\"$@\"",
    "{a,b}",
    "{1..9}",
    "*",
    "?",
    "[a]",
    "~",
    "#",
    "eval ",
    "bash -c ",
    "sh <<A\n",
    "xargs ",
    "find . -exec ",
    "env ",
    "sudo ",
    "-c ",
    "=",
    "é",
    "\u{F8FF}",
    "\u{1F600}",
    "\0",
    "\r",
    "\t",
    "f() ",
    "function ",
    "time ",
    "! ",
    "coproc ",
    "alias a=",
    "trap ",
    "read x ",
    "printf %s ",
    "export ",
    "2>&1",
    "<>",
    ">&",
    "source ",
    "cd ",
    "set -- ",
    "shift ",
    "local ",
    "declare -A ",
    "unset ",
    "\\\n",
    "git -c alias.x=",
    "${!x}",
    "$((",
    "$[",
];
const HOOK_WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"hook_event_name\":\"PreToolUse\"",
    "\"hook_event_name\":\"PostToolUse\"",
    "\"hook_event_name\":\"PermissionRequest\"",
    "\"hook_event_name\":\"ConfigChange\"",
    "\"hook_event_name\":\"SessionStart\"",
    "\"hook_event_name\":\"PostToolUseFailure\"",
    "\"tool_name\":\"Bash\"",
    "\"tool_name\":\"Edit\"",
    "\"tool_name\":\"Read\"",
    "\"tool_name\":\"mcp__x\"",
    "\"tool_name\":\"\"",
    "\"tool_input\":{\"command\":\"git push\"}",
    "\"tool_input\":{\"file_path\":\"/work/project/.git/x\"}",
    "\"tool_input\":[]",
    "\"tool_response\":{\"stdout\":\"FAILED a::b\"}",
    "\"session_id\":\"../x\"",
    "\"cwd\":\"\"",
    "\"file_path\":\"~/..\"",
    "\"command\":\"pytest\"",
    "\"content\":\"",
    "\"edits\":[{}]",
    "\"error\":\"Exit code 1\\nFAILED\"",
    "\u{feff}",
    " ",
    "\n",
    "é",
];
const OUTPUT_WORDS: &[&str] = &[
    "pytest\n",
    "cargo test\n",
    "go test ./...\n",
    "npx jest\n",
    "1\n",
    "0\n",
    "\n",
    "\r\n",
    "\t",
    "  ",
    "FAIL",
    "FAILED ",
    "ok ",
    "not ok ",
    "1..3\n",
    "--- FAIL: ",
    "✗",
    "✕",
    "×",
    "Tests: ",
    "1 failed",
    "2 passed",
    "test result: ",
    "Failures:",
    "failures:\n",
    "    ",
    "\u{1b}[31m",
    "\u{1b}[0m",
    "\u{1b}]8;;",
    ":1:2",
    "Error: ",
    "at ",
    "::",
    " > ",
    "=",
    "=====",
    "18446744073709551616",
    "99999999999 passed",
    "(",
    ")",
    "é",
    "\u{1F600}",
    "\0",
    "panicked at ",
    "running 1 test\n",
    "%",
    "<testsuite ",
    "BUILD FAILURE\n",
    "FAILURES!\n",
    "failing",
    "passing",
];
const JSON_WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\"hooks\":",
    "\"hooks\": {}",
    "\"PreToolUse\": []",
    "\"Stop\": [{}]",
    "\"matcher\":\"*\"",
    "\"type\":\"command\"",
    "\"command\":\"/usr/bin/verdone\"",
    "\"args\":[\"hook\"]",
    "\"timeout\": 10",
    "null",
    "true",
    "1",
    "1.5e3",
    "\"\"",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\u{feff}",
    "é",
    "//",
    "/* */",
    "\"disableAllHooks\": true",
    "\"verdone\"",
    "{}",
    "[]",
    ",}",
    "\"a\":1,",
];
