//! Derives a session's conditions from its records: whether the agent looked at lessons and past evidence, and which tasks in the
//! client's task list are open. The records are written after tool calls and folded line by line.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Record;
use super::record::cut;
use crate::base::id::Oid;
use crate::policy::{self, ToolKind, kind_of};
use verdone_shell::Variables;

const GUARDRAILS: &str = "/.verdone/guardrails.md";
/// Verdone's subcommands that show lessons and evidence.
const SHOWS: [&str; 5] = ["log", "show", "report", "audit", "status"];
/// Further open tasks are counted, not named.
const MOST_TASKS: usize = 1_000;

/// Whether an executed call looked at lessons or past evidence. `known` are the files it read.
pub(super) fn recalled(call: &policy::ToolCall, known: &[String]) -> Option<Record> {
    if known.iter().any(|path| path.ends_with(GUARDRAILS)) {
        return Some(Record::Recalled { by: "the lessons were read".to_owned() });
    }
    let line = call.text("command").or_else(|| call.text("cmd")).filter(|_| kind_of(&call.tool) == ToolKind::Shell)?;
    // Parsing is the most expensive step, and few commands involve Verdone.
    if !line.contains("verdone") {
        return None;
    }
    let script = verdone_shell::parse(line, &Variables::new());
    let shown = script.commands.iter().find_map(|simple| {
        let mut words = simple.words.iter().filter_map(|word| word.literal());
        let program = words.next()?;
        let ours = program.rsplit('/').next() == Some("verdone");
        words.next().filter(|command| ours && SHOWS.contains(command)).map(str::to_owned)
    })?;
    Some(Record::Recalled { by: format!("`verdone {shown}` was run") })
}

/// The effect of `TaskUpdate` on the task list. Creating and completing a task have their own events.
pub(super) fn task_changed(call: &policy::ToolCall) -> Option<Record> {
    if call.tool != "TaskUpdate" {
        return None;
    }
    let task = match call.input.get("taskId")? {
        Value::String(id) => cut(id),
        Value::Number(id) => id.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    match call.text("status")? {
        "deleted" | "completed" => Some(Record::TaskClosed { task }),
        "pending" | "in_progress" => Some(Record::TaskOpened { task, subject: String::new() }),
        _ => None,
    }
}

/// A fold of a session's records, used to judge its conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFold {
    /// When the first record was written.
    pub first: Option<Timestamp>,
    /// HEAD at the start of the session.
    pub head: Option<Oid>,
    /// How the agent first looked at lessons or past evidence.
    pub recalled: Option<String>,
    /// The lessons at the start of the session: number of lines and digest.
    pub lessons: Option<(u32, String)>,
    tasks: BTreeMap<String, String>,
    /// The number of open tasks beyond the limit.
    more: u64,
}

