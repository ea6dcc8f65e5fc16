//! `init`: inspects a project and writes its `.verdone/`. Existing files are kept or backed up, never lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::agent::AgentKind;
use verdone_core::config::detect::{Detection, FOLDERS, ProjectFiles, Proposal, TEXTS, detect, is_python_test};
use verdone_core::config::template;
use verdone_core::lifecycle::TEMPLATES;

use crate::process::{self, Exit, missing_program, probe};
use crate::project::{FRESHER, HOME, home_gitignore};

/// How many names are read from one folder: enough for any real project.
const MOST_NAMES: usize = 4096;
/// How many bytes are read from one file.
const MOST_BYTES: u64 = 1024 * 1024;
/// How many Python tests are read to find out what runs them.
const MOST_TESTS: usize = 50;
/// Files that may configure pytest.
const PYTHON_SETTINGS: [&str; 3] = ["pyproject.toml", "setup.cfg", "tox.ini"];
/// Long enough for an interpreter to start.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub config: PathBuf,
    pub gitignore: PathBuf,
    /// The backup of the previous config.
    pub backup: Option<PathBuf>,
    /// The starter plan, if one was written.
    pub plan: Option<PathBuf>,
    /// The lifecycle scripts that were created.
    pub scripts: Vec<PathBuf>,
}

/// What to write.
#[derive(Debug, Default)]
pub struct Choices<'a> {
    pub plan: Option<&'a str>,
    /// Write a starter plan, because the project has none.
    pub starter_plan: bool,
    pub agent: Option<AgentKind>,
    pub gates: &'a [Proposal],
    /// Also write templates of lifecycle scripts.
    pub scripts: bool,
    /// Overwrite an existing config.
    pub force: bool,
}

/// A plan to fill in: it has no story, so that a run refuses it until somebody edits it.
const STARTER_PLAN: &str = "\
# Plan

<!-- One heading for each story, with a box for each task. The first line below shows the form:

## Add a --version flag

- [ ] `app --version` prints the version
- [ ] there is a test for it

A story is done when the project's checks pass. If it also has a line such as

Verification: `cargo test version`

that command must fail before the work and pass after it. -->
";

/// The name of the starter plan.
pub const STARTER_NAME: &str = "PLAN.md";

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    #[error("{} already exists", .path.display())]
    Exists { path: PathBuf },
    #[error("cannot read the folder {}", .path.display())]
    Look { path: PathBuf, source: io::Error },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Looks for checks and a plan in a folder.
pub fn detect_project(root: &Path) -> Result<Detection, InitError> {
    let mut names = BTreeSet::new();
    add_names(root, "", &mut names).map_err(|source| InitError::Look { path: root.to_path_buf(), source })?;
    for folder in FOLDERS {
        // An unreadable folder has nothing to propose.
        let _ = add_names(root, &format!("{folder}/"), &mut names);
    }
    let homes: Vec<String> =
        names.iter().filter(|name| name.starts_with(".ralph/PRD-") && name.ends_with('/')).cloned().collect();
    for home in homes {
        let _ = add_names(root, &home, &mut names);
    }
    let read = |name: &&str| Some(((*name).to_owned(), read_text(&root.join(name))?));
    let mut texts: BTreeMap<String, String> = TEXTS.iter().filter(|name| names.contains(**name)).filter_map(read).collect();
    let python = ["python3", "python"].into_iter().find(|program| exists(program, root));
    let pytest = find_pytest(root, &names, python);
    if pytest.is_none() {
        let python_tests = names.iter().map(String::as_str).filter(|name| is_python_test(name)).take(MOST_TESTS);
        texts.extend(python_tests.filter_map(|name| read(&name)));
    }
    Ok(detect(&ProjectFiles { names, texts, python, pytest }))
}

fn exists(program: &str, root: &Path) -> bool {
    process::program_exists(program, std::env::var_os("PATH").as_deref(), root)
}

/// The command that starts pytest. `None` if it is not installed or the project does not use Python.
fn find_pytest(root: &Path, names: &BTreeSet<String>, python: Option<&str>) -> Option<String> {
    if exists("pytest", root) {
        return Some("pytest".to_owned());
    }
    let is_python = |name: &String| name.ends_with(".py") || name.contains("pytest") || PYTHON_SETTINGS.contains(&name.as_str());
    let python = python.filter(|_| names.iter().any(is_python))?;
    // Remove the project's folder from the path first, so that nothing of the project is imported.
    let script = "import sys; sys.path.pop(0); import importlib.util; sys.exit(importlib.util.find_spec('pytest') is None)";
    let ended = probe([python, "-c", script].map(Into::into).to_vec(), root, PATIENCE).ok()?;
    (ended.exit == Exit::Code(0)).then(|| format!("{python} -m pytest"))
}

