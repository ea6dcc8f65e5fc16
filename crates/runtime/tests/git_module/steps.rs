//! What a user or an agent may do to a repository, step by step, for tests that need some dirt.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use crate::repo::Repo;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(usize, u8),
    Remove(usize),
    Link(usize),
    Chmod(usize),
    Stage(usize),
    Unstage(usize),
    Rename(usize, usize),
    Commit,
    Amend,
    Branch(u8),
    Ignore(usize),
}

const NAMES: [&str; 10] =
    ["a.txt", "dir/b.txt", "run.sh", "link", "new", "dir", "dir/deep/x", "odd\n\"name", "-dash", "kept.log"];

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    prop_oneof![
        4 => (name.clone(), any::<u8>()).prop_map(|(name, byte)| Step::Write(name, byte)),
        2 => name.clone().prop_map(Step::Remove),
        1 => name.clone().prop_map(Step::Link),
        1 => name.clone().prop_map(Step::Chmod),
        2 => name.clone().prop_map(Step::Stage),
        1 => name.clone().prop_map(Step::Unstage),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => Just(Step::Commit),
        1 => Just(Step::Amend),
        1 => any::<u8>().prop_map(Step::Branch),
        1 => name.prop_map(Step::Ignore),
    ]
}

/// Steps that do not apply (removing what is not there, staging nothing) are skipped: a history is whatever is left.
pub(crate) fn take(repo: &Repo, step: &Step) {
    let path = |name: usize| repo.path(NAMES[name]);
    let clear = |name: usize| {
        let place = path(name);
        for parent in place.ancestors().skip(1).take_while(|parent| *parent != repo.path("")) {
            if fs::symlink_metadata(parent).is_ok_and(|meta| !meta.is_dir()) {
                let _ = fs::remove_file(parent);
            }
        }
        let _ = fs::remove_file(&place);
        let _ = fs::remove_dir_all(&place);
        let _ = fs::create_dir_all(place.parent().unwrap());
    };
    let git = |args: &[&str]| {
        let _ = std::process::Command::new("git")
            .current_dir(repo.path(""))
            .args(args)
            .envs(crate::repo::environment(repo.home()))
            .output()
            .unwrap();
    };
    match step {
        Step::Write(name, byte) => {
            clear(*name);
            fs::write(path(*name), [*byte, b'\r', b'\n', 0, *byte]).unwrap();
        }
        Step::Remove(name) => {
            let _ = fs::remove_file(path(*name));
        }
        Step::Link(name) => {
            clear(*name);
            symlink("a.txt", path(*name)).unwrap();
        }
        Step::Chmod(name) => {
            if fs::symlink_metadata(path(*name)).is_ok_and(|meta| meta.is_file()) {
                repo.chmod(NAMES[*name], 0o755);
            }
        }
        Step::Stage(name) => git(&["add", "--", NAMES[*name]]),
        Step::Unstage(name) => git(&["rm", "-q", "--cached", "--", NAMES[*name]]),
        Step::Rename(from, to) => {
            let there = fs::symlink_metadata(path(*from)).is_ok_and(|meta| !meta.is_dir());
            if there && !path(*from).starts_with(path(*to)) && !path(*to).starts_with(path(*from)) {
                clear(*to);
                let _ = fs::rename(path(*from), path(*to));
            }
        }
        Step::Commit => git(&["commit", "-qm", "agent"]),
        Step::Amend => git(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]),
        Step::Branch(number) => git(&["checkout", "-q", "-B", &format!("b{}", number % 3)]),
        Step::Ignore(name) => fs::write(repo.path(".gitignore"), format!("{}\n", NAMES[*name])).unwrap(),
    }
}
