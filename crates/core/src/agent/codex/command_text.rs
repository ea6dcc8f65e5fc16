//! The command lines in Codex's requests.

use verdone_shell::{RedirectKind, Simple, Variables, Word, parse};

/// Programs that read commands from a terminal if they get no script.
const PROMPTS: &str = "bash sh zsh dash ksh fish ash tcsh csh busybox pwsh nu elvish python python2 python3 ipython node deno bun irb \
    ruby php lua ghci psql mysql sqlite3 redis-cli screen tmux ssh su gdb ftp sftp telnet";

/// Arguments after which these programs still wait for input.
const STILL_WAITING: &str = "-i -l -li -il -s - --login --interactive --noprofile --norc --posix -q -u -a -f repl -";

/// The script of `/bin/bash -lc 'script'`, as Codex writes every command; anything else unchanged.
pub fn inner_command(command: &str) -> String {
    let script = || {
        let script = parse(command, &Variables::default());
        let [outer, ..] = script.commands.as_slice() else { return None };
        let words: Option<Vec<&str>> = outer.words.iter().map(Word::literal).collect();
        let words = words?;
        let [shell, option, text] = words.as_slice() else { return None };
        let name = shell.rsplit('/').next()?;
        let whole = outer.range.start == 0 && outer.range.end == command.len() && outer.redirects.is_empty();
        let shaped = matches!(name, "bash" | "sh" | "zsh" | "dash") && matches!(*option, "-lc" | "-c");
        (whole && shaped && outer.assignments.is_empty()).then(|| (*text).to_owned())
    };
    script().unwrap_or_else(|| command.to_owned())
}

/// The program in a command that would wait for typed input. Codex does not ask for what is typed later.
pub fn waits_for_input(command: &str) -> Option<String> {
    let script = parse(command, &Variables::default());
    script.commands.iter().find(|simple| is_bare(simple)).and_then(|simple| simple.words[0].base().literal().map(str::to_owned))
}

fn is_bare(simple: &Simple) -> bool {
    let Some((program, rest)) = simple.words.split_first() else { return false };
    let base = program.base();
    let Some(name) = base.literal() else { return false };
    let reads_file = simple.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Read);
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_in = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
    let known = is_in(PROMPTS, name) || versioned == "python";
    known && !reads_file && rest.iter().all(|word| word.literal().is_some_and(|word| is_in(STILL_WAITING, word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_that_codex_wraps_is_found() {
        for (command, inner) in [
            ("/bin/bash -lc 'touch made.txt && echo hi'", "touch made.txt && echo hi"),
            ("/bin/bash -lc bash", "bash"),
            (r#"/bin/bash -lc "echo 'it'""#, "echo 'it'"),
            ("/usr/bin/zsh -lc ls", "ls"),
            ("bash -c 'a' b", "bash -c 'a' b"),
            ("/bin/bash -lc 'a' && b", "/bin/bash -lc 'a' && b"),
            ("git push", "git push"),
            ("", ""),
        ] {
            assert_eq!(inner_command(command), inner, "{command}");
        }
    }

    #[test]
    fn a_program_that_waits_for_typed_commands_is_recognised() {
        for command in
            ["bash", "bash -i", "env bash", "/usr/bin/python3.12", "python3 -i -q", "cd x && node", "sh -s", "nohup bash"]
        {
            assert!(waits_for_input(command).is_some(), "{command}");
        }
        for command in
            ["bash x.sh", "python -m pytest", "node --version", "bash -c 'ls'", "python3 < x.py", "psql -c 'select 1'", "ls"]
        {
            assert_eq!(waits_for_input(command), None, "{command}");
        }
    }
}