/// Fails early, before any question is asked.
pub fn check_free(root: &Path, force: bool) -> Result<(), InitError> {
    let path = root.join(HOME).join("config.toml");
    if !force && path.symlink_metadata().is_ok() { Err(InitError::Exists { path }) } else { Ok(()) }
}

/// The agents whose clients are installed, best known first.
pub fn find_agents(root: &Path) -> Vec<AgentKind> {
    let installed = |kind: &AgentKind| kind.program().is_some_and(|program| exists(program, root));
    AgentKind::ALL.into_iter().filter(installed).collect()
}

/// Removes proposals whose program is not installed, and notes them.
pub fn drop_missing(found: &mut Detection, root: &Path) {
    let (kept, missing): (Vec<_>, Vec<_>) = std::mem::take(&mut found.gates)
        .into_iter()
        .partition(|proposal| missing_program(&proposal.gate.command, root).is_none());
    for proposal in missing {
        let program = missing_program(&proposal.gate.command, root).unwrap_or_default();
        let gate = &proposal.gate;
        found.notes.push(format!(
            "{program} is not installed, so gate {:?} ({}) was not added",
            gate.name,
            gate.command.display()
        ));
    }
    found.gates = kept;
}

/// Writes `.verdone/config.toml`, `.verdone/.gitignore` and what else was chosen.
pub fn write(root: &Path, choices: &Choices<'_>) -> Result<Written, InitError> {
    let Choices { plan, starter_plan, agent, gates, scripts, force } = *choices;
    check_free(root, force)?;
    let home = root.join(HOME);
    fs::create_dir_all(&home).map_err(|source| InitError::Write { path: home.clone(), source })?;
    let (config, gitignore) = (home.join("config.toml"), home_gitignore::path(root));
    let backup = back_up(&config)?;
    replace(&config, template(plan, agent, gates).as_bytes())?;
    let lines = home_gitignore::with_own_lines(&gitignore);
    replace(&gitignore, lines.map_err(|source| InitError::Write { path: gitignore.clone(), source })?.as_bytes())?;
    let starter = root.join(STARTER_NAME);
    let starter = (starter_plan && starter.symlink_metadata().is_err()).then_some(starter);
    if let Some(path) = &starter {
        replace(path, STARTER_PLAN.as_bytes())?;
    }
    let scripts = if scripts { write_scripts(root, &home.join("hooks"))? } else { Vec::new() };
    Ok(Written { config, gitignore, backup, plan: starter, scripts })
}

/// Existing scripts stay. Scripts of fresher are not shadowed by empty ones of ours.
fn write_scripts(root: &Path, hooks: &Path) -> Result<Vec<PathBuf>, InitError> {
    let theirs = root.join(FRESHER).join("hooks");
    let mut written = Vec::new();
    for template in &TEMPLATES {
        let path = hooks.join(template.path);
        let taken = [&path, &theirs.join(template.path)].iter().any(|path| path.symlink_metadata().is_ok());
        if taken {
            continue;
        }
        let folder = path.parent().unwrap_or(hooks);
        fs::create_dir_all(folder).map_err(|source| InitError::Write { path: folder.to_path_buf(), source })?;
        put(&path, template.text.as_bytes(), 0o755)?;
        written.push(path);
    }
    Ok(written)
}

/// Copies an existing config to the first free `config.toml.bak`, `config.toml.bak2`, ...
fn back_up(config: &Path) -> Result<Option<PathBuf>, InitError> {
    let bytes = match fs::read(config) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(InitError::Write { path: config.to_path_buf(), source }),
    };
    let mut n = 1;
    loop {
        let name = if n == 1 { "config.toml.bak".to_owned() } else { format!("config.toml.bak{n}") };
        let path = config.with_file_name(name);
        match File::create_new(&path) {
            Ok(mut file) => {
                let kept = file.write_all(&bytes).and_then(|()| file.sync_all());
                kept.map_err(|source| InitError::Write { path: path.clone(), source })?;
                return Ok(Some(path));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
            Err(source) => return Err(InitError::Write { path, source }),
        }
    }
}

/// Replaces the file atomically: a reader sees either the old or the new bytes.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), InitError> {
    put(path, bytes, 0o644)
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), InitError> {
    let refused = |source| InitError::Write { path: path.to_path_buf(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".verdone-").tempfile_in(folder).map_err(refused)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(refused)?;
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode);
    file.as_file().set_permissions(mode).map_err(refused)?;
    file.persist(path).map_err(|error| refused(error.error))?;
    Ok(())
}

