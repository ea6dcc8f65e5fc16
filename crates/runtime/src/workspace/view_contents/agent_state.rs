//! State that an agent's client keeps between sessions. The transcripts of this project are really written. Transcripts of other
//! projects, settings, hooks, plugins, skills and memory are copy-on-write, so that an agent cannot plant anything for the user's
//! next session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use verdone_core::agent::client_files::{CLIENT_STATE, LoginForm};

use super::draft::Draft;
use super::masks::is_in_use;
use super::prepare::Step;
use super::{Credentials, written_at};

/// The client's folder and whether it is at its usual place; `None` if the view is not for that client.
fn state_folder(draft: &Draft<'_>) -> Option<(PathBuf, bool)> {
    if !is_in_use(draft, CLIENT_STATE.program) {
        return None;
    }
    let usual = draft.system.home.as_deref().unwrap_or(Path::new("/")).join(CLIENT_STATE.folder);
    Some(match draft.system.path_variable(CLIENT_STATE.folder_variable) {
        Some(folder) => (folder.clone(), folder == usual),
        None => (usual, true),
    })
}

pub(super) fn show(draft: &mut Draft<'_>) {
    let Some((folder, usual)) = state_folder(draft) else { return };
    let transcripts = transcripts(draft, &folder);
    let memory = transcripts.join(CLIENT_STATE.memory);
    // Create it if it is missing, or notes would really be written.
    draft.folder(&memory);
    let answers = if usual { folder.with_file_name(CLIENT_STATE.answers) } else { folder.join(CLIENT_STATE.answers) };
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
            draft.steps.push(Step::CopyFile { from: answers.clone(), to: copies.clone(), path: CLIENT_STATE.answers.into() });
            draft.bind(&copies.join(CLIENT_STATE.answers), &answers, true);
        }
    }
    draft.bind(&transcripts, &transcripts, true);
    if draft.request.abilities.overlay && !draft.has_mount_below(&memory) {
        draft.overlay(&memory, &memory);
    } else {
        draft.bind(&memory, &memory, false);
    }
}

/// Without mounts, the client uses a copy of its folder, in which the transcripts are a link to the real ones. It may
/// write only the transcripts for the workspace's own path. The user's sessions do not read notes that it leaves there.
pub(super) fn copy_in(draft: &mut Draft<'_>) {
    let Some((folder, usual)) = state_folder(draft) else { return };
    let transcripts = transcripts(draft, &folder);
    draft.folder(&transcripts);
    let copy = draft.request.scratch.join("client");
    draft.steps.push(Step::CopyFolder { from: folder.clone(), to: copy.clone(), except: not_copied() });
    let answers = if usual { folder.with_file_name(CLIENT_STATE.answers) } else { folder.join(CLIENT_STATE.answers) };
    if answers.is_file() {
        draft.steps.push(Step::CopyFile { from: answers, to: copy.clone(), path: CLIENT_STATE.answers.into() });
    }
    draft.steps.push(Step::Link { at: copy.join(CLIENT_STATE.transcripts), to: folder.join(CLIENT_STATE.transcripts) });
    draft.bind(&copy, &copy, true);
    draft.bind(&transcripts, &transcripts, true);
    draft.client_home = Some(copy);
}

/// Where the client writes a renewed login.
pub(super) fn credentials(draft: &Draft<'_>) -> Option<Credentials> {
    let (folder, usual) = state_folder(draft)?;
    let answers = if usual { folder.with_file_name(CLIENT_STATE.answers) } else { folder.join(CLIENT_STATE.answers) };
    // Without mounts, both are in the copy that the client uses.
    let inside = |own: &Path, name: &str| draft.client_home.as_ref().map_or_else(|| own.to_owned(), |copy| copy.join(name));
    let own = folder.join(CLIENT_STATE.login);
    let written = written_at(&draft.mounts, &inside(&own, CLIENT_STATE.login))?;
    let answers = written_at(&draft.mounts, &inside(&answers, CLIENT_STATE.answers)).map(|written| (written, answers));
    (written != own).then_some(Credentials { written, own, answers, form: LoginForm::Claude })
}

fn not_copied() -> Vec<OsString> {
    CLIENT_STATE.not_copied.iter().map(OsString::from).collect()
}

/// Where the client keeps the transcripts for this view's project.
fn transcripts(draft: &Draft<'_>, folder: &Path) -> PathBuf {
    folder.join(CLIENT_STATE.transcripts).join(CLIENT_STATE.project_key(&draft.root_at()))
}
