//! A small project whose user has uncommitted work, and a plan of three stories: the first attempt at one of them fails and is kept, a
//! commit hook rewrites the files of another, and the third adds a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use verdone_testkit::{Output, Running, Sandbox};

/// Longer than anything in these tests takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
/// More than there are cores, because a run waits much of the time.
pub(crate) const THREADS: usize = 3;
/// After a kill, the next run completes the plan, or the one after it.
const MOST_RUNS: usize = 4;

/// The program under test: the faster release binary if `scripts/test` names it.
pub(crate) static VERDONE: LazyLock<String> = LazyLock::new(|| {
    let named = std::env::var("VERDONE_RELEASE").ok().filter(|path| !path.is_empty());
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_verdone").to_owned())
});

pub(crate) const HOME: &str = ".ralph/PRD-1";
pub(crate) const PLAN: &str = "# Implementation Plan\n\n## Tasks\n\n\
    ### US-001: Write a\n\n- [ ] Write it\n  - Verification: `grep -qx one a`\n\n\
    ### US-002: Write b\n\n- [ ] Write it\n  - Verification: `grep -qx two b`\n  - Verification: `grep -qx changed kept.txt`\n\n\
    ### US-003: Write c\n\n- [ ] Write it\n  - Verification: `grep -qx three sub/c`\n";
const PRD: &str = "# PRD\n\n## User stories\n\n### [ ] US-001: Write a\n\nText.\n\n### [ ] US-002: Write b\n\nText.\n\n\
                   ### [ ] US-003: Write c\n\nText.\n";

/// The first attempt at the first story does what agents should not do, and fails.
pub(crate) const SCRIPT: &str = r#"
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
    { create = "kept.txt", text = "spoilt\n" },
    { run = "rm -f gone.txt" },
    { commit = "the agent's own" },
    { tick = "US-001" },
    { create = ".verdone/guardrails.md", text = "be lax\n" },
    { run = "git update-ref -d refs/heads/main; printf '#!/bin/sh\n' > .git/hooks/post-commit; sleep 0.1" },
]
[[turn]]
story = "US-001"
steps = [{ create = "a", text = "one" }, { sleep = "100ms" }]
[[turn]]
story = "US-002"
steps = [{ create = "b", text = "two\n" }, { create = "kept.txt", text = "changed\n" }, { run = "rm -f gone.txt" }, { sleep = "100ms" }]
[[turn]]
story = "US-003"
steps = [{ create = "sub/c", text = "three\n" }, { sleep = "100ms" }]
"#;

/// Adds a newline at the end of `a`, so that the commit differs from what was verified first.
const HOOK: &str = "#!/bin/sh\nif [ -f a ] && [ \"$(wc -l < a)\" = 0 ]; then echo one > a; git add a; fi\n";

/// The user's uncommitted files: changed, staged, untracked and ignored.
const MINE: [(&str, &str); 5] = [
    ("edited.txt", "my edit\n"),
    ("staged.txt", "my staged edit\n"),
    ("notes.txt", "the user's own\n"),
    ("folder/draft.txt", "half a thought\n"),
    ("key.secret", "ignored\n"),
];

/// How a run's commits reach the user's branch, and whether the plan is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) lands_itself: bool,
    pub(crate) plan_is_committed: bool,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [
        Self { lands_itself: true, plan_is_committed: true },
        Self { lands_itself: false, plan_is_committed: true },
        Self { lands_itself: true, plan_is_committed: false },
        Self { lands_itself: false, plan_is_committed: false },
    ];

    pub(crate) fn number(self) -> usize {
        Self::ALL.iter().position(|kind| *kind == self).unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) kind: Kind,
}

/// The result, which must be the same however often the run was killed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Final {
    /// Each story with its verdict and the files that its commit changed. Plan files are left out: stories come in any order, and progress
    /// names commits and times.
    stories: BTreeMap<String, (String, String)>,
    tree: String,
    plan: String,
    prd: String,
    /// The stories in the progress file.
    progress: Vec<String>,
    /// Git status of the user's checkout.
    status: String,
    staged: String,
}

impl World {
    /// Stories land automatically, and the plan is committed.
    pub(crate) fn new() -> Self {
        Self::with_kind(Kind::ALL[0])
    }

