//! The table: each rule with the result of the same work on each surface.

use verdone_core::verify::Proof::{AgentTested, Unchecked, Untested, Verified};

use super::case::{CAN_BE_FOOLED, Case, Ends, SECRET, STARTED};
use super::observed::Fate::{self, Accepted, Done, Failed, NeedsReview, NeedsReviewAfterFeedback, NoCommit, Refused};

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// The engine's reason, as spelled in JSON.
    pub(crate) reason: &'static str,
    /// The text on surfaces that do not name reasons.
    pub(crate) says: &'static str,
    pub(crate) case: fn() -> Case,
    /// In the order of `Surface::ALL`: run, loop, verify, verify --base, audit --rerun, accept.
    pub(crate) cells: [Cell; 6],
}

#[derive(Debug)]
pub(crate) enum Cell {
    Is(Fate),
    /// Intentionally different from the other surfaces.
    Differs(Fate, &'static str),
    /// Cannot happen on this surface.
    Not(&'static str),
}

use Cell::{Differs, Is, Not};

impl Cell {
    pub(crate) fn fate(&self) -> Option<Fate> {
        match self {
            Self::Is(fate) | Self::Differs(fate, _) => Some(*fate),
            Self::Not(_) => None,
        }
    }
}

const NEVER_DONE: &str = "Such work is committed only after a person accepted it, and accepted work is not judged again.";
const NEVER_KEPT: &str = "Such work fails, so it never waits for a person.";
const OF_THEN: &str = "The scope and the minimum at the time of the commit are not part of the evidence.";
const OF_SESSIONS: &str = "Conditions and the judge belong to an agent's session. `verdone done` asks them.";
const ASKED_ONCE: &str = "The judge and the conditions are asked once, before the commit.";
const COMMITS_NOTHING: &str = "This command commits nothing.";
const ALL_GATES: &str = "On the checkout, every gate runs, whatever was changed.";
const NOTHING_TO_COMPARE: &str = "No agent is asked to do anything, so the checks run on the files as they are.";
const NO_STORY: &str = "A story without a change is neither committed nor kept.";
const LEFT_OUT: &str = "The file is left out, and a note says so.";
const COMMITTED: &str = "The file is already committed.";
const NEXT_TIME: &str = "The work is verified again at the end of the next turn.";
const NOT_FROM_OUTSIDE: &str = "Only a fault of Verdone or git leads to this. Unit tests of the engine cover it.";

/// The same everywhere, except after a person accepts it.
const fn everywhere(fate: Fate, accept: Fate) -> [Cell; 6] {
    [Is(fate), Is(fate), Is(fate), Is(fate), Is(fate), Is(accept)]
}

/// A doubt: if there is an agent, it gets feedback first.
const fn doubted(audit: Cell, accept: Fate) -> [Cell; 6] {
    [Is(NeedsReviewAfterFeedback), Is(NeedsReviewAfterFeedback), Is(NeedsReview), Is(NeedsReview), audit, Is(accept)]
}

/// Conditions that apply only to an agent's session.
const fn in_sessions(fate: Fate, accept: Cell) -> [Cell; 6] {
    [Is(fate), Is(fate), Not(OF_SESSIONS), Not(OF_SESSIONS), Not(ASKED_ONCE), accept]
}

const fn nowhere(why: &'static str) -> [Cell; 6] {
    [Not(why), Not(why), Not(why), Not(why), Not(why), Not(why)]
}

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "a check fails",
        reason: "check-failed",
        says: "failed with exit code 1",
        case: || Case::new(&[], "bad").gate("check.sh", "! grep -q bad src/value.txt").ends(Ends::Failed),
        cells: everywhere(Failed, Refused),
    },
    Rule {
        name: "a check counts a failed test and ends with exit code 0",
        reason: "check-failed",
        says: "counts 1 failed",
        case: || {
            let script = "echo 1..1; if grep -q bad src/value.txt; then echo 'not ok 1 - value'; else echo 'ok 1 - value'; fi";
            Case::new(&[], "bad").gate("check.sh", script).ends(Ends::Failed)
        },
        cells: everywhere(Failed, Refused),
    },
    Rule {
        name: "a check calls a program that does not exist",
        reason: "check-unknown",
        says: "not found",
        case: || {
            let script = "if grep -q bad src/value.txt; then no-such-tool; fi";
            Case::new(&[], "bad").gate("check.sh", script).ends(Ends::Failed)
        },
        cells: everywhere(Failed, Refused),
    },
    Rule {
        name: "a hidden check fails, and the agent is not told what it prints",
        reason: "check-failed",
        says: "failed with exit code 1",
        case: || {
            let exam = format!("{CAN_BE_FOOLED}if grep -q bad src/value.txt; then echo {SECRET}; exit 1; fi\n");
            let gate = "[[gate]]\nname = \"exam\"\ncommand = \"sh $VERDONE_HIDDEN/exam.sh\"\nhidden = \"~/hidden\"\n";
            Case::new(&[], "bad").config(gate).file("../home/hidden/exam.sh", &exam).ends(Ends::Failed)
        },
        cells: everywhere(Failed, Refused),
    },
    Rule {
        name: "a check is left out without a reason",
        reason: "check-not-run",
        says: "",
        case: own_check,
        cells: nowhere(NOT_FROM_OUTSIDE),
    },
    Rule {
        name: "the user interrupts the checks",
        reason: "interrupted",
        says: "",
        case: || {
            let script = format!("if grep -q bad src/value.txt; then : > {STARTED}; sleep 600; fi");
            Case { interrupted: true, ..Case::new(&[], "bad").gate("check.sh", &script).ends(Ends::Failed) }
        },
        cells: [Is(Failed), Not(NEXT_TIME), Is(Failed), Is(Failed), Is(Failed), Is(Refused)],
    },
    Rule {
        name: "nothing was changed",
        reason: "nothing-changed",
        says: "",
        case: || Case { work: Vec::new(), ..Case::new(&[], "").gate("check.sh", "true") },
        cells: [
            Is(Failed),
            Is(Failed),
            Differs(Done(Untested), NOTHING_TO_COMPARE),
            Differs(Done(Untested), NOTHING_TO_COMPARE),
            Not(NO_STORY),
            Not(NO_STORY),
        ],
    },
    Rule {
        name: "a file is too large to be committed",
        reason: "cannot-commit",
        says: "too large",
        case: || {
            let case = own_check().writes("src/large.txt", &"x".repeat(2000)).config("[stop]\ncommit = true\n");
            Case { limits: "snapshot_file_bytes = 1000", ..case }
        },
        cells: [
            Is(Failed),
            Is(NoCommit),
            Differs(Done(Verified), LEFT_OUT),
            Differs(Done(Verified), COMMITTED),
            Not(COMMITTED),
            Not(NEVER_KEPT),
        ],
    },
    Rule {
        name: "a changed file is outside of the enforced scope",
        reason: "out-of-scope",
        says: "",
        case: || {
            Case::new(&["Scope: `src/`", OWN], "good")
                .writes("docs/stray.md", "stray\n")
                .config("[policy]\nscope = \"enforced\"\n")
        },
        cells: [Is(Failed), Is(Failed), Is(Failed), Is(Failed), Not(OF_THEN), Not(NEVER_KEPT)],
    },
    Rule {
        name: "a required condition is not met",
        reason: "condition-missing",
        says: "",
        case: || own_check().config("[done]\nrequire = [\"seen\"]\n[[done.condition]]\nname = \"seen\"\nprover = \"claim\"\n"),
        cells: in_sessions(Failed, Not(NEVER_KEPT)),
    },
    Rule {
        name: "the story's own check fails before the work and passes now",
        reason: "own-check",
        says: "",
        case: own_check,
        cells: everywhere(Done(Verified), Accepted(Verified)),
    },
    Rule {
        name: "the story's own check passed before the work",
        reason: "own-check",
        says: "",
        case: || Case::new(&["Verification: `test -s src/value.txt`"], "good"),
        cells: everywhere(Done(Untested), Accepted(Untested)),
    },
    Rule {
        name: "tests of the attempt fail without its work",
        reason: "tests-prove-work",
        says: "",
        case: || Case::new(&[], "good").gate("tests/run.sh", RUNNER).writes("tests/value.t", "grep -q good src/value.txt\n"),
        cells: everywhere(Done(AgentTested), Accepted(Untested)),
    },
    Rule {
        name: "tests of the attempt pass without its work",
        reason: "tests-pass-without-work",
        says: "",
        case: || Case::new(&[], "good").gate("tests/run.sh", RUNNER).writes("tests/value.t", "true\n"),
        cells: everywhere(Done(Untested), Accepted(Untested)),
    },
    Rule {
        name: "the scope names the changed test",
        reason: "scope-names-protected",
        says: "",
        case: || changed_check(&["Scope: `src/`, `tests/`"]),
        cells: everywhere(Done(AgentTested), Accepted(AgentTested)),
    },
    Rule {
        name: "a changed test passes in its old version, too",
        reason: "own-check",
        says: "",
        case: || changed_check(&[]),
        cells: everywhere(Done(Verified), Accepted(Untested)),
    },
    Rule {
        name: "a changed check script passes in its old version, too",
        reason: "own-check",
        says: "",
        case: || {
            let story = ["Verification: `sh own.sh`"];
            Case::new(&story, "good").file("own.sh", LOOKS).writes("own.sh", &format!("# The same.\n{LOOKS}"))
        },
        cells: everywhere(Done(Verified), Accepted(Untested)),
    },
    Rule {
        name: "a gate is for other files",
        reason: "own-check",
        says: "",
        case: || own_check().config(&for_others("paths = [\"docs/**\"]")),
        cells: [
            Is(Done(Verified)),
            Is(Done(Verified)),
            Differs(Failed, ALL_GATES),
            Is(Done(Verified)),
            Is(Done(Verified)),
            Is(Accepted(Verified)),
        ],
    },
    Rule {
        name: "a gate is for more complex stories",
        reason: "own-check",
        says: "",
        case: || Case::new(&["Complexity: 2", OWN], "good").config(&for_others("complexity_at_least = 5")),
        cells: everywhere(Done(Verified), Accepted(Verified)),
    },
    Rule {
        name: "a check writes to files of the repository",
        reason: "own-check",
        says: "",
        case: || own_check().gate("check.sh", "echo bad > src/value.txt; echo stray > src/stray.txt"),
        cells: everywhere(Done(Verified), Accepted(Verified)),
    },
    Rule {
        name: "nothing checks the story",
        reason: "no-check",
        says: "check",
        case: || Case::new(&[], "good").ends(Ends::Unchecked),
        cells: [Is(Refused), Is(Refused), Is(Refused), Is(Refused), Is(Done(Unchecked)), Is(Accepted(Unchecked))],
    },
    Rule {
        name: "a check passes only with a changed test",
        reason: "pristine-failed",
        says: "passes only with the changed tests/run.sh",
        case: || {
            let case = Case::new(&[], "bad").gate("tests/run.sh", "! grep -q bad src/value.txt");
            case.writes("tests/run.sh", "true\n").ends(Ends::Review)
        },
        cells: doubted(Is(NeedsReview), Accepted(Untested)),
    },
    Rule {
        name: "the old tests cannot be combined with the work",
        reason: "pristine-not-built",
        says: "",
        case: own_check,
        cells: nowhere(NOT_FROM_OUTSIDE),
    },
    Rule {
        name: "fewer tests pass than before",
        reason: "counts-fell",
        says: "2 tests passed before the work, now 1",
        case: || {
            let script = "n=0; while read -r line; do n=$((n + 1)); echo \"ok $n - $line\"; done < src/list.txt; echo 1..$n";
            let case = Case::new(&[], "good").gate("tests/run.sh", script).file("src/list.txt", "one\ntwo\n");
            case.writes("src/list.txt", "one\n").ends(Ends::Review)
        },
        cells: doubted(Is(NeedsReview), Accepted(Untested)),
    },
    Rule {
        name: "the check of a later story is changed",
        reason: "other-check-changed",
        says: "",
        case: || {
            let case = own_check().file("two.sh", "test -f src/two.txt\n").writes("two.sh", "true\n").ends(Ends::Review);
            let later = "\n### US-002: Write two\n\n- [ ] Write two\n  - Verification: `sh two.sh`\n";
            Case { plan: case.plan + later, ..case }
        },
        cells: doubted(Not(NEVER_DONE), Accepted(Untested)),
    },
    Rule {
        name: "a file is changed that will run automatically later",
        reason: "autorun-changed",
        says: "",
        case: || own_check().writes(".envrc", "export A=1\n").ends(Ends::Review),
        cells: doubted(Not(NEVER_DONE), Accepted(Untested)),
    },
    Rule {
        name: "the proof is below `[done] minimum`",
        reason: "below-minimum",
        says: "",
        case: || Case::new(&[], "good").config("[done]\nminimum = \"verified\"\n").gate("check.sh", "true").ends(Ends::Review),
        cells: doubted(Not(OF_THEN), Accepted(Untested)),
    },
    Rule {
        name: "a required condition cannot be determined",
        reason: "condition-unknown",
        says: "",
        case: || {
            let case = Case::new(&["Complexity: 2", OWN], "good").ends(Ends::Review);
            // Once the agent calls the story complex, a judge is required but there is none, so the condition is unknown.
            case.config("[done]\nrequire = [\"task_classified\", \"adversarial_passed\"]\n")
                .claims("task_classified --complexity 9 --note 'many parts'")
        },
        cells: in_sessions(NeedsReview, Is(Accepted(Verified))),
    },
    Rule {
        name: "a judge refutes the work",
        reason: "judge-refuted",
        says: "",
        case: || judged_by(r#"echo '{"verdict":"refuted","findings":["too short"]}'"#),
        cells: in_sessions(NeedsReviewAfterFeedback, Is(Accepted(Verified))),
    },
    Rule {
        name: "a judge gives no clear answer",
        reason: "judge-unknown",
        says: "",
        case: || judged_by("echo who knows"),
        cells: in_sessions(NeedsReview, Is(Accepted(Verified))),
    },
    Rule {
        name: "a git hook rewrites files, and the check fails on them",
        reason: "check-failed",
        says: "failed with exit code 1",
        case: || {
            let case = own_check().config("[stop]\ncommit = true\n");
            Case { hook: Some("echo bad > src/value.txt; git add src/value.txt"), ..case }
        },
        cells: [Is(NoCommit), Is(NoCommit), Not(COMMITS_NOTHING), Not(COMMITS_NOTHING), Not(COMMITS_NOTHING), Is(Refused)],
    },
];

/// The story's own check.
const OWN: &str = "Verification: `grep -q good src/value.txt`";
/// The same as a script.
const LOOKS: &str = "grep -q good src/value.txt\n";
/// Runs and counts all tests in `tests/`.
const RUNNER: &str = "n=0; bad=0; for test in tests/*.t; do n=$((n + 1)); [ -e \"$test\" ] || { echo 'ok 1 - none'; break; }; \
                      if sh \"$test\"; then echo \"ok $n - $test\"; else echo \"not ok $n - $test\"; bad=1; fi; done; \
                      echo 1..$n; exit $bad";

fn own_check() -> Case {
    Case::new(&[OWN], "good")
}

/// A story whose own check is a test that the work changes unnecessarily.
fn changed_check(story: &[&str]) -> Case {
    let story = [story, &["Verification: `sh tests/own.sh`"]].concat();
    Case::new(&story, "good").file("tests/own.sh", LOOKS).writes("tests/own.sh", &format!("# The same.\n{LOOKS}"))
}

/// A gate that fails with the work, but does not apply to it.
fn for_others(when: &str) -> String {
    format!("[[gate]]\nname = \"others\"\ncommand = \"! grep -q good src/value.txt\"\nwhen = {{ {when} }}\n")
}

fn judged_by(command: &str) -> Case {
    let judge = format!("[done]\nrequire = [\"adversarial_passed\"]\n[done.judge]\nenabled = true\ncommand = '''{command}'''\n");
    own_check().config(&judge).ends(Ends::Review)
}
