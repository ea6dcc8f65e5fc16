//! Facts from the disk that policy needs for one call: real paths, files with secrets, and the plan if the call would change it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use verdone_core::config::Config;
use verdone_core::hook::Briefing;
use verdone_core::policy::{
    Mode, OnScope, PlanFile, PolicyContext, ToolCall, ToolKind, kind_of, normalise, paths_and_changes, pattern_takes,
};

use crate::project::plan_file::{self, PlanLocation, PlanRequest};

use super::run_dirs::HookProject;
use super::story::StoryFile;

/// Longer chains of links must be loops.
const MOST_LINKS: usize = 40;

/// The call and its circumstances.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    pub mode: Mode,
    pub cwd: &'a str,
    pub call: Option<&'a ToolCall>,
    /// Whether the call still needs a verdict. Only then do the plan and the story's scope matter.
    pub deciding: bool,
    pub story: &'a StoryFile,
}

/// Collects the facts that the rules need for this call.
pub fn facts(home: &HookProject, config: &Config, asked: &CallContext<'_>) -> PolicyContext {
    let mut context = PolicyContext {
        mode: asked.mode,
        root: text(&home.top),
        cwd: text(&real_cwd(&home.top, Path::new(asked.cwd))),
        home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| text(&real(Path::new(&home)))),
        temp: temp_dirs(home.temp.as_deref()),
        on_unknown: config.policy.unknown,
        tools: config.policy.tools.clone(),
        ..PolicyContext::default()
    };
    let Some(call) = asked.call else { return context };
    let (paths, changes) = paths_and_changes(call, &context);
    if paths.is_empty() {
        return context;
    }
    context.ignore_case = home.root.join(".VERDONE").exists();
    let real_of = |path: &String| real_in(&home.top, Path::new(path)).unwrap_or_else(|| real(Path::new(path)));
    context.resolved = paths.into_iter().map(|path| (path.clone(), text(&real_of(&path)))).collect::<BTreeMap<_, _>>();
    let places: BTreeSet<String> = context.resolved.keys().map(|path| normalise(path, &context)).collect();
    let is_env = |path: &&String| path.rsplit('/').next().is_some_and(|name| name.to_lowercase().starts_with(".env"));
    context.env_files = places.iter().filter(is_env).filter(|path| Path::new(path).exists()).cloned().collect();
    match asked.mode {
        Mode::Run if asked.deciding && changes => {
            let story = asked.story.get();
            context.plans = plan(home, config, call, &places, story).into_iter().collect();
            let enforced = config.policy.on_scope() == OnScope::Enforced;
            context.scope = story.filter(|_| enforced).and_then(|story| story.scope(true));
        }
        // In their own sessions, users edit plans with the agent.
        Mode::Run | Mode::Interactive => {}
    }
    context
}

/// Opens the plan if one of the paths is the plan or contains it. Plans can be large and
/// few calls touch them. Commands are judged by the path alone.
fn plan(
    home: &HookProject,
    config: &Config,
    call: &ToolCall,
    places: &BTreeSet<String>,
    story: Option<&Briefing>,
) -> Option<PlanFile> {
    let touches = |path: &str| {
        let holds = |place: &String| path.starts_with(&format!("{}/", place.trim_end_matches('/'))) || pattern_takes(place, path);
        places.iter().any(|place| path == place || holds(place))
    };
    let shell = kind_of(&call.tool) == ToolKind::Shell;
    // A run names its plan; search for one only if it does not.
    if let Some(story) = story {
        return if touches(&story.plan) {
            opened(PlanLocation::new(PathBuf::from(&story.plan)), story.plan.clone(), shell)
        } else {
            None
        };
    }
    let looks_like_one = |place: &String| {
        place.ends_with(".md") || place.ends_with(".json") || place.contains(['*', '?']) || Path::new(place).is_dir()
    };
    if config.plan.is_none() && !places.iter().any(looks_like_one) {
        return None;
    }
    let request = PlanRequest {
        root: home.root.clone(),
        cwd: home.root.clone(),
        configured: config.plan.as_ref().map(PathBuf::from),
        ..PlanRequest::default()
    };
    let location = plan_file::find(&request).ok()?;
    let found = home.root.join(&location.plan);
    let path = text(&real_in(&home.top, &found).unwrap_or_else(|| real(&found)));
    if touches(&path) { opened(location, path, shell) } else { None }
}

