//! What Codex keeps between sessions. Its folder is copy-on-write. Its sessions of this project are really written, into a folder of
//! Verdone's that only views of this project show: Codex keeps the sessions of all projects together, and an agent must not reach those
//! of the user's other work.

use std::path::{Path, PathBuf};

use verdone_core::agent::client_files::{CODEX_FOLDER, CODEX_FOLDER_VARIABLE, CODEX_LOGIN, CODEX_SESSIONS, LoginForm};

use super::draft::{Draft, key};
use super::masks::is_in_use;
use super::prepare::Step;
use super::{Credentials, written_at};

const PROGRAM: &str = "codex";

/// The client's folder; `None` if the view is not for that client.
fn state_folder(draft: &Draft<'_>) -> Option<PathBuf> {
    if !is_in_use(draft, PROGRAM) {
        return None;
    }
    let usual = || draft.system.home.as_ref().map(|home| home.join(CODEX_FOLDER));
    draft.system.path_variable(CODEX_FOLDER_VARIABLE).or_else(usual)
}

/// Where the sessions of this project are really written.
fn sessions(draft: &Draft<'_>) -> PathBuf {
    draft.request.state.join("clients").join(PROGRAM).join(key(draft.request.checkout))
}

pub(super) fn show(draft: &mut Draft<'_>) {
    let Some(folder) = state_folder(draft) else { return };
    let (sessions, at) = (sessions(draft), folder.join(CODEX_SESSIONS));
    draft.folder(&sessions);
    draft.folder(&at);
    // Already copy-on-write if HOME is.
    if written_at(&draft.mounts, &folder).is_none() {
        if draft.request.abilities.overlay && !draft.has_mount_below(&folder) {
            draft.overlay(&folder, &folder);
        } else {
            let copy = copied(draft, &folder);
            draft.folder(&copy.join(CODEX_SESSIONS));
            draft.bind(&copy, &folder, true);
        }
    }
    draft.bind(&sessions, &at, true);
}

/// Without mounts, the client uses a copy of its folder, in which the sessions are a link to the real ones.
pub(super) fn copy_in(draft: &mut Draft<'_>) {
    let Some(folder) = state_folder(draft) else { return };
    let sessions = sessions(draft);
    draft.folder(&sessions);
    let copy = copied(draft, &folder);
    draft.steps.push(Step::Link { at: copy.join(CODEX_SESSIONS), to: sessions.clone() });
    draft.bind(&copy, &copy, true);
    draft.bind(&sessions, &sessions, true);
    draft.codex_home = Some(copy);
}

fn copied(draft: &mut Draft<'_>, folder: &Path) -> PathBuf {
    let copy = draft.request.scratch.join("codex");
    if folder.is_dir() {
        let except = [CODEX_SESSIONS, "archived_sessions", "log"].map(Into::into).to_vec();
        draft.steps.push(Step::CopyFolder { from: folder.to_owned(), to: copy.clone(), except });
    } else {
        draft.folder(&copy);
    }
    copy
}

/// Where the client writes a renewed login.
pub(super) fn credentials(draft: &Draft<'_>) -> Option<Credentials> {
    let own = state_folder(draft)?.join(CODEX_LOGIN);
    let inside = draft.codex_home.as_ref().map_or_else(|| own.clone(), |copy| copy.join(CODEX_LOGIN));
    let written = written_at(&draft.mounts, &inside)?;
    (written != own).then_some(Credentials { written, own, answers: None, form: LoginForm::Codex })
}