impl SessionFold {
    pub fn add_line(&mut self, line: &str) {
        #[derive(Deserialize)]
        struct Stamp {
            at: Timestamp,
        }
        if self.first.is_none() {
            self.first = serde_json::from_str::<Stamp>(line).ok().map(|stamp| stamp.at);
        }
        // Skip other lines quickly: most are irrelevant, and a session may have a million.
        if !["\"began\"", "\"lessons\"", "\"recalled\"", "\"task_"].iter().any(|sign| line.contains(sign)) {
            return;
        }
        match serde_json::from_str(line) {
            Ok(Record::Lessons { lines, digest, told }) => {
                if told {
                    self.recalled.get_or_insert_with(|| "the lessons were given to the session when it began".to_owned());
                }
                self.lessons.get_or_insert((lines, digest));
            }
            Ok(Record::Began { head }) => {
                self.head.get_or_insert(head);
            }
            Ok(Record::Recalled { by }) => {
                self.recalled.get_or_insert(by);
            }
            Ok(Record::TaskOpened { task, subject }) => self.open(task, subject),
            Ok(Record::TaskClosed { task }) => {
                self.tasks.remove(&task);
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// The subjects of the open tasks; the last entry may give the number of further ones.
    pub fn open_tasks(&self) -> Vec<String> {
        let named =
            |(task, subject): (&String, &String)| if subject.is_empty() { format!("task {task}") } else { subject.clone() };
        let more = (self.more > 0).then(|| format!("{} more", self.more));
        self.tasks.iter().map(named).chain(more).collect()
    }

    fn open(&mut self, task: String, subject: String) {
        if self.tasks.len() >= MOST_TASKS && !self.tasks.contains_key(&task) {
            self.more += 1;
            return;
        }
        let kept = self.tasks.entry(task).or_default();
        if !subject.is_empty() {
            *kept = subject;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(tool: &str, input: Value) -> policy::ToolCall {
        policy::ToolCall { tool: tool.to_owned(), input }
    }

    #[test]
    fn a_look_at_lessons_or_evidence_is_seen_and_nothing_else_is() {
        let read = call("Read", json!({"file_path": "/p/.verdone/guardrails.md"}));
        assert!(recalled(&read, &["/p/.verdone/guardrails.md".to_owned()]).is_some());
        assert!(recalled(&read, &["/p/guardrails.md".to_owned()]).is_none(), "only what was really read counts");
        for (command, expected) in [
            ("verdone log", true),
            ("cd x && /usr/bin/verdone show US-001 | head", true),
            ("bash -c 'verdone report'", true),
            ("echo verdone log", false),
            ("verdone --version", false),
            ("verdone claim retrospective_done --note x", false),
            ("git log", false),
        ] {
            assert_eq!(recalled(&call("Bash", json!({"command": command})), &[]).is_some(), expected, "{command}");
        }
    }

    #[test]
    fn tasks_are_open_until_they_are_finished_or_deleted() {
        let mut fold = SessionFold::default();
        let mut add = |record: &Record| {
            let mut line = serde_json::to_value(record).unwrap();
            line["at"] = "2026-11-15T08:00:00Z".into();
            fold.add_line(&line.to_string());
            fold.open_tasks()
        };
        let opened = |task: &str, subject: &str| Record::TaskOpened { task: task.to_owned(), subject: subject.to_owned() };
        let update = |status: &str| task_changed(&call("TaskUpdate", json!({"taskId": "1", "status": status})));
        assert_eq!(add(&opened("1", "do A")), ["do A"]);
        assert_eq!(add(&opened("2", "do B")), ["do A", "do B"]);
        assert_eq!(add(&update("in_progress").unwrap()), ["do A", "do B"], "an update does not rename it");
        assert_eq!(add(&Record::TaskClosed { task: "2".to_owned() }), ["do A"]);
        assert_eq!(add(&update("deleted").unwrap()), Vec::<String>::new());
        assert_eq!(add(&opened("3", "")), ["task 3"]);
        for n in 0..2_000 {
            add(&opened(&format!("x{n}"), "x"));
        }
        assert_eq!(fold.open_tasks().len(), MOST_TASKS + 1);
        assert_eq!(update("odd"), None);
        for line in ["", "{", "[]", "{\"record\":\"task_opened\"}", "{\"record\":\"lessons\",\"lines\":-1}"] {
            fold.add_line(line);
        }
        assert_eq!(fold.first.map(|at| at.to_string()).as_deref(), Some("2026-11-15T08:00:00Z"));
    }

    #[test]
    fn lessons_and_head_are_those_of_the_first_beginning() {
        let mut fold = SessionFold::default();
        for (lines, told) in [(2, false), (5, true)] {
            let record = Record::Lessons { lines, digest: format!("d{lines}"), told };
            fold.add_line(&serde_json::to_string(&record).unwrap());
        }
        for head in ["a", "b"] {
            fold.add_line(&serde_json::to_string(&Record::Began { head: head.into() }).unwrap());
        }
        assert_eq!((fold.lessons, fold.head), (Some((2, "d2".to_owned())), Some("a".into())));
        assert!(fold.recalled.unwrap().contains("given to the session"));
    }
}
