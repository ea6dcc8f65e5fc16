//! Workspaces for checks without a run.

use std::fs;
use std::path::Path;

use verdone_core::config::Config;
use verdone_runtime::git::Git;
use verdone_runtime::project::{Project, find_git_top};
use verdone_runtime::workspace::{CheckNeeds, StateFolder, Workspaces};

use crate::repository::{commit_all, run_git, said, write};
use crate::world::as_everybody;

#[test]
fn workspaces_for_checks_are_opened_when_they_are_needed_and_any_number_at_once() {
    as_everybody(|world| {
        let top = world.path("project");
        run_git(&top, &["init", "-q", "-b", "main"]);
        write(&top.join("text"), "one\n");
        let first = commit_all(&top, "first");
        write(&top.join("text"), "two\n");
        let second = commit_all(&top, "second");
        let git = Git::open(&top).unwrap();
        let project = Project::find(&top, &find_git_top(&top).unwrap()).unwrap();
        let mut config = Config::default();
        let state = world.path("state").join("all");
        config.workspace.state = Some(state.to_str().unwrap().into());
        let mut all = ["verify", "verify"].map(|purpose| Workspaces::for_checks(&project, &config, &git, purpose).unwrap());
        assert!(!state.exists(), "nothing is written before it is needed");
        let [one, two] = &mut all;
        let places = [(one, &first, "one\n"), (two, &second, "two\n")].map(|(spaces, commit, text)| {
            (spaces.checks_on(&git, &git.tree_of(commit).unwrap(), commit, CheckNeeds::default()).unwrap(), text)
        });
        let listed = StateFolder::open(config.workspace.state.as_deref(), &top, |_| None).unwrap().list().unwrap();
        assert!(listed.len() == 2 && listed.iter().all(|stored| stored.in_use && stored.owner.run.is_none()), "{listed:?}");
        for (place, text) in &places {
            let (said, _) =
                said(place.inside.clone(), &place.cwd, place.env.clone(), "cat text; echo mine > text; ls -A .verdone 2>&1");
            assert!(said.starts_with(text), "{said}");
        }
        drop((places, all));
        let left = |folder: &str| fs::read_dir(Path::new(&state).join(folder)).unwrap().count();
        assert_eq!((left("workspaces"), left("trash")), (0, 0));
        assert_eq!(fs::read_to_string(top.join("text")).unwrap(), "two\n");
    });
}
