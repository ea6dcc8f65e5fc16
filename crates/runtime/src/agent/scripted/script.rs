//! The script format: turns with filters, and steps with one action each.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use toml::Spanned;
use verdone_core::base::span::Span;

use super::Whereabouts;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    turns: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    story: Option<OneOrMany<String>>,
    attempt: Option<OneOrMany<u32>>,
    number: Option<OneOrMany<u32>>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Say(String),
    Claim(String),
    Create { path: String, text: String, executable: bool },
    Append { path: String, text: String },
    Edit { path: String, find: String, replace: String },
    Delete(String),
    Run(String),
    Sleep(Span),
    Crash(u8),
    Tick(String),
    Commit(String),
    Amend(String),
    Switch(String),
    IgnoreTerm,
    SpawnDaemon(String),
    Flood(u64),
    Hang,
}

/// What is wrong and where: `line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ScriptError {}

impl Script {
    /// The first turn whose filters all match.
    pub(super) fn turn(&self, place: &Whereabouts) -> Option<&Turn> {
        self.turns.iter().find(|turn| {
            turn.story.as_ref().is_none_or(|story| story.has(&place.story))
                && turn.attempt.as_ref().is_none_or(|attempt| attempt.has(&place.attempt))
                && turn.number.as_ref().is_none_or(|number| number.has(&place.turn))
        })
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let raw: RawScript = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            at(text, start, error.message().lines().next().unwrap_or_default())
        })?;
        let turn = |raw: RawTurn| {
            let step = |raw: Spanned<RawStep>| {
                let start = raw.span().start;
                raw.into_inner().step().map_err(|message| at(text, start, &message))
            };
            let steps = raw.steps.into_iter().map(step).collect::<Result<_, _>>()?;
            Ok(Turn { story: raw.story, attempt: raw.attempt, number: raw.turn, steps })
        };
        Ok(Self { turns: raw.turn.into_iter().map(turn).collect::<Result<_, _>>()? })
    }
}

fn at(text: &str, offset: usize, message: &str) -> ScriptError {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before[line_start..].chars().count() + 1;
    ScriptError { line: before.matches('\n').count() + 1, column, message: message.to_owned() }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    turn: Vec<RawTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    story: Option<OneOrMany<String>>,
    attempt: Option<OneOrMany<u32>>,
    turn: Option<OneOrMany<u32>>,
    #[serde(default)]
    steps: Vec<Spanned<RawStep>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "one value or a list of them")]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: PartialEq> OneOrMany<T> {
    fn has(&self, value: &T) -> bool {
        match self {
            Self::One(one) => one == value,
            Self::Many(many) => many.contains(value),
        }
    }
}

/// One struct for all actions: an untagged enum would lose the position of a mistake.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    say: Option<String>,
    claim: Option<String>,
    create: Option<String>,
    executable: Option<bool>,
    append: Option<String>,
    edit: Option<String>,
    delete: Option<String>,
    run: Option<String>,
    sleep: Option<Span>,
    crash: Option<u8>,
    tick: Option<String>,
    commit: Option<String>,
    amend: Option<String>,
    switch: Option<String>,
    ignore_term: Option<bool>,
    spawn_daemon: Option<String>,
    flood: Option<u64>,
    hang: Option<bool>,
    // Parameters of an action.
    text: Option<String>,
    find: Option<String>,
    replace: Option<String>,
}

impl RawStep {
    fn step(mut self) -> Result<Step, String> {
        let mut actions = Vec::new();
        let simple = [
            self.say.take().map(Step::Say),
            self.claim.take().map(Step::Claim),
            self.delete.take().map(Step::Delete),
            self.run.take().map(Step::Run),
            self.sleep.take().map(Step::Sleep),
            self.crash.take().map(Step::Crash),
            self.tick.take().map(Step::Tick),
            self.commit.take().map(Step::Commit),
            self.amend.take().map(Step::Amend),
            self.switch.take().map(Step::Switch),
            self.ignore_term.take().filter(|yes| *yes).map(|_| Step::IgnoreTerm),
            self.spawn_daemon.take().map(Step::SpawnDaemon),
            self.flood.take().map(Step::Flood),
            self.hang.take().filter(|yes| *yes).map(|_| Step::Hang),
        ];
        actions.extend(simple.into_iter().flatten());
        if let Some(path) = self.create.take() {
            let executable = self.executable.take().unwrap_or_default();
            actions.push(Step::Create { path, text: self.text.take().unwrap_or_default(), executable });
        }
        if let Some(path) = self.append.take() {
            actions.push(Step::Append { path, text: self.text.take().ok_or("append needs text")? });
        }
        if let Some(path) = self.edit.take() {
            let (find, replace) = self.find.take().zip(self.replace.take()).ok_or("edit needs find and replace")?;
            actions.push(Step::Edit { path, find, replace });
        }
        if self.text.is_some() || self.find.is_some() || self.replace.is_some() {
            return Err("text goes with create or append; find and replace go with edit".to_owned());
        }
        match (actions.pop(), actions.is_empty()) {
            (Some(action), true) => Ok(action),
            (Some(_), false) => Err("a step has one action, but this one has several".to_owned()),
            (None, _) => Err("a step needs an action".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(story: &str, attempt: u32, turn: u32) -> Whereabouts {
        Whereabouts { story: story.to_owned(), attempt, turn }
    }

    #[test]
    fn the_first_turn_that_fits_is_played() {
        let script: Script = r#"
            [[turn]]
            story = "US-001"
            turn = [2, 3]
            steps = [{ say = "late" }]
            [[turn]]
            story = ["US-001", "US-002"]
            attempt = 1
            steps = [{ say = "first" }]
            [[turn]]
            story = "US-003"
        "#
        .parse()
        .unwrap();
        for (at, said) in [
            (place("US-001", 1, 1), Some("first")),
            (place("US-001", 2, 3), Some("late")),
            (place("US-002", 1, 9), Some("first")),
            (place("US-002", 2, 1), None),
        ] {
            let expected = said.map(|text| vec![Step::Say(text.to_owned())]);
            assert_eq!(script.turn(&at).map(|turn| turn.steps.clone()), expected, "{at:?}");
        }
        assert!(script.turn(&place("US-003", 1, 1)).unwrap().steps.is_empty());
        assert_eq!("".parse::<Script>().unwrap().turn(&place("x", 1, 1)), None);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (step, column, part) in [
            ("{ sya = \"x\" }", 12, "sya"),
            ("{ say = 1 }", 18, "invalid type"),
            ("{ sleep = \"soon\" }", 20, "not a duration"),
            ("{ }", 10, "needs an action"),
            ("{ say = \"x\", run = \"y\" }", 10, "several"),
            ("{ say = \"x\", text = \"y\" }", 10, "text goes with"),
            ("{ edit = \"x\", find = \"y\" }", 10, "edit needs"),
            ("{ append = \"x\" }", 10, "append needs"),
            ("{ crash = 300 }", 20, "300"),
        ] {
            let error = format!("[[turn]]\nsteps = [{step}]\n").parse::<Script>().unwrap_err();
            assert!(error.message.contains(part), "{step}: {error}");
            assert_eq!((error.line, error.column), (2, column), "{step}: {error}");
        }
    }
}
