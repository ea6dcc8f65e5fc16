//! Private temporary folders, and what has to stay visible below the shared ones.

use std::fs;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::system::listed;
use crate::launcher::Mount;
use crate::workspace::paths::expand;

pub(super) fn private(draft: &mut Draft<'_>) {
    let request = draft.request;
    for (n, shared) in draft.system.temp.iter().enumerate() {
        // If the project is the shared folder itself, it is shown there instead.
        if request.at == shared {
            draft.note(format!(
                "{} is the project itself, so the workspace has no private temporary folder there.",
                shared.display()
            ));
            continue;
        }
        let own = request.scratch.join("temp").join(n.to_string());
        draft.folder_with_mode(&own, 0o1777);
        draft.bind(&own, shared, true);
        draft.temp.push(shared.clone());
    }
    if let Some(first) = draft.temp.first() {
        draft.temp_inside = first.clone();
    }
    draft.mounts.push(Mount::Scratch { at: PathBuf::from("/dev/shm") });
    for path in needed(draft) {
        draft.bind(&path.from, &path.at, false);
    }
}

struct Needed {
    from: PathBuf,
    at: PathBuf,
}

/// Tools on PATH, programs and paths from the settings that a private folder covers and no other mount shows.
fn needed(draft: &mut Draft<'_>) -> Vec<Needed> {
    let (request, system) = (draft.request, draft.system);
    let mut wanted: Vec<PathBuf> = system.variable("PATH").map(listed).unwrap_or_default();
    wanted.extend(system.program.clone());
    wanted.extend(request.agent.into_iter().flat_map(|agent| agent.programs.clone()));
    for text in &request.seal.read {
        let Some(path) = expand(text, system.home.as_deref(), request.root) else { continue };
        if fs::symlink_metadata(&path).is_err() {
            draft.note(format!("{text} in `seal.read` does not exist."));
        }
        wanted.push(path);
    }
    let mut all: Vec<Needed> = Vec::new();
    for path in wanted {
        // Resolve links, so that the target is visible under both names.
        let Ok(real) = fs::canonicalize(&path) else { continue };
        for at in [real.clone(), path] {
            let shown = |folder: &Path| at.starts_with(folder);
            let elsewhere = shown(request.at) || shown(request.checkout) || system.home.as_deref().is_some_and(shown);
            let known = all.iter().any(|needed| at.starts_with(&needed.at));
            let too_much =
                [request.state, request.scratch].iter().any(|secret| secret.starts_with(&at) || at.starts_with(secret));
            if draft.is_covered(&at) && !draft.temp.contains(&at) && !elsewhere && !known && !too_much {
                all.push(Needed { from: real.clone(), at });
            }
        }
    }
    all
}
