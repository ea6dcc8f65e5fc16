//! The command that another command starts, after assignments, wrappers and their options.

use super::{base_name, by_program};

/// Strips everything that only runs another command.
pub(crate) fn unwrap<'w, 's>(mut words: &'w [&'s str]) -> &'w [&'s str] {
    // Bounded, so that a hostile line cannot cost more than its length.
    for _ in 0..16 {
        words = after_assignments(words);
        let Some((program, args)) = words.split_first() else { return words };
        let first = args.iter().find(|arg| !arg.starts_with('-')).copied();
        let next: Option<&'w [&'s str]> = match base_name(program) {
            "!" | "command" | "exec" | "nohup" | "setsid" | "unbuffer" | "builtin" | "chronic" | "catchsegv" | "caffeinate"
            | "cross-env" | "cross-env-shell" | "env-cmd" | "doas" | "then" | "do" | "else" | "npx" | "bunx" | "pnpx" | "uvx"
            | "dotenv" | "xvfb-run" | "fakeroot" | "winpty" | "arch" | "direnv-exec" | "dbus-run-session" | "ionice"
            | "taskset" | "chrt" | "strace" | "env" | "sudo" | "nice" | "time" | "gtime" | "stdbuf" | "xargs" | "retry"
            | "with-env" | "infisical" | "op" => Some(after_options(args)),
            // Their options take all kinds of values; the runner's name marks the end.
            "c8" | "nyc" => args.iter().position(|arg| is_runner_word(arg)).and_then(|at| args.get(at..)),
            "timeout" | "gtimeout" => after_options(args).get(1..),
            "poetry" | "pipenv" | "pdm" | "rye" | "uv" | "pipx" | "conda" | "mamba" | "micromamba" | "pixi" | "flox"
                if first == Some("run") =>
            {
                args.iter().position(|arg| *arg == "run").map(|at| after_options(&args[at + 1..]))
            }
            "hatch" if first == Some("run") && args.len() > 2 => args.get(2..).filter(|rest| classify_known(rest)),
            "bundle" | "mise" | "asdf" | "rbenv" | "pyenv" | "nodenv" | "direnv" if matches!(first, Some("exec" | "x")) => {
                let at = args.iter().position(|arg| matches!(*arg, "exec" | "x")).unwrap_or(0);
                let rest = after_options(&args[at + 1..]);
                if base_name(program) == "direnv" { rest.get(1..) } else { Some(rest) }
            }
            "nix" | "nix-shell" | "devenv" | "guix" => {
                args.iter().position(|arg| matches!(*arg, "-c" | "--command" | "--run" | "--")).and_then(|at| args.get(at + 1..))
            }
            _ => None,
        };
        match next {
            Some(rest) if !rest.is_empty() => words = rest,
            Some(_) | None => return words,
        }
    }
    words
}

fn classify_known(words: &[&str]) -> bool {
    words.first().is_some_and(|program| by_program(base_name(program), &words[1..]).is_some())
}

fn after_assignments<'w, 's>(words: &'w [&'s str]) -> &'w [&'s str] {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    &words[words.iter().take_while(|word| is_assignment(word)).count()..]
}

/// Skips options and their values. A list names the wrapper options that take a value.
pub(super) fn after_options<'w, 's>(words: &'w [&'s str]) -> &'w [&'s str] {
    let valued = [
        "-u",
        "-g",
        "-n",
        "-k",
        "-s",
        "-o",
        "-e",
        "-i",
        "-f",
        "-p",
        "-c",
        "-C",
        "-S",
        "-I",
        "-P",
        "-L",
        "-d",
        "-E",
        "-w",
        "-t",
        "--with",
        "--python",
        "--extra",
        "--group",
        "--package",
        "--env-file",
        "--project",
        "--directory",
        "--signal",
        "--kill-after",
        "--server-args",
        "--from",
        "--cwd",
        "--name",
        "--reporter",
        "--spec",
    ];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match *word {
            "--" => return &words[at + 1..],
            option if option.starts_with('-') && option.len() > 1 => {
                // A value is never the runner itself: `npx -y jest`, `sudo -n pytest`.
                let takes = valued.contains(&option) && words.get(at + 1).is_some_and(|next| !is_runner_word(next));
                at += if takes { 2 } else { 1 };
            }
            word if after_assignments(&[word]).is_empty() => at += 1,
            _ => break,
        }
    }
    words.get(at..).unwrap_or_default()
}

fn is_runner_word(word: &str) -> bool {
    let name = base_name(word);
    by_program(name, &[]).is_some()
        || matches!(
            name,
            "python" | "python3" | "node" | "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "go" | "mvn" | "make" | "just" | "npx"
        )
}
