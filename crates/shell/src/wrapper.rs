//! Programs that run the command in their arguments, and which of their own words precede it.

/// The command-line syntax of one wrapper.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Options that take the next word as their value.
    pub(super) valued: &'static [&'static str],
    /// The number of its own operands before the command.
    pub(super) operands: usize,
    /// Words that must come first, such as `run` in `uv run`.
    pub(super) subcommands: &'static [&'static str],
    /// Whether `NAME=value` words may precede the command.
    pub(super) assignments: bool,
    /// Options that take a script as their value: `su -c`.
    pub(super) scripts: &'static [&'static str],
}

const PLAIN: Wrapper = Wrapper { name: "", valued: &[], operands: 0, subcommands: &[], assignments: false, scripts: &[] };

const fn plain(name: &'static str) -> Wrapper {
    Wrapper { name, ..PLAIN }
}

const fn valued(name: &'static str, valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, valued, ..PLAIN }
}

const fn after(name: &'static str, operands: usize, valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, valued, operands, ..PLAIN }
}

const fn sub(name: &'static str, subcommands: &'static [&'static str]) -> Wrapper {
    Wrapper { name, subcommands, ..PLAIN }
}

const fn script(name: &'static str, scripts: &'static [&'static str], valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, valued, scripts, ..PLAIN }
}

const ALL: &[Wrapper] = &[
    Wrapper {
        name: "env",
        valued: &["-u", "--unset", "-C", "--chdir", "-a", "--argv0"],
        assignments: true,
        scripts: &["-S", "--split-string"],
        ..PLAIN
    },
    Wrapper {
        name: "sudo",
        valued: &[
            "-u",
            "--user",
            "-g",
            "--group",
            "-h",
            "--host",
            "-p",
            "--prompt",
            "-C",
            "--close-from",
            "-D",
            "--chdir",
            "-R",
            "--chroot",
            "-r",
            "--role",
            "-t",
            "--type",
            "-T",
            "--command-timeout",
            "-U",
            "--other-user",
        ],
        assignments: true,
        ..PLAIN
    },
    Wrapper { name: "doas", valued: &["-u", "-C", "-a"], assignments: true, ..PLAIN },
    plain("command"),
    plain("builtin"),
    valued("exec", &["-a"]),
    plain("nohup"),
    valued("time", &["-f", "--format", "-o", "--output"]),
    after("timeout", 1, &["-s", "--signal", "-k", "--kill-after"]),
    after("gtimeout", 1, &["-s", "--signal", "-k", "--kill-after"]),
    valued("nice", &["-n", "--adjustment"]),
    valued("ionice", &["-c", "--class", "-n", "--classdata", "-p", "--pid", "-P", "-u"]),
    valued("stdbuf", &["-i", "--input", "-o", "--output", "-e", "--error"]),
    plain("setsid"),
    plain("busybox"),
    plain("toybox"),
    plain("unbuffer"),
    plain("chronic"),
    plain("coproc"),
    plain("noglob"),
    plain("nocorrect"),
    plain("caffeinate"),
    plain("fakeroot"),
    plain("catchsegv"),
    plain("dbus-run-session"),
    valued("torsocks", &["-u", "-p", "-a", "-P"]),
    valued("proxychains", &["-f"]),
    valued("proxychains4", &["-f"]),
    valued("strace", &["-o", "-e", "-p", "-s", "-u", "-E", "-a", "-b", "-I", "-O", "-P", "-S", "-X"]),
    valued("ltrace", &["-o", "-e", "-p", "-s", "-u", "-a", "-l", "-n", "-F", "-x"]),
    valued("valgrind", &[]),
    valued("xvfb-run", &["-e", "-f", "-n", "-p", "-s", "-w"]),
    after("chrt", 1, &["-T", "-P", "-D"]),
    after("taskset", 1, &[]),
    after("chroot", 1, &[]),
    valued("unshare", &["-S", "-G", "-R", "-w", "--root", "--wd", "--setuid", "--setgid", "--map-user", "--map-group"]),
    valued("systemd-run", &["-u", "--unit", "-p", "--property", "-E", "--setenv", "--slice", "-d"]),
    valued("systemd-inhibit", &["--what", "--who", "--why", "--mode"]),
    valued("numactl", &["-m", "-N", "-C", "-i", "-p"]),
    plain("prlimit"),
    valued("setpriv", &["--reuid", "--regid", "--groups", "--securebits"]),
    after("setarch", 1, &[]),
    Wrapper {
        name: "runuser",
        valued: &["-u", "--user", "-g", "--group", "-s"],
        scripts: &["-c", "--command", "--session-command"],
        ..PLAIN
    },
    Wrapper { name: "flock", operands: 1, valued: &["-w", "--wait", "-E"], scripts: &["-c", "--command"], ..PLAIN },
    Wrapper { name: "su", operands: 9, valued: &["-s", "-g", "-G"], scripts: &["-c", "--command"], ..PLAIN },
    Wrapper { name: "sg", operands: 1, scripts: &["-c"], ..PLAIN },
    Wrapper {
        name: "script",
        operands: 1,
        scripts: &["-c", "--command"],
        valued: &["-o", "-m", "-E", "-I", "-O", "-B", "-T"],
        ..PLAIN
    },
    script("watch", &[], &["-n", "--interval"]),
    script("parallel", &[], &["-j", "--jobs", "-a", "--arg-file", "-S", "--colsep", "-N", "-n"]),
    script("entr", &[], &[]),
    script("nix-shell", &["--run", "--command"], &["-p"]),
    script("hyperfine", &["--setup", "--prepare", "--cleanup"], &["-w", "-r", "-m", "-M"]),
    Wrapper { name: "direnv", operands: 1, subcommands: &["exec"], ..PLAIN },
    sub("mise", &["exec", "x"]),
    sub("asdf", &["exec"]),
    sub("poetry", &["run"]),
    sub("pipenv", &["run"]),
    sub("uv", &["run"]),
    sub("pdm", &["run"]),
    sub("hatch", &["run"]),
    sub("bundle", &["exec"]),
    Wrapper { name: "pnpm", valued: &["--package"], subcommands: &["exec", "dlx"], ..PLAIN },
    Wrapper { name: "yarn", valued: &["-p", "--package"], subcommands: &["exec", "dlx"], ..PLAIN },
    sub("bun", &["x"]),
    plain("pnpx"),
    sub("pipx", &["run"]),
    valued("uvx", &["--from", "--with", "-p", "--python"]),
    Wrapper { name: "npm", subcommands: &["exec", "x"], scripts: &["-c", "--call"], ..PLAIN },
    sub("rustup", &["run"]),
    sub("opam", &["exec"]),
    sub("rtk", &["proxy"]),
    Wrapper { name: "npx", valued: &["-p", "--package"], scripts: &["-c", "--call"], ..PLAIN },
    valued("screen", &["-S", "-c", "-e", "-h", "-L", "-p", "-s", "-t", "-T", "-X"]),
    Wrapper {
        name: "tmux",
        valued: &["-s", "-n", "-c", "-t", "-e", "-x", "-y", "-F"],
        subcommands: &["new", "new-session", "neww", "new-window", "splitw", "split-window", "respawn-pane", "run", "run-shell"],
        ..PLAIN
    },
    valued("choom", &["-n", "--adjust", "-p"]),
    plain("linux32"),
    plain("linux64"),
    valued("ssh-agent", &["-a", "-t", "-E", "-P"]),
    script("capsh", &["-c"], &[]),
    Wrapper { name: "perf", valued: &["-e", "-o", "-p", "-C", "-r"], subcommands: &["stat", "record", "trace"], ..PLAIN },
    valued("nsenter", &["-t", "--target", "-S", "-G"]),
    valued("pkexec", &["--user"]),
    valued("gdb", &["-ex", "-x", "-iex"]),
    after("faketime", 1, &[]),
    valued("proot", &["-r", "-b", "-w", "-q"]),
    valued("firejail", &[]),
    plain("tsocks"),
    valued("sshpass", &["-p", "-f", "-d", "-P"]),
    valued("cpulimit", &["-l", "-p", "-e", "-P"]),
    valued("start-stop-daemon", &["-x", "--exec", "-p", "--pidfile", "-n", "-c"]),
    valued("tini", &["-p", "-e"]),
    plain("dumb-init"),
    after("gosu", 1, &[]),
    after("su-exec", 1, &[]),
    Wrapper { name: "nix", valued: &[], subcommands: &["-c", "--command"], ..PLAIN },
    Wrapper { name: "conda", valued: &["-n", "--name", "-p", "--prefix", "--cwd"], subcommands: &["run"], ..PLAIN },
    Wrapper { name: "mamba", valued: &["-n", "--name", "-p", "--prefix", "--cwd"], subcommands: &["run"], ..PLAIN },
    script("nodemon", &["--exec", "-x"], &["-w", "--watch", "-e", "--ext"]),
    valued("watchexec", &["-w", "--watch", "-e", "--exts", "-i", "-f"]),
    Wrapper {
        name: "ssh",
        operands: 1,
        valued: &[
            "-p", "-i", "-o", "-l", "-F", "-J", "-L", "-R", "-D", "-E", "-b", "-c", "-e", "-m", "-W", "-w", "-S", "-Q", "-O",
        ],
        ..PLAIN
    },
    Wrapper {
        name: "docker",
        operands: 1,
        valued: &["-u", "--user", "-w", "--workdir", "-e", "--env", "--env-file"],
        subcommands: &["exec"],
        ..PLAIN
    },
    Wrapper {
        name: "podman",
        operands: 1,
        valued: &["-u", "--user", "-w", "--workdir", "-e", "--env", "--env-file"],
        subcommands: &["exec"],
        ..PLAIN
    },
    Wrapper {
        name: "kubectl",
        operands: 1,
        valued: &["-n", "--namespace", "-c", "--container"],
        subcommands: &["exec"],
        ..PLAIN
    },
    valued("bunx", &["-p", "--package"]),
    plain("dotenv"),
    plain("cross-env"),
    plain("doppler"),
    plain("winpty"),
    plain("rlwrap"),
];

pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    ALL.iter().find(|wrapper| wrapper.name == name)
}

/// Programs that run a script: a file, standard input, or the text after `-c`.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "rbash" | "fish" | "yash" | "csh" | "tcsh" | "pwsh" | "nu"
    )
}

/// Interpreters that run a file, standard input or a text. Their code is not parsed; only its origin matters.
pub(super) fn is_interpreter(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(name, "python" | "pypy" | "node" | "nodejs" | "deno" | "bun" | "perl" | "ruby" | "php" | "lua")
}

/// Programs whose output comes from the network.
pub(super) fn is_download(name: &str) -> bool {
    matches!(name, "curl" | "wget" | "fetch" | "http" | "https" | "xh" | "aria2c" | "lynx" | "curlie")
}

/// Words that are syntax for bash at the start of a command; the parser treats some of them as programs.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "{" | "}" | "!" | "(" | ")" | "then" | "do" | "else" | "elif" | "if" | "while" | "until" | "fi" | "done" | "esac" | "in"
    )
}