fn add_names(root: &Path, folder: &str, names: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))?.take(MOST_NAMES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_dir = entry.path().is_dir();
        names.insert(format!("{folder}{name}{}", if is_dir { "/" } else { "" }));
    }
    Ok(())
}

/// The text of a regular file. Does not block on a pipe or device with that name.
fn read_text(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::config::{Layer, resolve};

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        temp
    }

    #[test]
    fn what_is_found_is_written_and_read_back() {
        let temp = folder(&[
            ("package.json", r#"{"scripts":{"test":"node --test","lint":"eslint ."}}"#),
            (".ralph/PRD-2/plan.md", "### US-001: x\n"),
            ("tests/cli.bats", "@test x {}\n"),
        ]);
        let found = detect_project(temp.path()).unwrap();
        assert_eq!(found.plan.as_deref(), Some(".ralph/PRD-2/plan.md"));
        let written =
            write(temp.path(), &Choices { plan: found.plan.as_deref(), gates: &found.gates, ..Choices::default() }).unwrap();
        assert_eq!(written.backup, None);
        let text = fs::read_to_string(&written.config).unwrap();
        let config = resolve(&[Layer::from_toml("c", &text).unwrap()]).unwrap().config;
        let commands: Vec<_> = config.gate.iter().map(|gate| gate.command.display()).collect();
        assert_eq!(commands, ["npm test", "bats tests", "npm run lint"]);
        assert_eq!(config.plan, found.plan);
        assert_eq!(fs::read_to_string(written.gitignore).unwrap(), "runs/\nguardrails.md\nproposed-stories.md\n");
    }

    #[test]
    fn nothing_is_overwritten_without_force_and_force_keeps_every_copy() {
        let temp = folder(&[(".verdone/config.toml", "plan = \"mine.md\"\n"), (".verdone/.gitignore", "notes.txt")]);
        assert!(matches!(write(temp.path(), &Choices::default()), Err(InitError::Exists { .. })));
        assert_eq!(fs::read_to_string(temp.path().join(".verdone/config.toml")).unwrap(), "plan = \"mine.md\"\n");
        for n in ["", "2", "3"] {
            let backup = write(temp.path(), &Choices { force: true, ..Choices::default() }).unwrap().backup.unwrap();
            assert_eq!(backup, temp.path().join(format!(".verdone/config.toml.bak{n}")));
        }
        assert_eq!(fs::read_to_string(temp.path().join(".verdone/config.toml.bak")).unwrap(), "plan = \"mine.md\"\n");
        assert_eq!(
            fs::read_to_string(temp.path().join(".verdone/.gitignore")).unwrap(),
            "notes.txt\nruns/\nguardrails.md\nproposed-stories.md\n"
        );
    }

    #[test]
    fn scripts_are_written_ready_to_run_and_none_of_the_users_is_touched_or_hidden() {
        use std::os::unix::fs::PermissionsExt as _;

        let temp = folder(&[(".verdone/hooks/started", "mine"), (".fresher/hooks/finished", "theirs")]);
        assert_eq!(write(temp.path(), &Choices { force: true, ..Choices::default() }).unwrap().scripts, Vec::<PathBuf>::new());
        let with_scripts = Choices { scripts: true, force: true, ..Choices::default() };
        let written = write(temp.path(), &with_scripts).unwrap().scripts;
        let names = ["next_iteration", "post_iteration", "custom/notify-slack"];
        assert_eq!(written, names.map(|name| temp.path().join(".verdone/hooks").join(name)));
        assert!(written.iter().all(|path| fs::metadata(path).unwrap().permissions().mode() & 0o111 == 0o111));
        assert_eq!(fs::read_to_string(temp.path().join(".verdone/hooks/started")).unwrap(), "mine");
        assert_eq!(write(temp.path(), &with_scripts).unwrap().scripts, Vec::<PathBuf>::new());
    }

    #[test]
    fn odd_files_do_not_stop_the_look() {
        let temp = folder(&[("Makefile/x", ""), ("tests", "a file"), ("package.json", "\u{0}")]);
        fs::write(temp.path().join("Cargo.toml"), b"\xff\xfe").unwrap();
        let found = detect_project(temp.path()).unwrap();
        let commands: Vec<_> = found.gates.iter().map(|proposal| proposal.gate.command.display()).collect();
        assert_eq!(commands[0], "cargo test");
    }
}
