//! Properties of every command: data is never denied, wrapping never helps, and no input breaks the parser.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use verdone_core::base::verdict::PolicyVerdict;
use verdone_core::policy::{Rule, ToolCall, evaluate, paths_to_resolve};
use verdone_shell::{MAX_SOURCE, Variables, Why, parse};

use super::project::{context, rules};
use super::table::{COMPUTED, DATA, DENIED, EVERYDAY};

fn verdict(command: &str, rules: &[Rule]) -> (PolicyVerdict, String) {
    let decision = evaluate(&ToolCall::bash(command), &context(), rules);
    (decision.verdict, decision.rule.map_or_else(String::new, |(name, _)| name))
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

const AS_DATA: &[&str] = &[
    "echo @",
    "printf '%%s\\n' @ more",
    "git commit -m @",
    "git commit -m @ --author=x",
    "git commit -a --message=@",
    "git log --grep=@",
    "git tag -a v1 -m @",
    "grep -rn -- @ docs",
    "rg -F @ src | head",
    "x=@",
    "x=@; echo \"$x\"",
    "export MSG=@",
    "cat <<< @",
    "python3 -c @",
    "[ \"$x\" = @ ]",
    "[[ $x == @ ]]",
    "case $x in @) echo;; esac",
    "for x in @; do echo \"$x\"; done",
    "gh issue create --title t --body @",
    "sh -c 'echo \"$1\"' _ @",
    "env MSG=@ make",
    "f() { echo \"$1\"; }; f @",
    "jq -n --arg x @ '$x'",
    "cat > notes.md <<'VERDONE_END'\n%\nVERDONE_END",
    "git commit -F - <<'VERDONE_END'\n%\nVERDONE_END",
    "git commit -m \"$(cat <<'VERDONE_END'\n%\nVERDONE_END\n)\"",
];

/// `@` stands for the command as one quoted word, `%` for the unchanged command, `%%` for a percent sign.
fn fill(template: &str, command: &str) -> String {
    let mut out = String::new();
    let mut rest = template.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '@' => out.push_str(&quote(command)),
            '%' if rest.next_if_eq(&'%').is_some() => out.push('%'),
            '%' => out.push_str(command),
            other => out.push(other),
        }
    }
    out
}

#[test]
fn quoting_a_denied_command_as_data_never_denies() {
    let rules = rules();
    for (index, (_, command)) in DENIED.iter().enumerate() {
        // Every template meets every kind of disguise; testing all eight thousand pairs would take too long.
        for template in AS_DATA.iter().skip(index % 3).step_by(3) {
            let line = fill(template, command);
            let (verdict, rule) = verdict(&line, &rules);
            assert_eq!(verdict, PolicyVerdict::Allow, "{rule}: {line}");
        }
    }
}

/// Wrappers of a whole script.
const AROUND: &[&str] = &[
    "bash -c @",
    "sh -ec @",
    "eval @",
    "trap @ EXIT",
    "echo @ | sh",
    "printf '%%s' @ | bash",
    "bash <<< @",
    "source <(echo @)",
    "su -c @ me",
    "script -qc @ /dev/null",
    "git -c alias.zz=\\!@ zz",
    "(%\n)",
    "{ %\n}",
    "x=$(%\n)",
    "echo \"a $(%\n) b\"",
    "cat <(%\n)",
    "if true; then\n%\nfi",
    "if (%\n); then :; fi",
    "for i in 1 2; do\n%\ndone",
    "while (%\n); do break; done",
    "case x in x)\n%\n;; esac",
    "f() {\n%\n}; f",
    "true && {\n%\n}",
    "false || (%\n)",
    "! (%\n)",
    "(%\n) | cat",
    "echo | (%\n)",
    "(%\n) &",
    "x=1; %",
    "true\n%",
    "%\ntrue",
];

/// Wrappers of one simple command.
const BEFORE: &[&str] = &[
    "env",
    "env -i A=1",
    "/usr/bin/env -u A",
    "command",
    "exec",
    "nohup",
    "time",
    "time -p",
    "timeout 9",
    "timeout -s INT 9",
    "nice",
    "nice -n 3",
    "ionice -c 3",
    "stdbuf -o L",
    "setsid",
    "sudo",
    "sudo -u me -- env",
    "doas",
    "busybox",
    "xargs",
    "xargs -n 1",
    "A=1 B=2",
    "strace -f",
    "flock /tmp/l",
    "chronic",
    "unbuffer",
    "uv run",
    "find . -exec",
    "coproc",
    "builtin command",
    "setarch x86_64",
];

fn wrapped(command: &str, wrappers: &[(Index, bool)]) -> String {
    wrappers.iter().fold(command.to_owned(), |line, (index, around)| {
        if *around {
            fill(AROUND[index.index(AROUND.len())], &line)
        } else {
            format!("{} bash -c {}", index.get(BEFORE), quote(&line))
        }
    })
}

