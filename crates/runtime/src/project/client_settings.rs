//! The settings files of a coding client on disk: where they are, how to read and replace
//! them, and whether their hooks respond. The core handles their content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::agent::client_files::{CLIENT_STATE, LOCAL_SETTINGS, PROJECT_SETTINGS};
use verdone_core::agent::client_variables::PROJECT_VARIABLE;
use verdone_core::hook::settings::{After, Before};

use crate::base::atomic::write_atomically;
use crate::process::output::Stream;
use crate::process::signal::Signals;
use crate::process::{self, EnvPlan, Exit, Moment, RUN_VARIABLE, Spawn, Stdin, redactor_from_environment};
use crate::project::HOME;
use crate::project::config_file::Environment;

/// The sessions that a settings file applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All sessions of the user.
    User,
    /// All users' sessions in this project: the file is committed.
    Project,
    /// The user's sessions in this project.
    Local,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];

    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// A settings file of Claude Code, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    pub path: PathBuf,
}

/// What exists on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    NoFolder,
    NoFile,
    Text(String),
}

impl FileState {
    pub fn as_before(&self) -> Before<'_> {
        match self {
            Self::NoFolder => Before::NoFolder,
            Self::NoFile => Before::NoFile,
            Self::Text(text) => Before::Text(text),
        }
    }

    /// The file's text, empty if there is no file.
    pub fn text(&self) -> &str {
        match self {
            Self::NoFolder | Self::NoFile => "",
            Self::Text(text) => text,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsFileError {
    #[error("the home directory is unknown, so the user's settings cannot be found")]
    NoHome,
    #[error("{} is not a regular file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is a link to a file that does not exist", .path.display())]
    LinkToNothing { path: PathBuf },
    #[error("{} is not UTF-8 text", .path.display())]
    NotText { path: PathBuf },
    #[error("{} changed in the meantime", .path.display())]
    Changed { path: PathBuf },
    #[error("cannot use {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl SettingsFile {
    /// `root` is the folder in which the client is started.
    pub fn new(scope: Scope, root: &Path, environment: &Environment) -> Result<Self, SettingsFileError> {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = match scope {
            Scope::User => {
                let folder = set(CLIENT_STATE.folder_variable).or_else(|| set("HOME").map(|home| home.join(CLIENT_STATE.folder)));
                root.join(folder.ok_or(SettingsFileError::NoHome)?).join("settings.json")
            }
            Scope::Project => root.join(PROJECT_SETTINGS),
            Scope::Local => root.join(LOCAL_SETTINGS),
        };
        Ok(Self { path })
    }

    /// Checks the type before opening: reading from a pipe, for example, could block forever.
    pub fn read(&self) -> Result<FileState, SettingsFileError> {
        let path = self.path.clone();
        match fs::metadata(&path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(SettingsFileError::NotAFile { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(&path).is_ok() {
                    return Err(SettingsFileError::LinkToNothing { path });
                }
                return Ok(if self.folder().exists() { FileState::NoFile } else { FileState::NoFolder });
            }
            Err(source) => return Err(SettingsFileError::Io { path, source }),
        }
        let bytes = fs::read(&path).map_err(|source| SettingsFileError::Io { path: path.clone(), source })?;
        String::from_utf8(bytes).map(FileState::Text).map_err(|_| SettingsFileError::NotText { path })
    }

    /// Replaces the version read before. Changes nothing if a client has written the file since.
    pub fn replace(&self, before: &FileState, after: &After) -> Result<(), SettingsFileError> {
        if self.read()? != *before {
            return Err(SettingsFileError::Changed { path: self.path.clone() });
        }
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.is_symlink());
        let done = match after {
            After::Text(text) => self.write(text),
            // The user has replaced the file with a link since we created it, so keep the link.
            After::NoFile | After::NoFolder if is_link => self.write("{}\n"),
            After::NoFile => fs::remove_file(&self.path),
            After::NoFolder => fs::remove_file(&self.path).and_then(|()| match fs::remove_dir(self.folder()) {
                Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
                _ => Ok(()),
            }),
        };
        done.map_err(|source| SettingsFileError::Io { path: self.path.clone(), source })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
        write_atomically(&self.path, text.as_bytes())
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Why a hook does not work.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("{0}")]
    NotStarted(#[from] process::SpawnError),
    #[error("it did not answer {event} within {seconds} s")]
    Late { event: &'static str, seconds: u64 },
    #[error("it ended with {exit} on {event}")]
    Failed { event: &'static str, exit: String },
    #[error("its answer to {event} is not JSON")]
    NotJson { event: &'static str },
    #[error("it did not deny a push, which it must")]
    NotDenied,
    #[error("cannot create a folder to try it in")]
    NoFolder(#[from] io::Error),
}

/// Runs a hook with sample input in an empty project, as the client would. It must exit successfully and print nothing or one JSON object.
pub fn probe(command: &[String], limit: Duration) -> Result<(), ProbeError> {
    let folder = tempfile::tempdir()?;
    SAMPLES.iter().try_for_each(|(event, fields)| ask(command, folder.path(), event, fields, limit).map(drop))
}

/// Also checks that the hook judges: in a project that uses Verdone, it must deny a command that no rule allows.
pub fn prove(command: &[String], limit: Duration) -> Result<(), ProbeError> {
    probe(command, limit)?;
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join(HOME))?;
    let (event, fields) = PUSH;
    let answer = ask(command, folder.path(), event, fields, limit)?.unwrap_or_default();
    let verdict = &answer["hookSpecificOutput"]["permissionDecision"];
    if verdict == "deny" { Ok(()) } else { Err(ProbeError::NotDenied) }
}

/// The hook's answer to one event.
fn ask(
    command: &[String],
    folder: &Path,
    event: &'static str,
    fields: &str,
    limit: Duration,
) -> Result<Option<serde_json::Value>, ProbeError> {
    let input = format!(
        r#"{{"session_id":"verdone-doctor","transcript_path":"/dev/null","cwd":{cwd},"hook_event_name":"{event}",{fields}}}"#,
        cwd = serde_json::Value::from(folder.to_string_lossy()),
    );
    let spawn = Spawn {
        inside: None,
        argv: command.iter().map(Into::into).collect(),
        cwd: folder.to_owned(),
        // Inside a run the installed hooks are silent, but this probe needs their answer.
        env: EnvPlan::default().with(PROJECT_VARIABLE, folder).without(RUN_VARIABLE),
        stdin: Stdin::Bytes(input.into_bytes()),
        wall: Some(limit),
        idle: None,
        grace: GRACE,
        cap: ANSWER_BYTES,
        keep: None,
        redactor: &redactor_from_environment(&[]),
    };
    let mut said = String::new();
    let ended = process::run(&spawn, &Signals::none(), &mut |moment| match moment {
        Moment::Line { stream: Stream::Stdout, text } => said = format!("{said}{text}\n"),
        Moment::Line { stream: Stream::Stderr, .. } | Moment::Tick => {}
    })?;
    let failed = |exit: String| Err(ProbeError::Failed { event, exit });
    match ended.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => return failed(format!("exit code {code}")),
        Exit::Signal(signal) => return failed(format!("signal {signal}")),
        Exit::Wall | Exit::Idle => return Err(ProbeError::Late { event, seconds: limit.as_secs() }),
        Exit::Terminal => return failed("an attempt to use the terminal".to_owned()),
        Exit::Interrupted(signal) => return failed(format!("{signal:?}")),
    }
    if said.trim().is_empty() {
        return Ok(None);
    }
    let answer = serde_json::from_str(&said).ok().filter(serde_json::Value::is_object);
    answer.map(Some).ok_or(ProbeError::NotJson { event })
}

const GRACE: Duration = Duration::from_millis(500);
const ANSWER_BYTES: u64 = 64 * 1024;

/// One guard and one observer event.
const SAMPLES: [(&str, &str); 2] = [
    (
        "PreToolUse",
        r#""permission_mode":"default","tool_name":"Read","tool_input":{"file_path":"/dev/null"},"tool_use_id":"toolu_doctor""#,
    ),
    ("SessionEnd", r#""reason":"other""#),
];

/// A command that the built-in rules always deny.
const PUSH: (&str, &str) = (
    "PreToolUse",
    r#""permission_mode":"default","tool_name":"Bash","tool_input":{"command":"git push origin main"},"tool_use_id":"toolu_doctor""#,
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn file(dir: &tempfile::TempDir) -> SettingsFile {
        SettingsFile { path: dir.path().join(".claude/settings.json") }
    }

    #[test]
    fn what_was_made_is_removed_and_what_was_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        assert_eq!(file.read().unwrap(), FileState::NoFolder);
        file.replace(&FileState::NoFolder, &After::Text("a".into())).unwrap();
        file.replace(&FileState::Text("a".into()), &After::NoFolder).unwrap();
        assert!(!dir.path().join(".claude").exists());
        fs::create_dir(dir.path().join(".claude")).unwrap();
        assert_eq!(file.read().unwrap(), FileState::NoFile);
        fs::write(dir.path().join(".claude/other"), "").unwrap();
        file.replace(&FileState::NoFile, &After::Text("a".into())).unwrap();
        file.replace(&FileState::Text("a".into()), &After::NoFolder).unwrap();
        assert!(dir.path().join(".claude/other").exists() && !file.path.exists(), "a folder that others use stays");
    }

    #[test]
    fn a_link_and_the_mode_of_its_file_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (file, real) = (file(&dir), dir.path().join("dotfiles.json"));
        fs::create_dir(dir.path().join(".claude")).unwrap();
        fs::write(&real, "{}").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&real, &file.path).unwrap();
        file.replace(&FileState::Text("{}".into()), &After::Text("{ }".into())).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "{ }");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        file.replace(&FileState::Text("{ }".into()), &After::NoFolder).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "{}\n", "a file that was moved is not ours to remove");
        assert!(fs::symlink_metadata(&file.path).unwrap().is_symlink());
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        fs::create_dir(dir.path().join(".claude")).unwrap();
        fs::write(&file.path, "{\"new\": 1}").unwrap();
        let error = file.replace(&FileState::Text("{}".into()), &After::Text("x".into())).unwrap_err();
        assert!(matches!(error, SettingsFileError::Changed { .. }), "{error}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "{\"new\": 1}");
    }

    #[test]
    fn what_is_no_regular_text_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        fs::create_dir_all(&file.path).unwrap();
        assert!(matches!(file.read(), Err(SettingsFileError::NotAFile { .. })));
        fs::remove_dir(&file.path).unwrap();
        symlink(dir.path().join("nothing"), &file.path).unwrap();
        assert!(matches!(file.read(), Err(SettingsFileError::LinkToNothing { .. })));
        fs::remove_file(&file.path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file.path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert!(matches!(file.read(), Err(SettingsFileError::NotAFile { .. })), "and nobody waits for a writer");
        fs::remove_file(&file.path).unwrap();
        fs::write(&file.path, b"\xff").unwrap();
        assert!(matches!(file.read(), Err(SettingsFileError::NotText { .. })));
    }

    #[test]
    fn a_hook_that_only_says_that_all_is_well_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("verdone");
        let prove_script = |text: &str| {
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            prove(&[path.display().to_string(), "hook".to_owned()], Duration::from_secs(20))
        };
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;
        let judging = format!("case \"$(cat)\" in *'git push'*) [ -d .verdone ] && echo '{deny}';; esac");
        assert!(prove_script(&judging).is_ok());
        assert!(matches!(prove_script("cat > /dev/null"), Err(ProbeError::NotDenied)));
        assert!(matches!(prove_script("cat > /dev/null; echo '{}'"), Err(ProbeError::NotDenied)));
        assert!(matches!(prove_script("cat > /dev/null; exit 1"), Err(ProbeError::Failed { .. })));
        assert!(matches!(prove_script("cat > /dev/null; echo well"), Err(ProbeError::NotJson { .. })));
    }

    #[test]
    fn files_are_where_the_client_looks_for_them() {
        let environment = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let path =
            |scope, pairs: &[(&str, &str)]| SettingsFile::new(scope, Path::new("/p"), &environment(pairs)).map(|file| file.path);
        assert_eq!(path(Scope::User, &[("HOME", "/h")]).unwrap(), Path::new("/h/.claude/settings.json"));
        assert_eq!(path(Scope::User, &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]).unwrap(), Path::new("/c/settings.json"));
        assert!(matches!(path(Scope::User, &[("HOME", "")]), Err(SettingsFileError::NoHome)));
        assert_eq!(path(Scope::Project, &[]).unwrap(), Path::new("/p/.claude/settings.json"));
        assert_eq!(path(Scope::Local, &[]).unwrap(), Path::new("/p/.claude/settings.local.json"));
    }
}
