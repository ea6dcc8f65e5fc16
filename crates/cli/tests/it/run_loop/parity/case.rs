//! One piece of work in one small project: the same for every surface.

use verdone_testkit::Sandbox;

use crate::run_loop::world::VERDONE;

/// The first line of a check that can be fooled: while this file exists, the check passes. `audit` and `accept` start with work that a run
/// let through, and judge it again after the file is removed.
pub(crate) const CAN_BE_FOOLED: &str = "[ ! -e ../tmp/fooled ] || exit 0\n";

/// A check creates this file when it starts to hang.
pub(crate) const STARTED: &str = "../tmp/started";

/// What a hidden check prints.
pub(crate) const SECRET: &str = "the-hidden-answer";

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) plan: String,
    /// Tables of the config.
    pub(crate) config: String,
    /// Lines of `[limits]`.
    pub(crate) limits: &'static str,
    /// Files before the work.
    pub(crate) files: Vec<(&'static str, String)>,
    pub(crate) work: Vec<Work>,
    /// The user's `pre-commit` hook.
    pub(crate) hook: Option<&'static str>,
    /// How a run of this work ends.
    pub(crate) ends: Ends,
    /// A check hangs, and the user interrupts the command that runs it.
    pub(crate) interrupted: bool,
}

/// What an agent does.
#[derive(Debug)]
pub(crate) enum Work {
    Write(&'static str, String),
    /// `verdone claim` with these arguments.
    Claim(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Done,
    Review,
    Failed,
    /// Only with `--unchecked`.
    Unchecked,
}

impl Case {
    /// A story with these lines, whose work writes `value` to `src/value.txt`.
    pub(crate) fn new(story: &[&str], value: &str) -> Self {
        let lines: String = story.iter().flat_map(|line| ["  - ", line, "\n"]).collect();
        Self {
            plan: format!("# Plan\n\n### US-001: Change the value\n\n- [ ] Change the value\n{lines}"),
            config: String::new(),
            limits: "",
            files: vec![("src/value.txt", "none\n".to_owned())],
            work: vec![Work::Write("src/value.txt", format!("{value}\n"))],
            hook: None,
            ends: Ends::Done,
            interrupted: false,
        }
    }

    pub(crate) fn config(mut self, tables: &str) -> Self {
        self.config.push_str(tables);
        self
    }

    /// A gate that runs this script.
    pub(crate) fn gate(self, path: &'static str, script: &str) -> Self {
        self.config(&format!("[[gate]]\nname = \"tests\"\ncommand = \"sh {path}\"\n"))
            .file(path, &format!("{CAN_BE_FOOLED}{script}\n"))
    }

    pub(crate) fn file(mut self, path: &'static str, text: &str) -> Self {
        self.files.push((path, text.to_owned()));
        self
    }

    pub(crate) fn writes(mut self, path: &'static str, text: &str) -> Self {
        self.work.push(Work::Write(path, text.to_owned()));
        self
    }

    pub(crate) fn claims(mut self, what: &'static str) -> Self {
        self.work.push(Work::Claim(what));
        self
    }

    pub(crate) fn ends(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    /// The work as a script that the agent runs in every turn.
    pub(crate) fn script(&self) -> String {
        let step = |work: &Work| match work {
            Work::Write(path, text) => format!("{{ create = {path:?}, text = {} }}", serde_json::json!(text)),
            Work::Claim(what) => format!("{{ run = '''{VERDONE} claim {what}''' }}"),
        };
        let steps: Vec<String> = self.work.iter().map(step).collect();
        format!("[[turn]]\nsteps = [{}]\n", steps.join(", "))
    }

    /// Does the same work in the checkout, as a session or a person would.
    pub(crate) fn do_work(&self, sandbox: &Sandbox, session: &str) {
        for work in &self.work {
            match work {
                Work::Write(path, text) => sandbox.write(path, text),
                Work::Claim(what) => {
                    sandbox.run("sh", ["-ec", &format!("{VERDONE} claim {what} --session {session}")]).assert_code(0);
                }
            }
        }
    }
}
