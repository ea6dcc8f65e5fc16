//! Normalises paths: absolute, without `.` and `..`, through symlinks that the caller resolved.

use super::PolicyContext;
use verdone_shell::{Directory, Piece, Word};
use verdone_text::pattern::{PathPatterns, escape_but};

/// Names that rules protect in any folder.
pub(super) const PROTECTED: &[&str] = &[
    ".git",
    ".verdone",
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".cursor",
    ".mcp.json",
    ".claude.json",
    ".env",
    ".env.local",
    ".env.development",
    ".env.production",
    ".env.test",
];

/// A path in a call, as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute and normalised; an unknown end is written `…`.
    pub path: String,
}

impl Place {
    /// The path relative to the work tree, without a leading slash; `Some("")` is the tree itself.
    pub(super) fn in_tree(&self, context: &PolicyContext) -> Option<String> {
        below(&self.path, &context.root, context.ignore_case)
    }

    pub(super) fn in_temp(&self, context: &PolicyContext) -> bool {
        context.temp.iter().any(|temp| below(&self.path, temp, context.ignore_case).is_some_and(|rest| !rest.is_empty()))
    }

    /// Devices and pipes that store nothing.
    pub(super) fn is_harmless_device(&self) -> bool {
        let devices = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"];
        devices.contains(&self.path.as_str())
            || ["/dev/fd/", "/dev/tcp/", "/dev/udp/", "/dev/pts/"].iter().any(|start| self.path.starts_with(start))
            || (self.path.starts_with("/proc/") && self.path.contains("/fd/"))
    }

    /// The path, in lower case if the file system is case-insensitive.
    pub(super) fn folded(&self, context: &PolicyContext) -> String {
        fold(&self.path, context.ignore_case)
    }
}

/// The absolute path that a word stands for, still with `..` and symlinks; `None` if it is completely unknown.
pub(super) fn absolute(word: &Word, directory: &Directory, context: &PolicyContext) -> Option<String> {
    let text = match (word.literal(), word.prefix()) {
        (Some(text), _) => text.to_owned(),
        (None, known) if !known.is_empty() || matches!(word.pieces.first(), Some(Piece::Glob | Piece::One)) => {
            let parent = known.rfind('/').map_or("", |at| &known[..=at]);
            format!("{parent}…")
        }
        (None, _) => return None,
    };
    let base = match directory {
        Directory::Known(at) if at.starts_with('/') => at.clone(),
        Directory::Known(at) if at.is_empty() => context.cwd.clone(),
        Directory::Known(at) => format!("{}/{at}", context.cwd.trim_end_matches('/')),
        Directory::Unknown if text.starts_with('/') => String::new(),
        // In an unknown directory, a protected name may be the one in this tree.
        Directory::Unknown if text.split('/').any(|part| PROTECTED.contains(&part)) => context.root.clone(),
        Directory::Unknown => return None,
    };
    Some(if text.starts_with('/') { text } else { format!("{}/{text}", base.trim_end_matches('/')) })
}

/// Whether a place is a deletion pattern (`rm *.md`) that matches a path or one of its parent folders.
pub fn pattern_takes(place: &str, path: &str) -> bool {
    fn last(path: &str) -> &str {
        path.rsplit('/').next().unwrap_or_default()
    }
    if !place.contains(['*', '?']) {
        return false;
    }
    // The shell parser already expanded braces and replaced character classes with `?`.
    let Ok(pattern) = PathPatterns::new([escape_but(place, &['*', '?']).as_str()], false) else { return true };
    let takes = |path: &str| pattern.matches(path) && (last(place).starts_with('.') || !last(path).starts_with('.'));
    takes(path) || path.match_indices('/').filter(|(at, _)| *at > 0).any(|(at, _)| takes(&path[..at]))
}

/// Follows the symlinks that the caller resolved, then removes `.` and `..`.
pub fn normalise(path: &str, context: &PolicyContext) -> String {
    let path = through_proc(path, context);
    let resolved = context.resolved.get(path.as_str()).cloned().unwrap_or_else(|| {
        // Replace the longest prefix that was resolved.
        let cuts = path.char_indices().rev().filter(|(_, c)| *c == '/').map(|(at, _)| at);
        cuts.filter(|at| *at > 0)
            .find_map(|at| context.resolved.get(&path[..at]).map(|real| format!("{real}{}", &path[at..])))
            .unwrap_or_else(|| path.clone())
    });
    let mut parts: Vec<&str> = Vec::new();
    for part in resolved.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Paths through `/proc` that lead back to the process's directory.
fn through_proc(path: &str, context: &PolicyContext) -> String {
    let doors = [("/proc/self/cwd", context.cwd.as_str()), ("/proc/thread-self/cwd", &context.cwd), ("/proc/self/root", "")];
    let collapsed = collapse_slashes(path);
    for (door, target) in doors {
        if let Some(rest) = collapsed.strip_prefix(door)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return format!("{target}{rest}");
        }
    }
    collapsed
}

fn collapse_slashes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !out.ends_with('/') {
            out.push(c);
        }
    }
    out
}

/// The rest of a path below a directory.
pub(super) fn below(path: &str, directory: &str, ignore_case: bool) -> Option<String> {
    let (folded, directory) = (fold(path, ignore_case), fold(directory.trim_end_matches('/'), ignore_case));
    let rest = folded.strip_prefix(&directory)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest.to_owned()),
        None => rest.is_empty().then(String::new),
    }
}

pub(super) fn fold(text: &str, ignore_case: bool) -> String {
    if ignore_case { text.to_lowercase() } else { text.to_owned() }
}