const TOKENS: &[&str] = &[
    "git",
    "push",
    " ",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "(",
    ")",
    "{",
    "}",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "$",
    "${",
    "$'",
    "<<EOF\n",
    "EOF\n",
    "<<<",
    "<(",
    ">",
    ">>",
    "[[",
    "]]",
    "((",
    "))",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "case x in ",
    "esac",
    "x=",
    "x+=",
    "$x",
    "\"$@\"",
    "{a,b}",
    "{1..9}",
    "*",
    "?",
    "[a]",
    "~",
    "~/",
    "#",
    "eval ",
    "bash -c ",
    "xargs ",
    "env ",
    "-c ",
    "=",
    "é",
    "\u{F8FF}",
    "\0",
    "f() ",
    "function ",
    "time ",
    "! ",
    "coproc ",
    "alias ",
    "trap ",
    "read x ",
    "printf %s ",
    "export ",
    "2>&1",
    "<>",
    ";;",
    ";&",
];

fn corpus() -> Vec<&'static str> {
    let denied = DENIED.iter().map(|(_, command)| *command);
    denied.chain(DATA.iter().chain(EVERYDAY).copied()).chain(COMPUTED.iter().map(|(_, command)| *command)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::with_cases(256) })]

    #[test]
    fn wrapping_a_denied_command_never_allows(
        (rule, command) in select(DENIED),
        wrappers in prop::collection::vec((any::<Index>(), any::<bool>()), 1..=3),
    ) {
        let line = wrapped(command, &wrappers);
        let (found, _) = verdict(&line, &rules());
        prop_assert_eq!(found, PolicyVerdict::Deny, "{}: {}", rule, line);
    }

    #[test]
    fn reading_never_panics_on_any_text(text in ".{0,200}") {
        let script = parse(&text, &Variables::new());
        for simple in &script.commands {
            prop_assert!(text.get(simple.range.clone()).is_some(), "a range is a part of the text");
        }
    }

    #[test]
    fn reading_never_panics_on_shell_tokens(tokens in prop::collection::vec(select(TOKENS), 0..60)) {
        let text = tokens.concat();
        let call = ToolCall::bash(&text);
        paths_to_resolve(&call, &context());
        let decision = evaluate(&call, &context(), &rules());
        if let Some(found) = decision.command {
            prop_assert!(text.get(found.range).is_some(), "a range is a part of the text");
        }
    }

    #[test]
    fn mutations_of_real_commands_are_read_or_reported(
        one in select(corpus()),
        other in select(corpus()),
        cuts in prop::collection::vec((any::<Index>(), select(TOKENS)), 1..6),
    ) {
        let mut text: Vec<char> = format!("{one}{other}").chars().collect();
        for (at, token) in cuts {
            let at = at.index(text.len() + 1);
            text.truncate(text.len().max(1));
            text.splice(at..(at + 1).min(text.len()), token.chars());
        }
        let text: String = text.into_iter().collect();
        evaluate(&ToolCall::bash(&text), &context(), &rules());
    }
}

#[test]
fn every_wrapper_alone_and_in_pairs_keeps_a_push_denied() {
    let rules = rules();
    let around = |command: &str, index: usize| fill(AROUND[index], command);
    for outer in 0..AROUND.len() {
        assert_eq!(verdict(&around("git push", outer), &rules).0, PolicyVerdict::Deny, "{}", around("git push", outer));
        for inner in 0..AROUND.len() {
            let line = around(&around("git push", inner), outer);
            assert_eq!(verdict(&line, &rules).0, PolicyVerdict::Deny, "{line}");
        }
    }
    for outer in BEFORE {
        for inner in BEFORE {
            let line = format!("{outer} {inner} git push");
            // A variable assignment before a command is not a program that another one could start.
            if !inner.starts_with("A=") {
                assert_eq!(verdict(&line, &rules).0, PolicyVerdict::Deny, "{line}");
            }
        }
    }
}

#[test]
fn hostile_sizes_and_depths_end_in_unknown_and_denial() {
    let rules = rules();
    let many = |text: &str, count: usize| text.repeat(count);
    let long = [
        many("a", 10 << 20),
        format!("echo {}", many("x ", 5 << 20)),
        format!("{}git push{}", many("(", 3000), many(")", 3000)),
        format!("{}git push{}", many("if true; then ", 3000), many("; fi", 3000)),
        format!("{}git push{}", many("$(", 3000), many(")", 3000)),
        many("true && ", 15_000) + "git push",
        many("x | ", 5_000) + "git push",
        format!("x {} git push", many("<", 60_000)),
    ];
    for text in &long {
        assert_eq!(verdict(text, &rules).0, PolicyVerdict::Deny, "{}", &text[..40]);
    }
    let odd = [
        many("\"$(", 2000),
        many("`", 5000),
        many("{", 20_000),
        many("{a,b}", 40),
        many("[[ ", 5000),
        many("<<EOF ", 3000),
        many("${x:-", 5000),
        many("f() { f; f; }; f; ", 50),
        "f() { g; g; }; g() { f; f; }; f".to_owned(),
        "x='eval \"$x$x\"'; eval \"$x\"".to_owned(),
        many("for x in 1 2 3 4 5 6 7 8; do ", 20) + "eval echo $x",
        many("$x", 10_000),
        many("$(a)", 5_000),
        many("\u{F8FF}", 1000),
    ];
    for text in &odd {
        let script = parse(text, &Variables::new());
        assert!(script.commands.len() <= 4_100, "{}", &text[..8]);
    }
    let script = parse(&many(" ", MAX_SOURCE + 1), &Variables::new());
    assert_eq!(script.unknown.first().map(|unknown| unknown.why), Some(Why::TooLong));
}
