//! Agents that try to destroy, read or plant files that are not theirs. Each acts inside a view; the user's files are unchanged.
//!
//! `World` compares the checkout around every run. Here the home, a repository next to the project and canaries are compared, too.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use verdone_testkit::{Folder, Tmux};

use crate::run_loop::world::{PATIENCE, Settings, VERDONE, World, text};

/// The check needs the agent's file and the user's.
const PLAN: &str =
    "# Plan\n\n### US-001: Write a\n\n- [ ] Write the file a\n  - Verification: `test -f a && test -s README.md`\n";
const SECRET: &str = "the private key";
const SETTINGS: &str = "{ \"model\": \"mine\" }\n";
/// What runs keep in the home: workspaces, workspaces being deleted, and their ports.
const STATE: [&str; 4] = [
    ".local/state/verdone/workspaces",
    ".local/state/verdone/trash",
    ".local/state/verdone/ports",
    ".local/state/verdone/lessons",
];

/// A project whose agent runs a script and then writes what the story asks for.
struct Attack {
    world: World,
    home: Folder,
    beside: Folder,
    canary: PathBuf,
}

impl Attack {
    /// In the script, `$OUTSIDE` is a folder next to the project, and `$CANARY` a file that must not appear there.
    fn new(script: &str) -> Self {
        let steps = "[[turn]]\nsteps = [{ run = \"sh ../tmp/attack.sh\" }, { create = \"a\", text = \"one\\n\" }]\n";
        let world = World::folder(steps, &Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() });
        let sandbox = &world.sandbox;
        sandbox.write("PLAN.md", PLAN);
        sandbox.write("src/deep/file", "tracked\n");
        sandbox.write(".gitignore", "cache/\n.env\n");
        sandbox.repo();
        sandbox.git(["tag", "v1"]);
        sandbox.git(["branch", "side"]);
        sandbox.write("cache/built", "built\n");
        sandbox.write(".env", "TOKEN=1\n");
        sandbox.write("notes.txt", "not committed\n");
        sandbox.write("src/deep/file", "edited\n");
        let outside = sandbox.root().join("outside");
        fs::create_dir(&outside).unwrap();
        sandbox.git(["init", "--quiet", "--bare", "../outside/remote.git"]);
        sandbox.git(["remote", "add", "origin", "../outside/remote.git"]);
        sandbox.git(["push", "--quiet", "origin", "main"]);
        for (path, text) in [
            (".ssh/id_test", SECRET),
            (".claude/settings.json", SETTINGS),
            (".config/tool/settings", "mine\n"),
            (".local/state/verdone/approvals/kept", "kept\n"),
            ("Documents/letter", "Dear Ada\n"),
        ] {
            sandbox.write(format!("../home/{path}"), text);
        }
        let canary = outside.join("canary");
        let head = format!("set +e\nOUTSIDE={}\nCANARY={}\n", outside.display(), canary.display());
        sandbox.write("../tmp/attack.sh", format!("{head}{script}\n: > ../tmp/attacked\nexit 0\n"));
        let home = Folder::snapshot(&sandbox.home(), &STATE);
        let beside = Folder::snapshot(&outside, &[]);
        Self { world, home, beside, canary }
    }

    /// Asserts that the run ends with this code, and that everything outside is unchanged.
    #[track_caller]
    fn run(&self, code: i32) {
        let output = self.world.run(code);
        assert!(!output.stdout.contains("no private view"), "these tests need namespaces\n{}", output.stdout);
        assert!(self.world.has("../tmp/attacked"), "the agent did what it was to do\n{}", output.stdout);
        assert!(!self.canary.exists(), "something of the agent's ran outside\n{}", output.stdout);
        self.home.assert_unchanged();
        self.beside.assert_unchanged();
        self.assert_nothing_stays();
    }

    /// Asserts that the story was committed with exactly these changes.
    #[track_caller]
    fn committed(&self, changes: &str) {
        self.run(0);
        assert_eq!(self.world.subjects(), ["feat(US-001): Write a", "initial"]);
        assert_eq!(self.world.git(&["diff", "--name-status", "--no-renames", "HEAD^", "HEAD"]), changes);
        assert_eq!(self.world.trailer("HEAD", "Verdone-Proof"), "verified");
    }

    /// Asserts that the story failed, and nothing was committed.
    #[track_caller]
    fn rejected(&self, reason: &str) {
        self.run(4);
        assert_eq!(self.world.subjects(), ["initial"]);
        let said = text(&self.world.last("attempt_rejected")["reason"]);
        assert!(said.contains(reason), "{said}");
    }

    /// Asserts that no process, mount or workspace is left.
    #[track_caller]
    fn assert_nothing_stays(&self) {
        let sandbox = &self.world.sandbox;
        sandbox.assert_no_survivors(PATIENCE);
        let root = sandbox.root().to_str().unwrap();
        // The process that keeps a view alive has no environment by which it could be recognised.
        let alive: Vec<String> = command_lines().into_iter().filter(|line| line.contains(root)).collect();
        assert!(alive.is_empty(), "{alive:?}");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(root), "{mounts}");
        let left = self.world.verdone(&["workspace", "list"]).stdout;
        assert!(left.contains("No workspaces"), "{left}");
        for folder in &STATE[..2] {
            let left: Vec<_> = fs::read_dir(sandbox.home().join(folder)).into_iter().flatten().flatten().collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
}

