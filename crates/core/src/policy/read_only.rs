//! The read-only rule for planning and judging. Whatever is not known to be read-only counts as a change.

use std::borrow::Cow;

use super::act::Acts;
use super::matcher::{Certainty, Hit, Matcher, found};
use super::tool::{ToolKind, kind_of};
use super::{Examples, Family, MatchedRule, Rule, Source, ToolCall};
use crate::base::verdict::PolicyVerdict;
use verdone_shell::{RedirectKind, Runs, Simple, Word, git_call};
use verdone_text::pattern::name_matches;

/// Why an agent is restricted to reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyReason {
    /// It creates a plan.
    Planning,
    /// It judges another agent's work. The text of that work may ask for anything, so nothing may leave the machine either.
    Judging,
}

impl ReadOnlyReason {
    const ALL: [Self; 2] = [Self::Planning, Self::Judging];

    /// The value of the environment variable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Judging => "judging",
        }
    }

    /// Parses a name; an unknown one gives the strictest variant.
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|looking| looking.name() == name).unwrap_or(Self::Judging)
    }

    /// The rule's name in denials and records.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Planning => "planning-looks-only",
            Self::Judging => "judging-looks-only",
        }
    }
}

/// Tools that neither change a file nor run anything.
const TOOLS: &[&str] = &[
    "Glob",
    "Grep",
    "LS",
    "ToolSearch",
    "list_directory",
    "glob",
    "search_file_content",
    "Todo*",
    "write_todos",
    "Task*",
    "BashOutput",
    "KillShell",
    "KillBash",
    "LSP",
    "StructuredOutput",
    "ListAgents",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
];

/// Tools that access the network.
const WEB: &[&str] = &["WebFetch", "WebSearch", "web_fetch", "google_web_search"];

/// Programs that are read-only with any arguments.
const PROGRAMS: &[&str] = &[
    ":", "[", "[[", "basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "egrep", "false",
    "fgrep", "grep", "head", "id", "jq", "ls", "nl", "pwd", "readlink", "realpath", "sleep", "stat", "tac", "tail", "test", "tr",
    "true", "type", "uname", "wc", "which", "whoami",
];

/// Git commands that are read-only, unless an option says otherwise.
const GIT: &[&str] = &[
    "blame",
    "cat-file",
    "describe",
    "diff",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
];
/// Their options that write a file or start a program. Long options may be abbreviated.
const GIT_OPTIONS: &[&str] = &["--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--exec-path"];
/// Git commands that only list, without arguments or with these.
const GIT_LISTS: &[(&str, &[&str])] = &[
    ("branch", &["-a", "-r", "-v", "-vv", "-l", "--all", "--list", "--show-current"]),
    ("tag", &["-l", "--list"]),
    ("remote", &["-v", "--verbose"]),
];

/// Denies everything that is not read-only. Settings cannot turn it off.
pub fn read_only_rule(looking: ReadOnlyReason) -> Rule {
    let (reason, alternative) = match looking {
        ReadOnlyReason::Planning => (
            "nothing may be changed or run while a plan is being made",
            "look with Read, Grep, Glob or plain commands such as ls, cat and git log; then print the plan",
        ),
        ReadOnlyReason::Judging => (
            "nothing may be changed, run or fetched while work is being judged; its checks have already run",
            "look with Read, Grep, Glob or plain commands such as ls, cat and git diff; then give the answer that was asked for",
        ),
    };
    Rule {
        name: Cow::Borrowed(looking.rule()),
        family: Family::Tools,
        tools: Vec::new(),
        matcher: Matcher::BeyondLooking(looking),
        verdict: PolicyVerdict::Deny,
        reason: Cow::Borrowed(reason),
        alternative: Cow::Borrowed(alternative),
        examples: Examples::default(),
        source: Source::BuiltIn,
    }
}

/// The first part of a call that may do more than read.
pub(super) fn beyond(looking: ReadOnlyReason, call: &ToolCall, acts: &Acts) -> Option<Hit> {
    let knows = |tools: &[&str]| tools.iter().any(|glob| name_matches(glob, &call.tool));
    let whole = || Some(Hit { certainty: Certainty::Yes, command: None, path: None });
    match kind_of(&call.tool) {
        // A subagent's calls are judged in the same way.
        ToolKind::Read | ToolKind::Agent => None,
        ToolKind::Other if knows(TOOLS) || (looking == ReadOnlyReason::Planning && knows(WEB)) => None,
        ToolKind::Write | ToolKind::Other => whole(),
        ToolKind::Shell if call.tool != "Bash" => whole(),
        ToolKind::Shell => {
            if let Some(unknown) = acts.script.unknown.first() {
                let command = Some(MatchedRule { range: unknown.range.clone(), text: unknown.why.describe().to_owned() });
                return Some(Hit { certainty: Certainty::Yes, command, path: None });
            }
            let simple = acts.script.commands.iter().find(|simple| !only_looks(simple))?;
            Some(Hit { certainty: Certainty::Yes, command: Some(found(simple)), path: None })
        }
    }
}

