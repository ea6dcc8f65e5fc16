//! The actions of a call, independent of the tool: simple commands, and files read, written and deleted.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::path::{Place, absolute, normalise};
use super::tool::{ToolKind, kind_of};
use super::write::targets;
use super::{MatchedRule, PolicyContext, ToolCall, one_liner};
use verdone_shell::{Directory, Script, Simple, Variables, Word};

/// How a path is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    /// Deletes the path and everything below it.
    DeleteAll,
}

#[derive(Debug, Clone)]
pub(super) struct FileAct {
    pub(super) access: Access,
    /// `None` if the path is completely unknown.
    pub(super) place: Option<Place>,
    /// Whether the command that does it is known for certain.
    pub(super) certain: bool,
    pub(super) command: Option<MatchedRule>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Acts {
    pub(super) script: Arc<Script>,
    pub(super) files: Vec<FileAct>,
}

/// Caches the parsed command of a call: several questions are asked about a call, and parsing costs more than any answer.
#[derive(Debug, Clone, Default)]
pub struct ReadCommand(OnceLock<(String, Variables, Arc<Script>)>);

impl ReadCommand {
    fn get(&self, command: &str, variables: Variables) -> Arc<Script> {
        let read = || Arc::new(verdone_shell::parse(command, &variables));
        match self.0.get() {
            Some((known, with, script)) if known == command && *with == variables => Arc::clone(script),
            // A different call in the same context.
            Some(_) => read(),
            None => {
                let script = read();
                let _ = self.0.set((command.to_owned(), variables, Arc::clone(&script)));
                script
            }
        }
    }
}

impl Acts {
    /// Leaves out commands in the agent's own repositories below a temporary directory, whose history and settings need no protection.
    pub(super) fn on_the_users_repository(&self, context: &PolicyContext) -> Cow<'_, Self> {
        let points_git = |simple: &Simple| simple.assignments.iter().any(|set| set.name.starts_with("GIT_"));
        let commands = &self.script.commands;
        if commands.iter().any(points_git) || !commands.iter().any(|simple| is_elsewhere(simple, context)) {
            return Cow::Borrowed(self);
        }
        let mut acts = self.clone();
        Arc::make_mut(&mut acts.script).commands.retain(|simple| !is_elsewhere(simple, context));
        Cow::Owned(acts)
    }
}

fn is_elsewhere(simple: &Simple, context: &PolicyContext) -> bool {
    const POINTING: &[&str] = &["-C", "--git-dir", "--work-tree", "--global", "--system", "-f", "--file"];
    let points = |word: &Word| word.literal().is_none_or(|text| POINTING.contains(&text.split('=').next().unwrap_or_default()));
    let moved = match &simple.directory {
        Directory::Known(path) => !path.is_empty(),
        Directory::Unknown => false,
    };
    if !moved {
        return false;
    }
    let place = absolute(&Word::text(""), &simple.directory, context).map(|path| Place { path: normalise(&path, context) });
    simple.certain
        && !simple.words.iter().any(points)
        && place.is_some_and(|place| place.in_temp(context) && place.in_tree(context).is_none())
}

/// The absolute paths of a call, as written, for the caller to resolve symlinks in: the path itself if it exists, otherwise its
/// deepest existing directory followed by the rest.
pub fn paths_to_resolve(call: &ToolCall, context: &PolicyContext) -> Vec<String> {
    paths_and_changes(call, context).0
}

/// Like [`paths_to_resolve`], and whether the call visibly changes any file.
pub fn paths_and_changes(call: &ToolCall, context: &PolicyContext) -> (Vec<String>, bool) {
    let script = script(call, context);
    let targets = command_words(call, &script, context);
    let changes = targets.iter().any(|(access, _, _)| *access != Access::Read);
    let mut paths: Vec<String> = targets.into_iter().filter_map(|(_, path, _)| path).collect();
    // The directories in which commands run matter too.
    let moved = script.commands.iter().map(|simple| &simple.directory).filter(|at| **at != Directory::Known(String::new()));
    paths.extend(moved.filter_map(|at| absolute(&Word::text(""), at, context)).map(|path| path.trim_end_matches('/').to_owned()));
    paths.sort();
    paths.dedup();
    (paths, changes)
}

