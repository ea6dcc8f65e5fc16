//! What a rule checks, and how certainly it matches.

use super::act::{Access, Acts, FileAct};
use super::arguments::Arguments;
use super::path::{Place, below};
use super::plan_text::{self, Protected};
use super::{MatchedRule, PolicyContext, ReadOnlyReason, ToolCall, ToolKind, kind_of, read_only};
use verdone_shell::{Simple, Word, git_call};
use verdone_text::pattern::{PathPatterns, PatternError, escape};

/// How certainly a rule matches, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    No,
    /// Some words are unknown; the known ones match.
    Maybe,
    Yes,
}

#[derive(Debug, Clone)]
pub enum Matcher {
    /// A git command, with any global options before it.
    Git {
        commands: &'static [&'static str],
        when: fn(&str, &[Word]) -> bool,
    },
    /// A program followed by these words in this order, ignoring options between them.
    Programs(&'static [&'static [&'static str]]),
    /// A program, subcommand and flags from a config file.
    Command(CommandPattern),
    /// A custom check of one simple command.
    Simple(fn(&Simple) -> Certainty),
    /// Globs from a config file, relative to the tree or absolute.
    Path {
        access: &'static [Access],
        globs: Vec<String>,
    },
    /// A kind of place.
    Place {
        access: &'static [Access],
        is: fn(&Place, &PolicyContext) -> bool,
    },
    Plan(Protected),
    /// Parts of a command line that were not parsed.
    Unread,
    /// Anything that may do more than read.
    BeyondLooking(ReadOnlyReason),
    /// A field of a tool's input.
    Input {
        field: &'static str,
        value: &'static str,
    },
    /// A command that is left running while the agent does something else.
    InBackground,
    /// The tool's name alone.
    Tool,
    /// Text in a prompt.
    Prompt(Vec<String>),
}

/// A command described in a config file; empty lists match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandPattern {
    pub programs: Vec<String>,
    pub subcommands: Vec<String>,
    pub flags: Vec<String>,
}

/// A match of a rule.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) certainty: Certainty,
    pub(super) command: Option<MatchedRule>,
    pub(super) path: Option<String>,
}

impl Matcher {
    /// The most certain match.
    pub(super) fn evaluate(&self, call: &ToolCall, acts: &Acts, context: &PolicyContext) -> Option<Hit> {
        let commands = |test: &dyn Fn(&Simple) -> Certainty| {
            let hits = acts.script.commands.iter().filter_map(|simple| {
                let certainty = test(simple).min(if simple.certain { Certainty::Yes } else { Certainty::Maybe });
                (certainty > Certainty::No).then(|| Hit { certainty, command: Some(found(simple)), path: None })
            });
            surest(hits)
        };
        let files = |access: &[Access], test: &dyn Fn(&Place) -> bool| {
            surest(acts.files.iter().filter(|file| access.contains(&file.access)).filter_map(|file| look_at(file, test)))
        };
        match self {
            Self::Git { commands: names, when } => commands(&|simple| git(simple, names, *when)),
            Self::Programs(table) => commands(&|simple| programs(simple, table)),
            Self::Command(pattern) => commands(&|simple| pattern.fits(simple)),
            Self::Simple(test) => commands(&|simple| test(simple)),
            Self::Path { access, globs } => paths(globs, access, acts, context),
            Self::Place { access, is } => files(access, &|place| is(place, context)),
            Self::Plan(protected) => plan_text::plan_edit(call, acts, context, *protected),
            Self::Unread => acts.script.unknown.iter().find(|unknown| unknown.why.is_unread()).map(|unknown| Hit {
                certainty: Certainty::Yes,
                command: Some(MatchedRule { range: unknown.range.clone(), text: unknown.why.describe().to_owned() }),
                path: None,
            }),
            Self::BeyondLooking(looking) => read_only::beyond(*looking, call, acts),
            Self::Input { field, value } => (call.text(field) == Some(value)).then(Hit::sure),
            Self::InBackground => is_in_background(call).then(Hit::sure),
            Self::Tool => Some(Hit::sure()),
            Self::Prompt(_) => None,
        }
    }
}

impl Hit {
    fn sure() -> Self {
        Self { certainty: Certainty::Yes, command: None, path: None }
    }
}

impl CommandPattern {
    fn fits(&self, simple: &Simple) -> Certainty {
        let Some((program, rest)) = simple.words.split_first() else { return Certainty::No };
        let mut known = 0;
        let mut certainty = Certainty::Yes;
        let mut count = |fit: Certainty, counts: bool| {
            known += usize::from(counts && fit == Certainty::Yes);
            certainty = certainty.min(fit);
        };
        if !self.programs.is_empty() {
            count(self.programs.iter().map(|name| word_is(&program.base(), name)).max().unwrap_or(Certainty::No), true);
        }
        if !self.subcommands.is_empty() {
            let first = Arguments::new(rest).operands(&["-C", "-c"]).first().copied();
            let fit = first.map_or(Certainty::No, |word| {
                self.subcommands.iter().map(|name| word_is(word, name)).max().unwrap_or(Certainty::No)
            });
            count(fit, true);
        }
        if !self.flags.is_empty() {
            let fits_flag = |word: &Word| self.flags.iter().any(|flag| word.prefix().split('=').next() == Some(flag));
            count(if rest.iter().any(fits_flag) { Certainty::Yes } else { Certainty::No }, false);
        }
        if certainty == Certainty::Maybe && known == 0 { Certainty::No } else { certainty }
    }
}

