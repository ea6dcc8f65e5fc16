//! Installs, finds and removes our hooks in a client's settings file. It edits text, not values: every byte of the user's stays, and
//! uninstalling restores exactly the file from before.
//!
//! Insertions go to the front of a list or object, followed by a comma, so that their end is unambiguous. If nothing surrounded them
//! (no file, an empty object), the text alone cannot show that later: see `Mark`.

mod cap;
mod container;
mod entry;
pub mod plugin;

use verdone_text::json::{Member, Node, Value, read_whole};
use verdone_text::position::{Fault, Lines, Problem};

use cap::Cap;
use container::{Fate, Layout, cut, without};
use entry::{EVENTS, Handler, Mark, Wanted};

/// The state before our hooks are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before<'a> {
    /// Even the settings file's folder does not exist.
    NoFolder,
    NoFile,
    Text(&'a str),
}

/// The state after our hooks are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// We created both the file and its folder.
    NoFolder,
    /// We created the file.
    NoFile,
    Text(String),
}

/// Our hooks in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The commands that are started, with arguments, without duplicates.
    pub commands: Vec<Vec<String>>,
    /// The number of events that have our hook.
    pub events: usize,
    /// Events that lack our hook.
    pub missing: Vec<&'static str>,
    /// The file disables all hooks (`disableAllHooks`).
    pub disabled: bool,
}

/// Whether we would later recognise hooks that start this program as ours.
pub fn is_recognisable(program: &str) -> bool {
    entry::is_our_program(program)
}

/// Adds our hooks, each starting `program`. Existing hooks of ours are updated; a text that already has all of them is unchanged.
pub fn install(before: Before<'_>, program: &str) -> Result<String, Problem> {
    let text = match before {
        Before::NoFolder => return Ok(format!("{}\n", own_file(program, Mark::NoFolder))),
        Before::NoFile => return Ok(format!("{}\n", own_file(program, Mark::NoFile))),
        Before::Text(text) => text,
    };
    if is_blank(text) {
        return Ok(format!("{text}{}", own_file(program, Mark::BlankFile)));
    }
    let root = read(text)?;
    if is_current(text, &root, program) {
        return Ok(text.to_owned());
    }
    match uninstall(text)? {
        After::NoFolder => install(Before::NoFolder, program),
        After::NoFile => install(Before::NoFile, program),
        After::Text(bare) if is_blank(&bare) => install(Before::Text(&bare), program),
        After::Text(bare) => {
            let root = read(&bare)?;
            put_in(&bare, &root, program).map_err(|fault| Lines::new(&bare).problem(&fault))
        }
    }
}

/// Removes our hooks.
pub fn uninstall(text: &str) -> Result<After, Problem> {
    if is_blank(text) {
        return Ok(After::Text(text.to_owned()));
    }
    let root = read(text)?;
    let mut fates: Vec<Fate> = root
        .members()
        .iter()
        .map(|member| if member.key == "hooks" { fate_of_hooks(text, &root, &member.node) } else { Fate::Stays })
        .collect();
    let mark = fates.iter().rev().find_map(|fate| if let Fate::Goes { mark, .. } = fate { Some(*mark) } else { None });
    let cap = told_cap(text, &root);
    for (member, fate) in root.members().iter().zip(&mut fates).filter(|(member, _)| member.key == "env") {
        *fate = cap.fate(text, &root, &member.node, mark.unwrap_or(Mark::Plain));
    }
    let fate = cut(text, &root, &root, fates);
    Ok(match fate {
        Fate::Stays => After::Text(text.to_owned()),
        Fate::Parts(parts) => After::Text(without(text, parts)),
        Fate::Goes { mark, emptied } => {
            let rest = without(text, vec![root.span.clone()]);
            match mark {
                Mark::NoFolder if is_blank(&rest) => After::NoFolder,
                Mark::NoFile if is_blank(&rest) => After::NoFile,
                Mark::BlankFile => After::Text(rest),
                Mark::NoFolder | Mark::NoFile | Mark::Plain | Mark::EmptyHooks | Mark::EmptyList => {
                    After::Text(without(text, vec![emptied]))
                }
            }
        }
    })
}