fn only_looks(simple: &Simple) -> bool {
    let writes = simple.redirects.iter().any(|redirect| match redirect.kind {
        RedirectKind::Read => false,
        RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite => redirect.target.literal() != Some("/dev/null"),
    });
    // A variable may change which program a name refers to, and what it loads.
    if writes || !simple.certain || simple.runs != Runs::Nothing || !simple.assignments.is_empty() {
        return false;
    }
    let Some((program, arguments)) = simple.words.split_first() else { return true };
    let Some(name) = program.literal() else { return false };
    if PROGRAMS.contains(&name) {
        return true;
    }
    // The others depend on their arguments, so all of them must be known.
    let Some(arguments) = arguments.iter().map(Word::literal).collect::<Option<Vec<&str>>>() else { return false };
    match name {
        "find" => {
            !arguments.iter().any(|word| ["-exec", "-ok", "-delete", "-fprint", "-fls"].iter().any(|bad| word.starts_with(bad)))
        }
        // Bash can store the output in a variable.
        "printf" => !arguments.first().is_some_and(|word| word.starts_with("-v")),
        "rg" => !arguments.iter().any(|word| word.starts_with("--pre") || word.starts_with("--hostname-bin")),
        "sort" => {
            !arguments.iter().any(|word| word.starts_with("--") || (word.starts_with('-') && word.contains(['o', 'T', 'S'])))
        }
        // A second operand would be the output file.
        "uniq" => arguments.iter().all(|word| word.starts_with('-') && !word.starts_with("--")),
        "sed" => prints_lines(&arguments),
        "git" => git_looks(&simple.words, &arguments),
        _ => false,
    }
}

/// `sed -n 10,20p FILE`. Any other script could write or run something.
fn prints_lines(arguments: &[&str]) -> bool {
    let Some(at) = arguments.iter().position(|word| !word.starts_with('-')) else { return false };
    let lines = arguments[at].chars().all(|c| c.is_ascii_digit() || ",$;p ".contains(c));
    lines && arguments.iter().all(|word| !word.starts_with('-') || *word == "-n")
}

fn git_looks(words: &[Word], arguments: &[&str]) -> bool {
    let Some(call) = git_call(words).filter(|call| !call.guessed && call.settings.is_empty()) else { return false };
    let Some(command) = call.command.literal() else { return false };
    let before = &arguments[..arguments.len().saturating_sub(call.arguments.len() + 1)];
    // Between `git` and its subcommand, accept only options that say where to look.
    let plain = matches!(before, [] | ["--no-pager"] | ["-C", _] | ["--no-pager", "-C", _] | ["-C", _, "--no-pager"]);
    let given = &arguments[before.len() + 1..];
    let listed = || GIT_LISTS.iter().any(|(name, options)| *name == command && given.iter().all(|word| options.contains(word)));
    let pager = |word: &&str| command == "grep" && word.starts_with('-') && !word.starts_with("--") && word.contains('O');
    plain && ((GIT.contains(&command) && !given.iter().any(|word| does_more(word) || pager(word))) || listed())
}

