//! Reads the agent's files back as a tree.

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::base::id::Oid;
use verdone_core::config::NetworkAccess;

use super::git_room::GitRoom;
use super::{OWN_BRANCH, READER, Workspaces};
use crate::git::{Alternates, AttemptTree, Git, GitError, PathSet, PrivateRepository, ReadBack, RepoPath};
use crate::launcher::Mount;
use crate::workspace::agent_space;
use crate::workspace::error::WorkspaceError;
use crate::workspace::view_contents::Tree;

/// The result of an attempt's files.
#[derive(Debug)]
pub struct ReadAttempt {
    pub tree: Oid,
    /// Why it cannot be committed.
    pub obstacle: Option<String>,
}

impl Workspaces {
    /// The tree of the agent's files, computed where nothing that the agent planted can run outside. `excluded` paths keep the
    /// base's version.
    pub fn read_attempt(&mut self, git: &Git, excluded: &PathSet, largest: u64) -> Result<ReadAttempt, WorkspaceError> {
        let open = self.open.as_mut().ok_or(WorkspaceError::NotOpen)?;
        let agent = open.agent.as_mut().ok_or(WorkspaceError::NotOpen)?;
        // A view is not used again after an error.
        let Some(begun) = agent.reader.take() else {
            let room = self.begin_reader()?;
            return self.read_in(room, git, excluded, largest);
        };
        match self.read_in(begun, git, excluded, largest) {
            // The view's holder was killed.
            Err(WorkspaceError::View(_) | WorkspaceError::Git(GitError::NotStarted(_))) => {
                let room = self.begin_reader()?;
                self.read_in(room, git, excluded, largest)
            }
            read => read,
        }
    }

    fn read_in(&mut self, mut room: GitRoom, git: &Git, excluded: &PathSet, largest: u64) -> Result<ReadAttempt, WorkspaceError> {
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let agent = open.agent.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let reader = open.held.path().join(READER);
        let (git_dir, objects) = (reader.join("git"), reader.join("objects"));
        if !git_dir.exists() {
            let new =
                PrivateRepository { at: &git_dir, branch: OWN_BRANCH, head: None, objects: Alternates::Direct, index: None };
            git.make_private_repository(&new)?;
        }
        fs::create_dir_all(&objects).map_err(WorkspaceError::io(&objects))?;
        let sealed = open.ability.view.works();
        let known = if sealed { self.seen_objects(&reader) } else { self.objects.clone() };
        let ignored: PathSet =
            open.ignored.iter().map(|entry| RepoPath::new(entry.path.as_os_str().as_encoded_bytes())).collect();
        let mut excluded = excluded.clone();
        let without_effect = agent_space::without_effect(&agent.tree, &self.below_top());
        excluded.extend(without_effect.iter().filter_map(|path| git.repo_path(&self.project.git_top.join(path))));
        excluded.extend(agent.copied_program.iter().cloned());
        let job = ReadBack {
            folder: &agent.tree,
            seen_at: if sealed { &self.project.git_top } else { &agent.tree },
            git_dir: &git_dir,
            index: &agent.index,
            scratch: &reader,
            objects: &objects,
            known_objects: &known,
            filters: room.filters()?,
            excluded: &excluded,
            ignored: &ignored,
            largest_file: if largest == 0 { u64::MAX } else { largest },
            opened: agent.opened.unwrap_or(agent.ready),
        };
        let AttemptTree { tree, obstacles } = git.read_tree_of(&job)?;
        git.import_large_files(&git_dir)?;
        self.keep_reader(room);
        Ok(ReadAttempt { tree, obstacle: obstacles.first().map(ToString::to_string) })
    }

    /// Starts building the view in which git reads the agent's files. It gets ready while the agent works.
    pub(super) fn begin_reader(&mut self) -> Result<GitRoom, WorkspaceError> {
        let scratch = self.new_folder("read")?;
        let open = self.open.as_ref().ok_or(WorkspaceError::NotOpen)?;
        let agent = open.agent.as_ref().ok_or(WorkspaceError::NotOpen)?;
        if !open.ability.view.works() {
            return Ok(GitRoom::without_view(open.filters.clone()));
        }
        let reader = open.held.path().join(READER);
        let mut mounts = vec![Mount::Bind { from: reader.clone(), at: reader.clone(), write: true }];
        for (from, at) in self.objects.iter().zip(self.seen_objects(&reader)) {
            fs::create_dir_all(&at).map_err(WorkspaceError::io(&at))?;
            mounts.push(Mount::Bind { from: from.clone(), at, write: false });
        }
        self.git_room(Tree::ReadOnly(agent.tree.clone()), &self.project.git_top, scratch, mounts, &NetworkAccess::Off)
    }

    pub(super) fn keep_reader(&mut self, room: GitRoom) {
        if let Some(agent) = self.open.as_mut().and_then(|open| open.agent.as_mut()) {
            agent.reader = Some(room);
        }
    }

    /// Where that view shows the real objects.
    fn seen_objects(&self, reader: &Path) -> Vec<PathBuf> {
        (0..self.objects.len()).map(|number| reader.join(format!("base-{number}"))).collect()
    }
}
