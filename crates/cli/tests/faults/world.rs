//! A project in which a run meets everything that can go wrong by itself: an attempt that fails and is rolled back with commits,
//! deletions, edits of the plan and the settings, git hooks that rewrite files, lifecycle scripts, progress files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use serde_json::Value;
use verdone_testkit::{Output, Running, Sandbox};

pub(crate) const VERDONE: &str = env!("CARGO_BIN_EXE_verdone");
/// Longer than anything here takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

const HOME: &str = ".ralph/PRD-1";
pub(crate) const PLAN: &str = "# Implementation Plan\n\n## Tasks\n\n\
    ### US-001: Write a\n\n- [ ] Write it\n  - Verification: `grep -qx one a`\n\n\
    ### US-002: Write b\n\n- [ ] Write it\n  - Verification: `grep -qx two b`\n";
const PRD: &str = "# PRD\n\n## User stories\n\n### [ ] US-001: Write a\n\nText.\n\n### [ ] US-002: Write b\n\nText.\n";

/// The first attempt at the first story does everything that has to be undone; it fails.
const SCRIPT: &str = r#"
[[turn]]
story = "US-001"
attempt = 1
turn = 2
steps = [{ say = "it was like that before" }]
[[turn]]
story = "US-001"
attempt = 1
steps = [
    { create = "x", text = "rejected work\n" },
    { create = "kept.txt", text = "changed\n" },
    { delete = "gone.txt" },
    { commit = "the agent's own" },
    { delete = "notes.txt" },
    { append = "draft.txt", text = "scribbled\n" },
    { tick = "US-001" },
    { create = ".verdone/guardrails.md", text = "be lax\n" },
    { run = "git init -q nested && echo n > nested/n && printf '#!/bin/sh\n' > .git/hooks/post-commit" },
]
[[turn]]
story = "US-001"
steps = [{ create = "a", text = "one" }]
[[turn]]
story = "US-002"
steps = [{ create = "b", text = "two\n" }]
"#;

const CONFIG: &str = "[agent]\nname = \"scripted\"\n[agent.scripted]\nscript = \".verdone/script.toml\"\n\
                      [limits]\ngrace = \"200ms\"\nturns = 2\n";

/// Ends the line of `a`, so that the commit is not what was verified; spoils `b` once, so that the commit is taken back.
const HOOK: &str = "#!/bin/sh\n\
    if [ -f a ] && [ \"$(wc -l < a)\" = 0 ]; then echo one > a; git add a; fi\n\
    if [ -f b ] && [ ! -f ../tmp/spoilt ]; then : > ../tmp/spoilt; echo spoilt > b; git add b; fi\n";

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
}

/// What has to be the same however often the run was killed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Final {
    subjects: Vec<String>,
    /// Of every commit: its files but for the progress file, which names commits and times.
    trees: Vec<String>,
    files: BTreeMap<&'static str, String>,
    entries: usize,
    status: String,
}

impl World {
    /// A copy of the project: making it anew takes a dozen processes.
    pub(crate) fn new() -> Self {
        static FIRST: LazyLock<World> = LazyLock::new(World::make);
        let sandbox = Sandbox::new().deadline(PATIENCE);
        let copied = Command::new("cp").arg("-a").arg(FIRST.sandbox.path(".")).arg(sandbox.work()).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy the project");
        Self { sandbox }
    }

    fn make() -> Self {
        let sandbox = Sandbox::new().deadline(PATIENCE);
        sandbox.write(format!("{HOME}/plan.md"), PLAN);
        sandbox.write(format!("{HOME}/prd.md"), PRD);
        sandbox.write(format!("{HOME}/progress.md"), "# Progress Log\n");
        sandbox.write(".verdone/config.toml", CONFIG);
        sandbox.write(".verdone/script.toml", SCRIPT);
        sandbox.write_script(
            ".verdone/hooks/next_iteration",
            "#!/bin/sh\nmkdir -p \"$VERDONE_LOG_DIR/inbox\"\necho '{\"note\":{\"text\":\"hello\"}}' > \"$VERDONE_LOG_DIR/inbox/1.json\"\n",
        );
        sandbox.write_script(".verdone/hooks/finished", "#!/bin/sh\necho over\n");
        sandbox.write("kept.txt", "as it was\n");
        sandbox.write("gone.txt", "still here\n");
        sandbox.write(".gitignore", "*.secret\n");
        sandbox.repo();
        sandbox.write("notes.txt", "the user's own\n");
        sandbox.write("draft.txt", "half a thought\n");
        sandbox.write("key.secret", "ignored\n");
        sandbox.write_script(".git/hooks/pre-commit", HOOK);
        Self { sandbox }
    }

    pub(crate) fn run(&self) -> Output {
        self.sandbox.verdone(VERDONE, ["run"])
    }

    pub(crate) fn start(&self) -> Running {
        self.sandbox.spawn(VERDONE, ["run"])
    }

    /// A run with this fault.
    pub(crate) fn run_with_fault(&self, fault: &str) -> Output {
        self.sandbox.run("env", [&format!("VERDONE_FAULT={fault}"), VERDONE, "run"])
    }