/// The files that a call certainly reads, normalised.
pub fn reads(call: &ToolCall, context: &PolicyContext) -> Vec<String> {
    paths_with(call, context, Access::Read)
}

/// The files that a call certainly writes, normalised.
pub fn writes(call: &ToolCall, context: &PolicyContext) -> Vec<String> {
    paths_with(call, context, Access::Write)
}

fn paths_with(call: &ToolCall, context: &PolicyContext, access: Access) -> Vec<String> {
    let files = gather(call, context).files.into_iter().filter(|file| file.access == access && file.certain);
    files.filter_map(|file| file.place).map(|place| place.path).filter(|path| !path.contains('…')).collect()
}

pub(super) fn gather(call: &ToolCall, context: &PolicyContext) -> Acts {
    let script = script(call, context);
    let files = command_words(call, &script, context).into_iter().map(|(access, path, origin)| FileAct {
        access,
        place: path.map(|path| Place { path: normalise(&path, context) }),
        certain: origin.as_ref().is_none_or(|(_, certain)| *certain),
        command: origin.map(|(found, _)| found),
    });
    let files = files.collect();
    Acts { script, files }
}

type Target = (Access, Option<String>, Option<(MatchedRule, bool)>);

fn command_words(call: &ToolCall, script: &Script, context: &PolicyContext) -> Vec<Target> {
    let of_tool = |access: Access| {
        let path = ["file_path", "notebook_path", "path"].iter().find_map(|field| call.text(field));
        let start = Directory::Known(String::new());
        let path = path.map(|path| absolute(&Word::text(expand_home(path, context)), &start, context));
        path.map(|path| (access, path, None)).into_iter().collect()
    };
    match kind_of(&call.tool) {
        ToolKind::Write => of_tool(Access::Write),
        ToolKind::Read => of_tool(Access::Read),
        ToolKind::Shell => script.commands.iter().flat_map(|simple| of_command(simple, context)).collect(),
        ToolKind::Agent | ToolKind::Other => Vec::new(),
    }
}

fn of_command(simple: &Simple, context: &PolicyContext) -> Vec<Target> {
    let found = MatchedRule { range: simple.range.clone(), text: simple.text.clone() };
    let origin = Some((found, simple.certain));
    let spelled = one_liner::targets(simple).into_iter().map(|(access, path)| (access, Word::text(expand_home(&path, context))));
    targets(simple)
        .into_iter()
        .chain(spelled)
        .map(|(access, word)| (access, absolute(&word, &simple.directory, context), origin.clone()))
        .collect()
}

fn script(call: &ToolCall, context: &PolicyContext) -> Arc<Script> {
    match (kind_of(&call.tool), call.text("command").or_else(|| call.text("cmd"))) {
        (ToolKind::Shell, Some(command)) => context.read.get(command, variables(context)),
        (ToolKind::Shell | ToolKind::Write | ToolKind::Read | ToolKind::Agent | ToolKind::Other, _) => Arc::default(),
    }
}

fn variables(context: &PolicyContext) -> Variables {
    let mut variables = Variables::new();
    variables.insert("PWD".to_owned(), context.cwd.clone());
    if let Some(home) = &context.home {
        variables.insert("HOME".to_owned(), home.clone());
    }
    if let Some(temp) = context.temp.first() {
        variables.insert("TMPDIR".to_owned(), temp.clone());
    }
    variables
}

fn expand_home(path: &str, context: &PolicyContext) -> String {
    match (path.strip_prefix('~'), &context.home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => path.to_owned(),
    }
}