pub(super) fn found(simple: &Simple) -> MatchedRule {
    MatchedRule { range: simple.range.clone(), text: simple.text.clone() }
}

pub(super) fn surest(hits: impl Iterator<Item = Hit>) -> Option<Hit> {
    hits.reduce(|best, hit| if hit.certainty > best.certainty { hit } else { best })
}

/// The names that clients have for it. A subagent in the background is different: its end wakes the session.
fn is_in_background(call: &ToolCall) -> bool {
    let is_set = |field: &&str| call.input.get(*field).and_then(serde_json::Value::as_bool) == Some(true);
    kind_of(&call.tool) == ToolKind::Shell && ["run_in_background", "is_background"].iter().any(is_set)
}

/// Either git or its subcommand may be unknown, but not both.
fn git(simple: &Simple, names: &[&str], when: fn(&str, &[Word]) -> bool) -> Certainty {
    let Some(call) = git_call(&simple.words) else { return Certainty::No };
    // With these, git shows its help and does nothing else.
    if call.arguments.first().and_then(Word::literal) == Some("--help") || is_only_help(call.arguments) {
        return Certainty::No;
    }
    let fitting = names.iter().map(|name| (word_is(&call.command, name), name)).filter(|(fit, _)| *fit > Certainty::No);
    let command = fitting.filter(|(_, name)| when(name, call.arguments)).map(|(fit, _)| fit).max().unwrap_or(Certainty::No);
    let program = if call.is_git { Certainty::Yes } else { Certainty::Maybe };
    if command.max(program) == Certainty::Maybe {
        return Certainty::No;
    }
    command.min(program).min(if call.guessed { Certainty::Maybe } else { Certainty::Yes })
}

fn is_only_help(arguments: &[Word]) -> bool {
    matches!(arguments, [only] if only.literal() == Some("-h"))
}

fn programs(simple: &Simple, table: &[&[&str]]) -> Certainty {
    let Some((program, rest)) = simple.words.split_first() else { return Certainty::No };
    let program = program.base();
    table.iter().map(|words| program_is(&program, rest, words)).max().unwrap_or(Certainty::No)
}

fn program_is(program: &Word, rest: &[Word], words: &[&str]) -> Certainty {
    let Some((name, follow)) = words.split_first() else { return Certainty::No };
    let is_program = word_is(program, name);
    if is_program == Certainty::No {
        return Certainty::No;
    }
    // A program name alone matches any arguments.
    if follow.is_empty() {
        return if is_program == Certainty::Yes { Certainty::Yes } else { Certainty::No };
    }
    let operands = Arguments::new(rest).operands(&["-R", "--repo", "--repository", "-C", "--cwd"]);
    let is_rest = operands
        .windows(follow.len())
        .take(1)
        .any(|window| window.iter().zip(follow).all(|(word, name)| word.literal() == Some(name)));
    if is_rest { is_program } else { Certainty::No }
}

pub(super) fn word_is(word: &Word, name: &str) -> Certainty {
    match word.literal() {
        Some(text) if text == name => Certainty::Yes,
        None if word.could_be(name) => Certainty::Maybe,
        Some(_) | None => Certainty::No,
    }
}

fn look_at(file: &FileAct, test: &dyn Fn(&Place) -> bool) -> Option<Hit> {
    let place = file.place.as_ref()?;
    let certainty = if file.certain { Certainty::Yes } else { Certainty::Maybe };
    test(place).then(|| Hit { certainty, command: file.command.clone(), path: Some(place.path.clone()) })
}

/// Compiles the patterns only if the call accesses a file in a way that the rule covers.
fn paths(globs: &[String], access: &[Access], acts: &Acts, context: &PolicyContext) -> Option<Hit> {
    let mut files = acts.files.iter().filter(|file| access.contains(&file.access)).peekable();
    files.peek()?;
    // Settings with invalid patterns are rejected earlier. If one is still invalid, it matches every file.
    let patterns = FilePatterns::new(globs, context).ok();
    let fits = |path: &str| patterns.as_ref().is_none_or(|patterns| patterns.matches(path, context));
    surest(files.filter_map(|file| {
        // Deleting a folder deletes its content.
        let below = |place: &Place| file.access == Access::DeleteAll && fits(&format!("{}/…", place.path));
        look_at(file, &|place| fits(&place.path) || below(place))
    }))
}

/// File patterns in a setting: relative to the tree, absolute, or below `~/`.
#[derive(Debug)]
pub struct FilePatterns {
    in_tree: PathPatterns,
    absolute: PathPatterns,
}

impl FilePatterns {
    pub fn new(globs: &[String], context: &PolicyContext) -> Result<Self, PatternError> {
        let home = context.home.as_deref().map(|home| escape(home.trim_end_matches('/')));
        let (mut in_tree, mut absolute) = (Vec::new(), Vec::new());
        for glob in globs {
            match (glob.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => absolute.push(format!("{home}/{rest}")),
                _ if glob.starts_with('/') => absolute.push(glob.clone()),
                _ => in_tree.push(glob.as_str()),
            }
        }
        Ok(Self {
            in_tree: PathPatterns::new(in_tree, context.ignore_case)?,
            absolute: PathPatterns::new(absolute.iter().map(String::as_str), context.ignore_case)?,
        })
    }

    /// Matches a normalised path.
    pub fn matches(&self, path: &str, context: &PolicyContext) -> bool {
        let in_tree = below(path, &context.root, context.ignore_case);
        in_tree.is_some_and(|path| self.in_tree.matches(&path)) || self.absolute.matches(path)
    }
}