fn is_on_host(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

#[test]
fn an_agent_is_told_which_folders_it_can_only_empty() {
    let attack = Attack::new("rm -rf cache; { test -d cache && test ! -e cache/built; } || : > \"$CANARY\"");
    attack.committed("M\tPLAN.md\nA\ta");
    let prompt = attack.world.prompt(1);
    assert!(prompt.contains("\n- Mount points cannot be removed or renamed, only emptied: `cache`.\n"), "{prompt}");
}

#[test]
fn an_agent_that_removes_the_repository_removes_its_own_copy() {
    Attack::new("rm -rf .git; test ! -e .git/HEAD || : > \"$CANARY\"").committed("M\tPLAN.md\nA\ta");
}

#[test]
fn an_agent_that_deletes_every_ref_and_collects_garbage_loses_nothing_of_the_users() {
    let attack = Attack::new(
        "git for-each-ref --format='delete %(refname)' | git update-ref --stdin\ngit reflog expire --expire=now --expire-unreachable=now --all\n\
         git gc --quiet --prune=now; git prune --expire=now; git repack -q -a -d; rm -rf .git/objects",
    );
    let dangling = attack.world.git(&["stash", "create"]);
    attack.committed("M\tPLAN.md\nA\ta");
    attack.world.git(&["fsck", "--full", "--strict"]);
    assert_eq!(attack.world.git(&["cat-file", "-t", &dangling]), "commit", "what no ref reaches is there, too");
}

#[test]
fn an_agent_that_deletes_every_file_fails_its_own_attempt() {
    Attack::new("find . -mindepth 1 -delete").rejected("failed with exit code 1");
}

#[test]
fn other_ways_to_delete_everything_reach_no_further() {
    let mut tried = 0;
    for (program, script) in [
        ("rsync", "mkdir ../tmp/empty; rsync -a --delete ../tmp/empty/ ./"),
        ("python3", "python3 -c 'import shutil; shutil.rmtree(\".\", ignore_errors=True)'"),
        ("perl", "perl -e 'use File::Path; rmtree(\".\")'"),
        ("git", "git clean -ffdxq; git rm -rfq .; rm -rf -- * .[!.]*"),
    ] {
        if !is_on_host(program) {
            continue;
        }
        tried += 1;
        let attack = Attack::new(script);
        if program != "git" {
            attack.world.sandbox.add_tool(program);
        }
        attack.rejected("failed with exit code 1");
    }
    assert!(tried > 0);
}

#[test]
fn an_agent_that_removes_the_home_removes_its_view_of_it() {
    Attack::new(
        "rm -rf ~/.local/state/verdone; rm -rf \"$HOME\"; rm -rf ~/Documents; echo x > ~/planted; rm -rf \"$OUTSIDE\" ../home ../outside",
    )
    .committed("M\tPLAN.md\nA\ta");
}

#[test]
fn hooks_and_settings_that_an_agent_plants_in_the_home_are_dropped() {
    Attack::new(
        "mkdir -p ~/.claude/hooks ~/.config/git/hooks\n\
         echo '{ \"hooks\": { \"SessionStart\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"evil\" }] }] } }' > ~/.claude/settings.json\n\
         echo evil > ~/.claude/CLAUDE.md; echo evil >> ~/.bashrc; echo evil >> ~/.profile\n\
         printf '[core]\\n\\thooksPath = /evil\\n' >> ~/.gitconfig; git config --global core.pager evil",
    )
    .committed("M\tPLAN.md\nA\ta");
}

#[test]
fn an_agent_cannot_push_to_a_repository_beside_the_project() {
    let attack = Attack::new(
        "echo x > planted; git add planted; git commit -qm planted\n\
         git push -q origin HEAD:main; git push -q --force \"$OUTSIDE/remote.git\" HEAD:refs/heads/evil; git push -q --mirror ../outside/remote.git\n\
         rm planted",
    );
    attack.committed("M\tPLAN.md\nA\ta");
    assert_eq!(attack.world.git(&["--git-dir=../outside/remote.git", "for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn an_agent_cannot_read_the_users_keys() {
    let attack =
        Attack::new("cat ~/.ssh/id_test > ../tmp/stolen; cp -r ~/.ssh ../tmp/ssh; cat ~/.config/tool/settings > ../tmp/seen");
    attack.committed("M\tPLAN.md\nA\ta");
    let world = &attack.world;
    assert_eq!(world.sandbox.read("../tmp/seen"), "mine\n", "the home itself is there");
    assert_eq!(world.sandbox.read("../tmp/stolen"), "");
    assert!(!world.has("../tmp/ssh/id_test"));
    assert!(!world.everything_kept().iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(SECRET)));
}

#[test]
fn an_agent_cannot_write_beside_the_project() {
    Attack::new(
        "echo x > \"$CANARY\"; echo x > ../planted; echo x > \"$OUTSIDE/planted\"; ln -s \"$CANARY\" link; echo x > link; rm -f link\n\
         ln -s ../outside way; echo x > way/canary; rm -f way",
    )
    .committed("M\tPLAN.md\nA\ta");
}

/// Git settings, filters and hooks that execute a command as soon as git reads the repository.
const TRAPS: &str = "trap_in() {\n\
     printf '#!/bin/sh\\n: > %s\\n' \"$CANARY\" > \"$1.sh\"; chmod +x \"$1.sh\"\n\
     git -C \"$2\" config core.fsmonitor \"$(realpath \"$1.sh\")\"\n\
     for kind in clean smudge process; do git -C \"$2\" config filter.x.$kind \"$(realpath \"$1.sh\")\"; done\n\
     for hook in pre-commit post-commit post-checkout post-merge post-index-change reference-transaction; do\n\
         mkdir -p \"$2/.git/hooks\"; cp \"$1.sh\" \"$2/.git/hooks/$hook\"\n\
     done\n\
     }\n";

#[test]
fn traps_in_the_agents_repository_do_not_run_outside() {
    let script =
        |attributes: &str| format!("{TRAPS}trap_in ../tmp/trap .; echo '* filter=x' > {attributes}; echo more > more.txt");
    let attack = Attack::new(&script(".git/info/attributes"));
    assert_springs(&attack, ".");
    attack.committed("M\tPLAN.md\nA\ta\nA\tmore.txt");

    let attack = Attack::new(&script(".gitattributes"));
    assert_springs(&attack, ".");
    attack.committed("A\t.gitattributes\nM\tPLAN.md\nA\ta\nA\tmore.txt");
}

#[test]
fn a_nested_repository_with_traps_is_refused_and_nothing_of_it_runs_outside() {
    let script = format!(
        "{TRAPS}git init -q sub; echo x > sub/file; git -C sub add file; git -C sub commit -qm inner; trap_in ../tmp/trap sub\n\
         echo '* filter=x' > sub/.gitattributes; echo y > sub/file"
    );
    let attack = Attack::new(&script);
    assert_springs(&attack, "sub");
    attack.rejected("sub is a git repository inside this one");
}

/// A project with a filter of the user that executes a file of the repository, and an agent that edits that file.
fn with_filter() -> (World, PathBuf) {
    let steps = "[[turn]]\nsteps = [{ run = \"sh ../tmp/attack.sh\" }]\n";
    let world = World::folder(steps, &Settings { limits: "attempts = 2\nturns = 1", ..Settings::default() });
    let sandbox = &world.sandbox;
    sandbox.write("PLAN.md", "# Plan\n\n### US-001: Write\n\n- [ ] Write\n  - Verification: `cat zz/data; false`\n");
    sandbox.write("tools/pass.sh", "cat\n");
    sandbox.write(".gitattributes", "zz/* filter=gen\n");
    sandbox.write("zz/data", "one\n");
    sandbox.repo();
    for kind in ["clean", "smudge"] {
        sandbox.git(["config", &format!("filter.gen.{kind}"), "sh tools/pass.sh"]);
    }
    sandbox.write("../home/.ssh/id_test", SECRET);
    let canary = sandbox.root().join("canary");
    let script = "touch @CANARY@ 2>/dev/null; echo passed; cat ~/.ssh/id_test 2>/dev/null; env | grep GITHUB_TOKEN; cat";
    let script = script.replace("@CANARY@", &canary.display().to_string());
    sandbox.write("../tmp/attack.sh", format!("cat > tools/pass.sh <<'END'\n{script}\nEND\necho two > zz/data\n"));
    (world, canary)
}

#[test]
fn a_filter_runs_the_agents_version_of_a_file_inside_only_and_without_secrets() {
    let (mut world, canary) = with_filter();
    world.sandbox.set("GITHUB_TOKEN", "the token of the user");
    world.run(4);
    assert!(!canary.exists(), "the agent's filter ran outside");
    let kept: Vec<String> =
        world.everything_kept().iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect();
    assert!(kept.iter().any(|text| text.contains("passed\npassed\ntwo")), "both filters ran: {kept:#?}");
    assert!(!kept.iter().any(|text| text.contains(SECRET) || text.contains("the token")), "{kept:#?}");
}

#[test]
fn without_views_filters_are_refused_where_files_need_them_and_switched_off_elsewhere() {
    let (mut world, canary) = with_filter();
    world.sandbox.set("VERDONE_LAUNCH_FAIL", "unshare");
    let output = world.run(2);
    assert!(output.stderr.contains("files here need the git filter \"gen\""), "{}", output.transcript());

    let (mut world, other) = with_filter();
    world.sandbox.set("VERDONE_LAUNCH_FAIL", "unshare");
    world.sandbox.git(["rm", "-q", ".gitattributes"]);
    world.sandbox.git(["commit", "-qm", "no attributes"]);
    let attack = world.sandbox.read("../tmp/attack.sh");
    world.sandbox.write("../tmp/attack.sh", format!("{attack}echo 'zz/* filter=gen' > .gitattributes\n"));
    world.run(4);
    assert!(!canary.exists() && !other.exists(), "the agent's filter ran");
}

#[test]
fn commit_hooks_see_no_token_of_the_user() {
    let mut attack = Attack::new(":");
    attack.world.sandbox.set("GITHUB_TOKEN", "the token of the user");
    attack.world.sandbox.write_script(".git/hooks/pre-commit", "#!/bin/sh\nenv > ../tmp/seen-by-hook\n");
    attack.committed("M\tPLAN.md\nA\ta");
    let seen = attack.world.sandbox.read("../tmp/seen-by-hook");
    assert!(seen.contains("VERDONE_PORT_BASE=") && !seen.contains("GITHUB_TOKEN"), "{seen}");
}

/// Types a command into the terminal, for the shell outside to read.
const TYPE: &str = "import fcntl, os, termios\n\
    terminal = os.open('/dev/tty', os.O_RDWR)\n\
    for byte in b'touch @CANARY@\\n': fcntl.ioctl(terminal, termios.TIOCSTI, bytes([byte]))\n";

#[test]
fn neither_an_agent_nor_a_check_nor_a_shell_inside_can_type_into_the_users_terminal() {
    let steps = "[[turn]]\nsteps = [{ run = \"python3 ../tmp/type.py 2> ../tmp/agent\" }, { create = \"a\" }]\n";
    let world = World::folder(steps, &Settings { limits: "attempts = 1\nturns = 1", ..Settings::default() });
    let sandbox = &world.sandbox;
    sandbox.add_program("python3", Path::new("/usr/bin/python3"));
    let check = "python3 ../tmp/type.py 2> ../tmp/check; test -f a";
    sandbox.write("PLAN.md", format!("# Plan\n\n### US-001: Write\n\n- [ ] Write\n  - Verification: `{check}`\n"));
    sandbox.repo();
    let canary = sandbox.root().join("canary");
    sandbox.write("../tmp/type.py", TYPE.replace("@CANARY@", &canary.display().to_string()));
    let script = format!("{VERDONE} run --quiet; {VERDONE} workspace shell -- python3 ../tmp/type.py 2> ../tmp/shell; exec sh");
    let terminal = Tmux::start(sandbox, 120, 40, ["sh", "-c", &script]);
    // The shell reads earlier input before this.
    terminal.send_keys(&["echo the $((6 * 7))", "Enter"]);
    terminal.wait_for("the 42", PATIENCE);
    for (who, error) in
        [("agent", "No such device or address: '/dev/tty'"), ("check", "No such device"), ("shell", "PermissionError")]
    {
        let said = sandbox.read(format!("../tmp/{who}"));
        assert!(said.contains(error), "{who}: {said}");
    }
    assert!(!canary.exists(), "something was typed into the shell outside");
    terminal.send_keys(&["exit", "Enter"]);
    terminal.wait_for_exit(PATIENCE);
}

#[test]
fn an_agent_reaches_no_nameless_socket_of_the_users_session() {
    let script = "import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0@NAME@'); print('reached')\n\
        except OSError as error: print(error)\n";
    let name = format!("verdone-test-{}", std::process::id());
    let listener = SocketAddr::from_abstract_name(&name).and_then(|address| UnixListener::bind_addr(&address)).unwrap();
    let attack = Attack::new("python3 ../tmp/connect.py > ../tmp/said");
    attack.world.sandbox.add_program("python3", Path::new("/usr/bin/python3"));
    attack.world.sandbox.write("../tmp/connect.py", script.replace("@NAME@", &name));
    attack.committed("M\tPLAN.md\nA\ta");
    let said = attack.world.sandbox.read("../tmp/said");
    assert!(said.contains("Operation not permitted"), "{said}");
    drop(listener);
}

/// `add PROGRAM…` runs a program with a key in its session's keyring; `find` searches for it.
const KEYS: &str = "import ctypes, os, platform, sys\n\
    add_key, keyctl = (248, 250) if platform.machine() == 'x86_64' else (217, 219)\n\
    call = ctypes.CDLL(None).syscall\n\
    if sys.argv[1] == 'add':\n    \
        call(keyctl, 1, None)\n    \
        call(add_key, b'user', b'verdone-test', b'secret', 6, ctypes.c_long(-3))\n    \
        os.execvp(sys.argv[2], sys.argv[2:])\n\
    print('found' if call(keyctl, 10, ctypes.c_long(-3), b'user', b'verdone-test', 0) > 0 else 'nothing')\n";

#[test]
fn an_agent_reaches_no_key_of_the_users_session() {
    let steps = "[[turn]]\nsteps = [{ run = \"python3 ../tmp/keys.py find > ../tmp/said\" }, { create = \"a\" }]\n";
    let world = World::with(PLAN, steps, &Settings::default());
    let sandbox = &world.sandbox;
    sandbox.write("README.md", "not empty\n");
    sandbox.git(["add", "README.md"]);
    sandbox.git(["commit", "-qm", "readme"]);
    sandbox.add_program("python3", Path::new("/usr/bin/python3"));
    sandbox.write("../tmp/keys.py", KEYS);
    let control = sandbox.run("python3", ["../tmp/keys.py", "add", "python3", "../tmp/keys.py", "find"]);
    assert_eq!(control.stdout, "found\n", "these tests need keyrings\n{}", control.transcript());
    sandbox.run("python3", ["../tmp/keys.py", "add", VERDONE, "run"]).assert_code(0);
    assert_eq!(sandbox.read("../tmp/said"), "nothing\n");
}

/// Shows that the same traps do work outside of a workspace when git reads the repository.
#[track_caller]
fn assert_springs(attack: &Attack, repository: &str) {
    let sandbox = &attack.world.sandbox;
    let there = sandbox.root().join("tmp/control");
    fs::create_dir(&there).unwrap();
    let script = format!("git init -q .; sh {}/tmp/attack.sh", sandbox.root().display());
    let steps =
        format!("cd {} && {script}; git -C {repository} status --short; rm -rf ../trap.sh ../tmp/attacked", there.display());
    // The script uses `../tmp`, which is next to the project.
    fs::create_dir_all(there.parent().unwrap().join("tmp")).unwrap();
    sandbox.run("sh", ["-c", &steps]);
    assert!(attack.canary.exists(), "a trap that does not work proves nothing");
    fs::remove_file(&attack.canary).unwrap();
    remove(&there);
    remove(&sandbox.root().join("tmp/tmp"));
}

fn remove(folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
}