    /// A copy of the project: creating a new one takes a dozen processes.
    pub(crate) fn with_kind(kind: Kind) -> Self {
        static FIRST: [OnceLock<World>; 4] = [const { OnceLock::new() }; 4];
        FIRST[kind.number()].get_or_init(|| Self::make(kind)).copy()
    }

    fn copy(&self) -> Self {
        let sandbox = sandbox();
        let copied = Command::new("cp").arg("-a").arg(self.sandbox.path(".")).arg(sandbox.work()).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy the project");
        // The copies have new modification times, so git would consider them changed until the index is refreshed.
        sandbox.git(["update-index", "-q", "--refresh"]);
        Self { sandbox, kind: self.kind }
    }

    fn make(kind: Kind) -> Self {
        let sandbox = sandbox();
        let land = if kind.lands_itself { "auto" } else { "ask" };
        sandbox.write(
            ".verdone/config.toml",
            format!(
                "[protect]\nwork = [\"?\", \"*.txt\"]\n[run]\nland = \"{land}\"\n[workspace]\nwritable = [\"~/shared\"]\n[agent]\nname = \"scripted\"\n\
                 [agent.scripted]\nscript = \".verdone/script.toml\"\n[limits]\ngrace = \"200ms\"\nturns = 2\n"
            ),
        );
        sandbox.write(".verdone/script.toml", SCRIPT);
        sandbox.write_script(
            ".verdone/hooks/next_iteration",
            "#!/bin/sh\nmkdir -p \"$VERDONE_LOG_DIR/inbox\"\necho '{\"note\":{\"text\":\"hello\"}}' > \"$VERDONE_LOG_DIR/inbox/1.json\"\n",
        );
        sandbox.write_script(".verdone/hooks/finished", "#!/bin/sh\necho over\n");
        sandbox.write("kept.txt", "as it was\n");
        sandbox.write("gone.txt", "still here\n");
        sandbox.write(".gitignore", "*.secret\n");
        sandbox.write("edited.txt", "committed\n");
        sandbox.write("staged.txt", "committed\n");
        let plan = || {
            sandbox.write(format!("{HOME}/plan.md"), PLAN);
            sandbox.write(format!("{HOME}/prd.md"), PRD);
            sandbox.write(format!("{HOME}/progress.md"), "# Progress Log\n");
        };
        if kind.plan_is_committed {
            plan();
        }
        sandbox.repo();
        if !kind.plan_is_committed {
            plan();
        }
        for (path, text) in MINE {
            sandbox.write(path, text);
        }
        sandbox.git(["add", "staged.txt"]);
        sandbox.write_script(".git/hooks/pre-commit", HOOK);
        Self { sandbox, kind }
    }

    pub(crate) fn run(&self) -> Output {
        self.verdone(&["run"])
    }

    pub(crate) fn verdone(&self, arguments: &[&str]) -> Output {
        self.sandbox.verdone(&*VERDONE, arguments)
    }

    pub(crate) fn start(&self, command: &str) -> Running {
        self.sandbox.spawn(&*VERDONE, [command])
    }

    /// A run with this fault.
    pub(crate) fn run_with_fault(&self, fault: &str) -> Output {
        self.sandbox.run("env", [&format!("VERDONE_FAULT={fault}"), VERDONE.as_str(), "run"])
    }

    /// The result of an undisturbed run.
    pub(crate) fn expected(kind: Kind) -> &'static Final {
        static EXPECTED: [OnceLock<Final>; 4] = [const { OnceLock::new() }; 4];
        EXPECTED[kind.number()].get_or_init(|| {
            let world = World::with_kind(kind);
            world.run().assert_code(0);
            world.land();
            world.assert_sound();
            let found = world.final_state();
            assert_eq!(found.stories.len(), 3, "{found:#?}");
            assert!(found.stories.values().all(|(verdict, _)| verdict == "verified"), "{found:#?}");
            assert_eq!(found.progress.len(), 3, "{found:#?}");
            assert!(!found.plan.contains("- [ ]"), "{found:#?}");
            found
        })
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