/// Finds our hooks; `None` if there are none.
pub fn installed(text: &str) -> Result<Option<Installed>, Problem> {
    if is_blank(text) {
        return Ok(None);
    }
    let root = read(text)?;
    let found = ours(text, &root);
    let mut commands: Vec<Vec<String>> = Vec::new();
    for (_, _, handler) in &found {
        let command: Vec<String> = std::iter::once(&handler.program).chain(&handler.args).cloned().collect();
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let has = |event: &str| found.iter().any(|(found, _, _)| *found == event);
    let missing: Vec<&'static str> = EVENTS.iter().map(|wanted| wanted.event).filter(|event| !has(event)).collect();
    let disabled = last(&root, "disableAllHooks").is_some_and(|node| &text[node.span.clone()] == "true");
    Ok((!found.is_empty()).then(|| Installed { commands, events: EVENTS.len() - missing.len(), missing, disabled }))
}

/// Editors and clients treat an empty file as an empty object.
fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

fn read(text: &str) -> Result<Node<'_>, Problem> {
    let root = read_whole(text).and_then(|root| match root.value {
        Value::Object(_) => Ok(root),
        Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Unread => {
            Err(Fault::new(root.span.start, format!("settings must be an object, not {}", root.kind())))
        }
    });
    root.map_err(|fault| Lines::new(text).problem(&fault))
}

/// The effective member: if a key occurs twice, clients use the last one.
fn last<'n, 'a>(object: &'n Node<'a>, key: &str) -> Option<&'n Node<'a>> {
    object.members().iter().rev().find(|member| member.key == key).map(|member| &member.node)
}

fn items<'n, 'a>(list: &'n Node<'a>) -> &'n [Node<'a>] {
    match &list.value {
        Value::List(items) => items,
        Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::Object(_) | Value::Unread => &[],
    }
}

/// A file that contains only our hooks.
fn own_file(program: &str, mark: Mark) -> String {
    let layout = Layout::of_own_file();
    let hooks = layout.member("hooks", &hooks_object(&layout, program, mark, Cap::Ours));
    format!("{{\n  {hooks},\n  {}\n}}", cap::member(&layout))
}

fn hooks_object(layout: &Layout, program: &str, mark: Mark, cap: Cap) -> String {
    let inner = layout.deeper();
    let events: Vec<String> = EVENTS.iter().map(|wanted| event_member(&inner, wanted, program, mark, cap)).collect();
    layout.block(&events)
}

fn event_member(layout: &Layout, wanted: &Wanted, program: &str, mark: Mark, cap: Cap) -> String {
    layout.member(wanted.event, &format!("[{}]", entry::group(layout, wanted, program, mark, cap)))
}

/// Inserts our hooks into a file that has none of them.
fn put_in(text: &str, root: &Node<'_>, program: &str) -> Result<String, Fault> {
    let mut inserts: Vec<(usize, String)> = Vec::new();
    let wrong = |node: &Node<'_>, what: &str, wanted: &str| {
        Err(Fault::new(node.span.start, format!("{what} is {}, but clients expect {wanted}", node.kind())))
    };
    let cap = Cap::wanted(root);
    inserts.extend(cap.insert(text, root));
    let layout = Layout::inside(text, root, root);
    let env = last(root, "env").is_none().then(|| cap::member(&layout));
    match last(root, "hooks") {
        None => {
            let hooks = layout.member("hooks", &hooks_object(&layout, program, Mark::Plain, cap));
            inserts.push(layout.insert(std::iter::once(hooks).chain(env).collect()));
        }
        Some(hooks) => {
            let Value::Object(members) = &hooks.value else { return wrong(hooks, "`hooks`", "an object") };
            inserts.extend(env.map(|env| layout.insert(vec![env])));
            let mark = if members.is_empty() { Mark::EmptyHooks } else { Mark::Plain };
            let layout = Layout::inside(text, root, hooks);
            let mut new = Vec::new();
            for wanted in &EVENTS {
                match last(hooks, wanted.event) {
                    None => new.push(event_member(&layout, wanted, program, mark, cap)),
                    Some(list) => {
                        let Value::List(groups) = &list.value else {
                            return wrong(list, &format!("`{}`", wanted.event), "a list");
                        };
                        let mark = if groups.is_empty() { Mark::EmptyList } else { Mark::Plain };
                        let layout = Layout::inside(text, root, list);
                        inserts.push(layout.insert(vec![entry::group(&layout, wanted, program, mark, cap)]));
                    }
                }
            }
            if !new.is_empty() {
                inserts.push(layout.insert(new));
            }
        }
    }
    inserts.sort_by_key(|(at, _)| *at);
    let mut out = text.to_owned();
    for (at, insert) in inserts.into_iter().rev() {
        out.insert_str(at, &insert);
    }
    Ok(out)
}

