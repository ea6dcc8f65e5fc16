//! State that an agent's client keeps between sessions. The transcripts of this project are really written. Transcripts of other
//! projects, settings, hooks, plugins, skills and memory are copy-on-write, so that an agent cannot plant anything for the user's
//! next session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::masks::is_in_use;
use super::prepare::Step;
use super::{Credentials, written_at};

/// The client's login file, in its folder.
const LOGIN: &str = ".credentials.json";
/// Where the client keeps transcripts, with a folder for each project.
const PROJECTS: &str = "projects";
/// Beside the client's folder, or inside it if the folder is not at its usual place.
const ANSWERS: &str = ".claude.json";
/// The client's own notes, in the folder of a project.
const MEMORY: &str = "memory";
/// The longest name of a project's folder. A longer one is cut and gets a hash.
const LONGEST_KEY: usize = 200;
/// Large and useless for another session.
const NOT_COPIED: [&str; 6] = [PROJECTS, "shell-snapshots", "debug", "file-history", "todos", "statsig"];

/// The client's folder and whether it is at its usual place; `None` if the view is not for that client.
fn claude(draft: &Draft<'_>) -> Option<(PathBuf, bool)> {
    if !is_in_use(draft, "claude") {
        return None;
    }
    let usual = draft.system.home.as_deref().unwrap_or(Path::new("/")).join(".claude");
    Some(match draft.system.path_variable("CLAUDE_CONFIG_DIR") {
        Some(folder) => (folder.clone(), folder == usual),
        None => (usual, true),
    })
}

pub(super) fn show(draft: &mut Draft<'_>) {
    let Some((folder, usual)) = claude(draft) else { return };
    let transcripts = transcripts(draft, &folder);
    let memory = transcripts.join(MEMORY);
    // Create it if it is missing, or notes would really be written.
    draft.folder(&memory);
    let answers = if usual { folder.with_file_name(ANSWERS) } else { folder.join(ANSWERS) };
    // Already copy-on-write if HOME is.
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
    draft.bind(&transcripts, &transcripts, true);
    if draft.request.abilities.overlay && !draft.has_mount_below(&memory) {
        draft.overlay(&memory, &memory);
    } else {
        draft.bind(&memory, &memory, false);
    }
}

/// Without mounts, the client is told to use a copy of its folder, in which the transcripts are a link to the real ones. It may
/// write only the transcripts for the workspace's own path. The user's sessions do not read notes that it leaves there.
pub(super) fn copy_in(draft: &mut Draft<'_>) {
    let Some((folder, usual)) = claude(draft) else { return };
    let transcripts = transcripts(draft, &folder);
    draft.folder(&transcripts);
    let copy = draft.request.scratch.join("client");
    draft.steps.push(Step::CopyFolder { from: folder.clone(), to: copy.clone(), except: not_copied() });
    let answers = if usual { folder.with_file_name(ANSWERS) } else { folder.join(ANSWERS) };
    if answers.is_file() {
        draft.steps.push(Step::CopyFile { from: answers, to: copy.clone(), path: ANSWERS.into() });
    }
    draft.steps.push(Step::Link { at: copy.join(PROJECTS), to: folder.join(PROJECTS) });
    draft.bind(&copy, &copy, true);
    draft.bind(&transcripts, &transcripts, true);
    draft.client_home = Some(copy);
}

/// Where the client writes a renewed login.
pub(super) fn credentials(draft: &Draft<'_>) -> Option<Credentials> {
    let (folder, usual) = claude(draft)?;
    let answers = if usual { folder.with_file_name(ANSWERS) } else { folder.join(ANSWERS) };
    // Without mounts, both are in the copy that the client uses.
    let inside = |own: &Path, name: &str| draft.client_home.as_ref().map_or_else(|| own.to_owned(), |copy| copy.join(name));
    let own = folder.join(LOGIN);
    let written = written_at(&draft.mounts, &inside(&own, LOGIN))?;
    let answers = written_at(&draft.mounts, &inside(&answers, ANSWERS)).map(|written| (written, answers));
    (written != own).then_some(Credentials { written, own, answers })
}

fn not_copied() -> Vec<OsString> {
    NOT_COPIED.map(OsString::from).to_vec()
}

/// Where the client keeps the transcripts for this view's project.
fn transcripts(draft: &Draft<'_>, folder: &Path) -> PathBuf {
    folder.join(PROJECTS).join(project_key(&draft.root_at()))
}

/// The client's name for the folder of a project, as observed with 2.1.325. Lengths count UTF-16 units.
fn project_key(path: &Path) -> String {
    let units: Vec<u16> = path.to_string_lossy().encode_utf16().collect();
    let plain = |unit: &u16| u8::try_from(*unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    let key: String = units.iter().map(plain).collect();
    if key.len() <= LONGEST_KEY {
        return key;
    }
    let hash = units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    format!("{}-{}", &key[..LONGEST_KEY], base_36(hash.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_projects_have_the_names_that_the_client_gives_them() {
        assert_eq!(project_key(Path::new("/home/u/my_app.v2")), "-home-u-my-app-v2");
        let long = format!("/tmp/wd-d/{}/{}", "long_näme😀.x".repeat(8), "b".repeat(120));
        let expected = format!("-tmp-wd-d-{}-{}-m47plh", "long-n-me---x".repeat(8), "b".repeat(85));
        assert_eq!(project_key(Path::new(&long)), expected);
    }
}