    /// Lands the run's commits if the run does not do that itself.
    fn land(&self) {
        if !self.kind.lands_itself && self.waits_to_land() {
            self.verdone(&["land"]).assert_code(0);
        }
    }

    fn waits_to_land(&self) -> bool {
        !self.verdone(&["land", "--dry-run"]).stdout.contains("Nothing to land")
    }

    /// Runs until the plan is done, lands, and checks everything.
    #[track_caller]
    pub(crate) fn assert_ends_as_undisturbed(&self) {
        self.assert_ends_as_undisturbed_after(String::new());
    }

    /// The same, with the output so far.
    #[track_caller]
    pub(crate) fn assert_ends_as_undisturbed_after(&self, mut said: String) {
        for number in 1..=MOST_RUNS {
            let output = self.run();
            said += &output.transcript();
            if output.code == 0 {
                break;
            }
            assert!(number < MOST_RUNS, "the plan was not done in {MOST_RUNS} runs\n{said}");
        }
        self.land();
        self.assert_mine(&said);
        self.assert_sound();
        let (found, expected) = (self.final_state(), Self::expected(self.kind));
        assert!(found == *expected, "{said}\nfound {found:#?}\nexpected {expected:#?}");
        assert!(!self.attempts().is_empty(), "no attempt is kept\n{said}");
        let audit = self.verdone(&["audit"]);
        assert!(audit.code == 0 && audit.stdout.contains("3 stories passed the audit"), "{}\n{said}", audit.transcript());
    }