/// All effective handlers of ours, with event and matcher.
fn ours<'n>(text: &str, root: &'n Node<'_>) -> Vec<(&'n str, Option<String>, Handler)> {
    let mut found = Vec::new();
    for Member { key: event, node: list, .. } in last(root, "hooks").map(Node::members).unwrap_or_default() {
        for group in items(list) {
            let matcher = last(group, "matcher").map(|node| match &node.value {
                Value::Text(matcher) => matcher.to_string(),
                Value::Null | Value::Bool | Value::Number(_) | Value::List(_) | Value::Object(_) | Value::Unread => String::new(),
            });
            for handler in last(group, "hooks").map(items).unwrap_or_default() {
                found.extend(Handler::ours(text, handler).map(|handler| (event.as_ref(), matcher.clone(), handler)));
            }
        }
    }
    found
}

fn is_current(text: &str, root: &Node<'_>, program: &str) -> bool {
    let found = ours(text, root);
    let right = |wanted: &&Wanted| {
        let mut here = found.iter().filter(|(event, _, _)| *event == wanted.event);
        let first = here.next();
        let fits = |(_, matcher, handler): &(&str, Option<String>, Handler)| {
            matcher.as_deref() == wanted.matcher() && *handler == Handler::wanted(wanted, program)
        };
        first.is_some_and(fits) && here.next().is_none()
    };
    let has_cap = last(root, "env").is_some() && Cap::wanted(root) == Cap::Theirs;
    has_cap && found.len() == EVENTS.len() && EVENTS.iter().filter(right).count() == EVENTS.len()
}

/// Who set the limit, as encoded in our handlers.
fn told_cap(text: &str, root: &Node<'_>) -> Cap {
    let found = ours(text, root);
    let telling: Vec<&str> = found.iter().filter(|(_, _, handler)| handler.tells_cap).map(|(event, _, _)| *event).collect();
    Cap::told(&telling)
}

fn fate_of_hooks(text: &str, root: &Node<'_>, hooks: &Node<'_>) -> Fate {
    let fates = hooks.members().iter().map(|member| fate_of_event(text, root, &member.node)).collect();
    match cut(text, root, hooks, fates) {
        Fate::Goes { mark: Mark::EmptyHooks, emptied } => Fate::Parts(vec![emptied]),
        fate => fate,
    }
}

fn fate_of_event(text: &str, root: &Node<'_>, list: &Node<'_>) -> Fate {
    let fates = items(list).iter().map(|group| fate_of_group(text, root, group)).collect();
    match cut(text, root, list, fates) {
        Fate::Goes { mark: Mark::EmptyList, emptied } => Fate::Parts(vec![emptied]),
        fate => fate,
    }
}

/// A group goes with its last handler, because it means nothing without one. A group with more keys than ours is not ours and stays.
fn fate_of_group(text: &str, root: &Node<'_>, group: &Node<'_>) -> Fate {
    let Some(handlers) = last(group, "hooks") else { return Fate::Stays };
    let fates = items(handlers).iter().map(|handler| match Handler::ours(text, handler) {
        Some(handler) => Fate::Goes { mark: handler.mark, emptied: handler.span },
        None => Fate::Stays,
    });
    let mut keys: Vec<&str> = group.members().iter().map(|member| member.key.as_ref()).collect();
    keys.sort_unstable();
    match cut(text, root, handlers, fates.collect()) {
        Fate::Goes { emptied, .. } if !matches!(keys[..], ["hooks"] | ["hooks", "matcher"]) => Fate::Parts(vec![emptied]),
        fate => fate,
    }
}