    /// What an undisturbed run leaves.
    pub(crate) fn expected() -> &'static Final {
        static EXPECTED: LazyLock<Final> = LazyLock::new(|| {
            let world = World::new();
            world.run().assert_code(0);
            world.assert_sound();
            world.look()
        });
        &EXPECTED
    }

    /// The moment after the first turn, as `POINT:N`.
    pub(crate) fn end_of_first_turn() -> &'static str {
        static MOMENT: LazyLock<String> = LazyLock::new(|| {
            let world = World::new();
            world.run_with_fault("trace=../tmp/trace").assert_code(0);
            let trace = world.sandbox.read("../tmp/trace");
            let (before, _) = trace.split_once("# Turn\n").unwrap();
            format!("step-done:{}", before.matches("step-done\n").count() + 1)
        });
        &MOMENT
    }

    /// The directory of the latest run.
    pub(crate) fn run_dir(&self) -> PathBuf {
        let entries = fs::read_dir(self.sandbox.path(".verdone/runs")).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).max().expect("there was a run")
    }

    /// Whether some file with this text can be reached from the refs of runs.
    pub(crate) fn checkpoints_hold(&self, text: &str) -> bool {
        self.sandbox.write("../tmp/wanted", text);
        let id = self.git(&["hash-object", "--no-filters", "../tmp/wanted"]);
        self.git(&["rev-list", "--objects", "--glob=refs/verdone/*"]).contains(&id)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.sandbox.git(arguments)
    }

    pub(crate) fn look(&self) -> Final {
        let commits = self.git(&["log", "--reverse", "--format=%H %s"]);
        let (ids, subjects): (Vec<&str>, Vec<&str>) = commits.lines().filter_map(|line| line.split_once(' ')).unzip();
        let tree = |id: &&str| {
            let all = self.git(&["ls-tree", "-r", id]);
            all.lines().filter(|line| !line.ends_with("progress.md")).collect::<Vec<_>>().join("\n")
        };
        let names = [
            ".ralph/PRD-1/plan.md",
            ".ralph/PRD-1/prd.md",
            ".verdone/config.toml",
            "notes.txt",
            "draft.txt",
            "key.secret",
            "kept.txt",
            "gone.txt",
            ".git/hooks/pre-commit",
        ];
        Final {
            trees: ids.iter().map(tree).collect(),
            subjects: subjects.into_iter().map(str::to_owned).collect(),
            files: names.into_iter().map(|name| (name, self.sandbox.read(name))).collect(),
            entries: self.sandbox.read(format!("{HOME}/progress.md")).matches("\n## ").count(),
            status: self.git(&["status", "--porcelain"]),
        }
    }

    /// What holds after every run, however it ended: no process, no lock and no draft is left, every note is true.
    pub(crate) fn assert_sound(&self) {
        self.sandbox.assert_no_survivors(PATIENCE);
        let left: Vec<String> = self.drafts();
        assert!(left.is_empty(), "left behind: {left:?}");
        for line in self.git(&["log", "--format=%H %T %s"]).lines() {
            let [id, tree, subject] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if subject.starts_with("feat(") {
                let note: Value = serde_json::from_str(&self.git(&["notes", "--ref=verdone", "show", id])).unwrap();
                assert_eq!(note["tree"], tree, "the note of {subject} is about another tree");
                assert_eq!(note["verdict"], "verified", "{subject}");
                // The hook rewrites the other one: its trailer names what was verified before, its note what was after.
                if subject.starts_with("feat(US-002)") {
                    self.assert_names_its_evidence(id);
                }
            } else {
                assert!(["initial", "chore: record progress"].contains(&subject), "{subject} is on the branch");
            }
        }
    }

    /// The digest in the commit's trailer is that of its note.
    fn assert_names_its_evidence(&self, id: &str) {
        let blob = self.git(&["notes", "--ref=verdone", "list", id]);
        self.sandbox.write("../tmp/note", format!("{}\n", self.git(&["cat-file", "blob", &blob])));
        let digest = self.sandbox.run("sha256sum", ["../tmp/note"]).stdout;
        let trailer = self.git(&["log", "-1", "--format=%(trailers:key=Verdone-Evidence,valueonly,separator=)", id]);
        assert_eq!(trailer, format!("sha256:{}", &digest[..64]), "the commit names other evidence");
    }

    /// Temporary files of ours that should be gone.
    fn drafts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.sandbox.work()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let kept = ["verdone.lock", "verdone-notes.lock", "verdone-last-run"].contains(&&*name);
                let ours =
                    name.starts_with(".verdone-") || (path.parent().unwrap().ends_with(".git") && name.starts_with("verdone"));
                if (ours && !kept) || name == "index.lock" {
                    found.push(path.display().to_string());
                } else if entry.file_type().unwrap().is_dir() && !is_history(&path) {
                    open.push(path);
                }
            }
        }
        found
    }
}

fn is_history(path: &Path) -> bool {
    path.ends_with(".git/objects") || ["aside", "undone", "protected"].iter().any(|name| path.ends_with(name))
}

/// Calls `each` for every item on a few threads; panics with all that went wrong.
pub(crate) fn in_parallel<T: Sync + std::fmt::Debug>(items: &[T], threads: usize, each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| each(item)));
                    if let Err(panic) = outcome {
                        let text = panic.downcast_ref::<String>().cloned();
                        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                        failures.lock().unwrap().push(format!("{item:?}: {}", text.unwrap_or_default()));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} went wrong:\n{}", failures.len(), items.len(), failures.join("\n\n"));
}

/// Numbers that look random and come again with the same seed (xorshift). `VERDONE_SEED` names one.
pub(crate) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(crate) fn from_time() -> Self {
        let named = std::env::var("VERDONE_SEED").ok().map(|text| text.parse().expect("VERDONE_SEED is a number"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Self::new(named.unwrap_or(now.as_micros() as u64))
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % limit
    }
}