    /// The refs of kept attempts, found without a journal.
    pub(crate) fn attempts(&self) -> Vec<String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname)", "refs/verdone/attempts"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// The directory of the latest run.
    pub(crate) fn run_dir(&self) -> PathBuf {
        let entries = fs::read_dir(self.sandbox.path(".verdone/runs")).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).max().expect("there was a run")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.sandbox.git(arguments)
    }

    pub(crate) fn final_state(&self) -> Final {
        let progress_md = format!("{HOME}/progress.md");
        let without = |all: &str, end: &str| all.lines().filter(|line| !line.contains(end)).collect::<Vec<_>>().join("\n");
        let changed = |id: &str| without(&self.git(&["diff-tree", "-r", "--no-commit-id", "--no-renames", id]), HOME);
        let mut stories = BTreeMap::new();
        for line in self.git(&["log", "--format=%H %s"]).lines() {
            let (id, subject) = line.split_once(' ').unwrap();
            if let Some((story, _)) = subject.strip_prefix("feat(").and_then(|rest| rest.split_once(')')) {
                let note: Value = serde_json::from_str(&self.git(&["notes", "--ref=verdone", "show", id])).unwrap();
                let twice = stories.insert(story.to_owned(), (note["proof"].as_str().unwrap().to_owned(), changed(id)));
                assert_eq!(twice, None, "{story} was committed twice");
            }
        }
        let entries = self.sandbox.read(&progress_md);
        let entry = |part: &str| part.split_whitespace().find(|word| word.starts_with("US-")).map(str::to_owned);
        let mut progress: Vec<String> = entries.split("\n## ").skip(1).filter_map(entry).collect();
        progress.sort();
        Final {
            stories,
            tree: without(&self.git(&["ls-tree", "-r", "HEAD"]), &progress_md),
            plan: self.sandbox.read(format!("{HOME}/plan.md")),
            prd: self.sandbox.read(format!("{HOME}/prd.md")),
            progress,
            status: self.git(&["status", "--porcelain", "--untracked-files=all"]),
            staged: self.git(&["diff", "--cached", "--raw", "--no-abbrev"]),
        }
    }

    /// Asserts that the user's files are unchanged, byte for byte.
    #[track_caller]
    pub(crate) fn assert_mine(&self, said: &str) {
        for (path, text) in MINE {
            let found = fs::read(self.sandbox.path(path)).unwrap_or_else(|error| panic!("{path}: {error}\n{said}"));
            assert!(found == text.as_bytes(), "{path} is {:?}\n{said}", String::from_utf8_lossy(&found));
        }
        let staged = self.git(&["show", ":staged.txt"]);
        assert_eq!(staged, "my staged edit", "what the user had staged is lost\n{said}");
        assert_eq!(self.sandbox.read(".git/hooks/pre-commit"), HOOK, "{said}");
        assert!(!self.sandbox.path(".git/hooks/post-commit").exists(), "the agent's hook is in the repository\n{said}");
        assert_eq!(self.sandbox.read(".verdone/script.toml"), SCRIPT, "{said}");
    }

    /// Invariants after every run that was not killed: no process, mount, workspace, lock or temporary file is left, and every note is
    /// true.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        self.sandbox.assert_no_survivors(PATIENCE);
        self.assert_nothing_mounted();
        let left = self.drafts();
        assert!(left.is_empty(), "left behind: {left:?}");
        let state = self.sandbox.home().join(".local/state/verdone");
        for part in ["workspaces", "trash"] {
            let left: Vec<_> = fs::read_dir(state.join(part)).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert!(left.is_empty(), "left behind: {left:?}");
        }
        for line in self.git(&["log", "--format=%H %T %s"]).lines() {
            let [id, tree, subject] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if subject.starts_with("feat(") {
                let note: Value = serde_json::from_str(&self.git(&["notes", "--ref=verdone", "show", id])).unwrap();
                assert_eq!(note["tree"], tree, "the note of {subject} is about another tree");
                // The commit hook rewrites US-001: its trailer names the evidence from before the hook, its note the evidence after it.
                if !subject.starts_with("feat(US-001)") {
                    self.assert_names_its_evidence(id);
                }
            } else {
                assert!(["initial", "chore: record progress"].contains(&subject), "{subject} is on the branch");
            }
        }
        self.git(&["fsck", "--full", "--strict", "--no-dangling"]);
    }

    #[track_caller]
    pub(crate) fn assert_nothing_mounted(&self) {
        let (mounts, root) = (fs::read_to_string("/proc/self/mountinfo").unwrap(), self.sandbox.root().display().to_string());
        let ours: Vec<&str> = mounts.lines().filter(|line| line.contains(&format!("{root}/"))).collect();
        assert!(ours.is_empty(), "still mounted: {ours:?}");
    }

    /// Asserts that the digest in the commit's trailer is that of its note.
    fn assert_names_its_evidence(&self, id: &str) {
        let blob = self.git(&["notes", "--ref=verdone", "list", id]);
        self.sandbox.write("../tmp/note", format!("{}\n", self.git(&["cat-file", "blob", &blob])));
        let digest = self.sandbox.run("sha256sum", ["../tmp/note"]).stdout;
        let trailer = self.git(&["log", "-1", "--format=%(trailers:key=Verdone-Evidence,valueonly,separator=)", id]);
        assert_eq!(trailer, format!("sha256:{}", &digest[..64]), "the commit names other evidence");
    }

    /// Our temporary files and locks that should be gone.
    fn drafts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.sandbox.work()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let kept = ["verdone.lock", "verdone-notes.lock", "verdone-last-run"].contains(&&*name);
                let ours =
                    name.starts_with(".verdone-") || (path.parent().unwrap().ends_with(".git") && name.starts_with("verdone"));
                if (ours || name.ends_with(".lock")) && !kept {
                    found.push(path.display().to_string());
                } else if entry.file_type().unwrap().is_dir() && !path.ends_with(".git/objects") {
                    open.push(path);
                }
            }
        }
        found
    }
}

/// A sandbox in which agents and checks can write to `~/shared`.
pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new().deadline(PATIENCE);
    fs::create_dir(sandbox.home().join("shared")).unwrap();
    sandbox
}

/// Calls `each` for every item on a few threads; panics with all failures.
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

/// A count: the variable's value, or the default for the suite.
pub(crate) fn wanted(variable: &str, in_the_suite: usize) -> usize {
    std::env::var(variable).map_or(in_the_suite, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// A pseudo-random sequence that is the same for the same seed (xorshift).
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % limit
    }
}

/// The first seed of a test: fixed in the suite, so that results are the same everywhere; `VERDONE_SEED` sets another.
pub(crate) fn first_seed() -> u64 {
    std::env::var("VERDONE_SEED").map_or(1, |text| text.parse().expect("VERDONE_SEED is a number"))
}