fn opened(location: PlanLocation, path: String, shell: bool) -> Option<PlanFile> {
    if shell {
        return Some(PlanFile { path, ..PlanFile::default() });
    }
    let opened = plan_file::PlanFile::open(location).ok()?;
    Some(PlanFile::from_path(path, opened.document()))
}

fn real_cwd(top: &Path, cwd: &Path) -> PathBuf {
    real_in(top, cwd).or_else(|| fs::canonicalize(cwd).ok()).unwrap_or_else(|| cwd.to_owned())
}

fn temp_dirs(own: Option<&Path>) -> Vec<String> {
    let named = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let dirs = own.map(Path::to_owned).into_iter().chain(named).chain([PathBuf::from("/tmp"), PathBuf::from("/var/tmp")]);
    // With the root as a temporary directory, everything would be allowed.
    dirs.map(|dir| text(&real(&dir))).filter(|dir| dir.len() > 1).collect()
}

/// Resolves a path below a real folder, without checking the parents of that folder.
/// `None` if the path is not clearly below it or does not exist.
fn real_in(folder: &Path, path: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(folder).ok()?;
    let mut at = folder.to_owned();
    for part in below.components() {
        let Component::Normal(name) = part else { return None };
        at.push(name);
        if fs::symlink_metadata(&at).ok()?.is_symlink() {
            return None;
        }
    }
    Some(at)
}

/// Resolves a path even if its last part does not exist. Follows dangling links, because a write would follow them.
fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path };
        let parent = real_parent(parent);
        let whole = parent.join(name);
        match fs::read_link(&whole) {
            Ok(target) => path = parent.join(target),
            Err(_) => return whole,
        }
    }
    path
}

/// The deepest existing directory, with links resolved, plus the rest as written.
fn real_parent(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = fs::canonicalize(ancestor) {
            return path.strip_prefix(ancestor).map_or_else(|_| real.clone(), |rest| real.join(rest));
        }
    }
    path.to_owned()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn below_a_real_folder_only_plain_ways_are_short() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir(root.join("dir")).unwrap();
        fs::write(root.join("dir/a"), "").unwrap();
        symlink("dir", root.join("link")).unwrap();
        symlink("a", root.join("dir/b")).unwrap();
        assert_eq!(real_in(&root, &root.join("dir/a")), fs::canonicalize(root.join("dir/a")).ok());
        assert_eq!(real_in(&root, &root), Some(root.clone()));
        for other in ["link/a", "dir/b", "dir/../dir/a", "..", "dir/new", "dir/a/x"] {
            assert_eq!(real_in(&root, &root.join(other)), None, "{other}");
        }
        assert_eq!(real_in(&root, Path::new("/etc")), None);
    }

    #[test]
    fn links_are_followed_also_where_they_lead_to_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir(root.join("dir")).unwrap();
        symlink("/nowhere/secret", root.join("dangling")).unwrap();
        symlink(root.join("dir"), root.join("link")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(real(&root.join("dangling")), Path::new("/nowhere/secret"));
        assert_eq!(real(&root.join("link/new/deep.txt")), root.join("dir/new/deep.txt"));
        assert_eq!(real(&root.join("link")), root.join("dir"));
        assert_eq!(real(&root.join("dir/new.txt")), root.join("dir/new.txt"));
        assert_eq!(real(&root.join("loop")), root.join("loop"));
    }
}
