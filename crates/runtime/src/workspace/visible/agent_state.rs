//! What an agent's client keeps between sessions. Transcripts are written for real; settings, hooks, plugins, skills and memory are
//! copy-on-write, so that an agent cannot plant anything for the next session of the user's.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::draft::{Draft, is_real_folder};
use super::masks::is_in_use;
use super::prepare::Step;
use super::{AgentInUse, Credentials, written_at};

/// Where the client keeps the login, in its folder.
const LOGIN: &str = ".credentials.json";
/// Where it keeps transcripts, one folder a project.
const PROJECTS: &str = "projects";
/// Beside its folder, or in it where that is not at its usual place.
const ANSWERS: &str = ".claude.json";
/// Notes of projects that are kept from writing one by one.
const MOST_MEMORIES: usize = 200;
/// Large, and of no use to another session.
const NOT_COPIED: [&str; 6] = [PROJECTS, "shell-snapshots", "debug", "file-history", "todos", "statsig"];

/// The client's folder, whether it is at its usual place, and whether the view is for that client at all.
fn claude(draft: &Draft<'_>) -> Option<(PathBuf, bool)> {
    let agent = draft.request.agent.filter(|_| is_in_use(draft, "claude"))?;
    Some(client_folder(agent, draft))
}

fn client_folder(agent: &AgentInUse, draft: &Draft<'_>) -> (PathBuf, bool) {
    let set = agent.environment.iter().find(|(name, _)| name == "CLAUDE_CONFIG_DIR").map(|(_, value)| PathBuf::from(value));
    let set = set.filter(|path| path.is_absolute()).or_else(|| draft.system.path_variable("CLAUDE_CONFIG_DIR"));
    let usual = draft.system.home.as_deref().unwrap_or(Path::new("/")).join(".claude");
    match set {
        Some(folder) => (folder.clone(), folder == usual),
        None => (usual, true),
    }
}

pub(super) fn show(draft: &mut Draft<'_>) {
    let Some((folder, usual)) = claude(draft) else { return };
    draft.folder(&folder.join(PROJECTS));
    let answers = if usual { folder.with_file_name(ANSWERS) } else { folder.join(ANSWERS) };
    // Copy-on-write already where HOME is.
    if written_at(&draft.mounts, &folder).is_none() {
        if draft.request.abilities.overlay && !draft.has_mount_below(&folder) {
            draft.overlay(&folder, &folder);
        } else {
            let copy = draft.request.scratch.join("client");
            draft.steps.push(Step::CopyFolder { from: folder.clone(), to: copy.clone(), except: not_copied() });
            draft.bind(&copy, &folder, true);
        }
        if usual && answers.is_file() {
            let copies = draft.request.scratch.join("client-answers");
            draft.folder(&copies);
            draft.steps.push(Step::CopyFile { from: answers.clone(), to: copies.clone(), path: ANSWERS.into() });
            draft.bind(&copies.join(ANSWERS), &answers, true);
        }
    }
    let projects = folder.join(PROJECTS);
    draft.bind(&projects, &projects, true);
    for memory in memories(draft, &projects) {
        if draft.request.abilities.overlay && !draft.has_mount_below(&memory) {
            draft.overlay(&memory, &memory);
        } else {
            draft.bind(&memory, &memory, false);
        }
    }
}

/// Without mounts the client is told to use a copy of its folder, in which the transcripts are a link to the real ones.
pub(super) fn copy_in(draft: &mut Draft<'_>) {
    let Some((folder, usual)) = claude(draft) else { return };
    let projects = folder.join(PROJECTS);
    draft.folder(&projects);
    let copy = draft.request.scratch.join("client");
    draft.steps.push(Step::CopyFolder { from: folder.clone(), to: copy.clone(), except: not_copied() });
    let answers = if usual { folder.with_file_name(ANSWERS) } else { folder.join(ANSWERS) };
    if answers.is_file() {
        draft.steps.push(Step::CopyFile { from: answers, to: copy.clone(), path: ANSWERS.into() });
    }
    draft.steps.push(Step::Link { at: copy.join(PROJECTS), to: projects.clone() });
    draft.bind(&copy, &copy, true);
    draft.bind(&projects, &projects, true);
    draft.client_home = Some(copy);
}

/// Where a renewed login of the client ends up.
pub(super) fn credentials(draft: &Draft<'_>) -> Option<Credentials> {
    let (folder, usual) = claude(draft)?;
    let answers = if usual { folder.with_file_name(ANSWERS) } else { folder.join(ANSWERS) };
    // Without mounts, both are in the copy that the client was told to use.
    let inside = |own: &Path, name: &str| draft.client_home.as_ref().map_or_else(|| own.to_owned(), |copy| copy.join(name));
    let own = folder.join(LOGIN);
    let written = written_at(&draft.mounts, &inside(&own, LOGIN))?;
    let answers = written_at(&draft.mounts, &inside(&answers, ANSWERS)).map(|written| (written, answers));
    (written != own).then_some(Credentials { written, own, answers })
}

fn not_copied() -> Vec<OsString> {
    NOT_COPIED.map(OsString::from).to_vec()
}

/// Notes that the client keeps for each project. That of this project is made where it is missing: it would be written for real.
fn memories(draft: &mut Draft<'_>, projects: &Path) -> Vec<PathBuf> {
    let own = projects.join(project_key(&draft.root_at())).join("memory");
    draft.folder(&own);
    let others = fs::read_dir(projects).into_iter().flatten().flatten().map(|entry| entry.path().join("memory"));
    let mut all: Vec<PathBuf> = others.filter(|path| *path != own && is_real_folder(path)).take(MOST_MEMORIES).collect();
    all.sort();
    all.push(own);
    all
}

/// How the client names the folder of a project.
fn project_key(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