/// Whether a word may be an option that does more than read.
fn does_more(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let cut = |option: &&str| name.len() > 4 && option.starts_with(name);
    GIT_OPTIONS.iter().any(cut)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::example::context;
    use super::super::{built_in, evaluate};
    use super::*;

    fn denied(call: &ToolCall) -> bool {
        denied_while(ReadOnlyReason::Planning, call)
    }

    fn denied_while(looking: ReadOnlyReason, call: &ToolCall) -> bool {
        let mut rules = vec![read_only_rule(looking)];
        rules.extend(built_in());
        let decision = evaluate(call, &context(), &rules);
        let by_us = decision.rule.as_ref().is_some_and(|(name, _)| name == looking.rule());
        assert_eq!(decision.verdict == PolicyVerdict::Deny, by_us, "{call:?}: {decision:?}");
        by_us
    }

    #[test]
    fn a_judge_looks_as_a_planner_does_and_not_beyond_this_machine() {
        let call = |tool: &str, input: serde_json::Value| ToolCall { tool: tool.to_owned(), input };
        let web = [("WebFetch", json!({ "url": "https://example.com" })), ("WebSearch", json!({ "query": "x" }))];
        for (tool, input) in web {
            let call = call(tool, input);
            assert!(denied_while(ReadOnlyReason::Judging, &call) && !denied_while(ReadOnlyReason::Planning, &call), "{tool}");
        }
        for (tool, input) in [("Read", json!({ "file_path": "/work/project/src/a" })), ("StructuredOutput", json!({}))] {
            assert!(!denied_while(ReadOnlyReason::Judging, &call(tool, input)), "{tool}");
        }
        assert!(!denied_while(ReadOnlyReason::Judging, &ToolCall::bash("git diff HEAD~1 | head -n 100")));
        for command in ["cargo test", "echo x > a", "curl https://example.com"] {
            assert!(denied_while(ReadOnlyReason::Judging, &ToolCall::bash(command)), "{command}");
        }
        assert_eq!(ReadOnlyReason::ALL.map(|looking| ReadOnlyReason::from_name(looking.name())), ReadOnlyReason::ALL);
        assert_eq!(ReadOnlyReason::from_name("whatever"), ReadOnlyReason::Judging);
    }

    #[test]
    fn commands_that_only_look_are_allowed_while_planning() {
        for command in [
            "ls -la",
            "cd src && cat main.rs | head -n 50",
            "git log --oneline -5 && git status --short",
            "git --no-pager diff HEAD~1 -- src",
            "git -C src ls-files",
            "git branch -a",
            "grep -rn 'fn main' src 2>/dev/null | wc -l",
            "find . -name '*.rs' -not -path './target/*'",
            "sed -n '10,20p' src/main.rs",
            "cat a b 2>&1 | sort -u | uniq -c",
            "for f in a b; do cat \"$f\"; done",
            "test -f Cargo.toml && echo yes || echo no",
            "rg -n todo",
            "git log -SOut --stat",
            "printf '%s\\n' a",
        ] {
            assert!(!denied(&ToolCall::bash(command)), "{command}");
        }
    }

    #[test]
    fn commands_that_could_change_or_run_something_are_denied_while_planning() {
        for command in [
            "echo x > a",
            "ls >> list",
            "cat <<EOF > a\nx\nEOF",
            "touch a",
            "rm a",
            "make",
            "cargo test",
            "./ls",
            "bin/cat a",
            "python3 -c 'print(1)'",
            "bash -c 'ls'",
            "eval ls",
            "$(echo rm) a",
            "PATH=/tmp/x ls",
            "LESSOPEN=x; cat a",
            "ls; touch a",
            "cat $(touch a; echo b)",
            "ls() { touch a; }; ls",
            "find . -delete",
            "find . -name x -exec touch {} +",
            "find . $extra",
            "xargs rm < list",
            "env touch a",
            "sort -o a b",
            "sort -uoa b",
            "sort --output=a b",
            "uniq a b",
            "sed -i s/a/b/ a",
            "sed -n 'w out' a",
            "sed 's/a/touch b/e' a",
            "awk 'BEGIN { system(\"touch a\") }'",
            "rg --pre ./x y",
            "git checkout -b x",
            "git commit --allow-empty -m x",
            "git stash",
            "git branch new",
            "git tag v1",
            "git -c core.pager=x log",
            "git -c alias.status='!touch a' status",
            "git diff --output=a",
            "git diff --outp a",
            "git grep -Ovi x",
            "git grep -nOvi x",
            "printf -v PATH /tmp/x; ls",
            "git show --ext-diff",
            "git $command",
            "tee a",
            "curl -o a http://x",
            "if (",
        ] {
            assert!(denied(&ToolCall::bash(command)), "{command}");
        }
    }

    #[test]
    fn tools_are_allowed_while_planning_where_they_only_look() {
        let call = |tool: &str, input: serde_json::Value| ToolCall { tool: tool.to_owned(), input };
        for (tool, input) in [
            ("Read", json!({ "file_path": "/work/project/src/a" })),
            ("Grep", json!({ "pattern": "x" })),
            ("Glob", json!({ "pattern": "**" })),
            ("TodoWrite", json!({ "todos": [] })),
            ("Agent", json!({ "prompt": "look around" })),
            ("WebFetch", json!({ "url": "https://example.com" })),
        ] {
            assert!(!denied(&call(tool, input)), "{tool}");
        }
        for (tool, input) in [
            ("Write", json!({ "file_path": "/work/project/src/a", "content": "" })),
            ("Edit", json!({ "file_path": "/work/project/src/a", "old_string": "a", "new_string": "b" })),
            ("NotebookEdit", json!({ "notebook_path": "/work/project/a.ipynb" })),
            ("Write", json!({ "file_path": "/tmp/a", "content": "" })),
            ("Monitor", json!({ "command": "ls" })),
            ("mcp__files__write", json!({})),
            ("Skill", json!({ "skill": "deploy" })),
            ("ExitPlanMode", json!({ "plan": "x" })),
        ] {
            assert!(denied(&call(tool, input)), "{tool}");
        }
    }
}
