//! Determines which program a command needs and whether it exists. Used before a run starts.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use verdone_core::check::CommandSpec;

/// The program that a simple command starts with. `None` if only a shell could tell.
pub fn check_program(command: &CommandSpec) -> Option<String> {
    match command {
        CommandSpec::Argv(words) => words.first().filter(|word| !word.is_empty()).cloned(),
        CommandSpec::Shell(text) => {
            let word = text.split_whitespace().next()?;
            let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./+-".contains(&b));
            (plain && !SHELL_WORDS.contains(&word)).then(|| word.to_owned())
        }
    }
}

/// The program of a command, if it can be determined and is missing.
pub fn missing_program(command: &CommandSpec, root: &Path) -> Option<String> {
    let program = check_program(command)?;
    let path = std::env::var_os("PATH");
    (!program_exists(&program, path.as_deref(), root)).then_some(program)
}

/// Whether `name` can be executed: through `path` (the value of PATH), or from `cwd` if it contains a slash.
pub fn program_exists(name: &str, path: Option<&OsStr>, cwd: &Path) -> bool {
    find_program(name, path, cwd).is_some()
}

/// The file that starting `name` would execute.
pub fn find_program(name: &str, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.contains('/') {
        return Some(cwd.join(name)).filter(|file| is_executable(file));
    }
    std::env::split_paths(path?).map(|folder| cwd.join(folder).join(name)).find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Shell keywords and built-ins, which need no file.
const SHELL_WORDS: [&str; 42] = [
    ".", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "eval", "exec", "exit", "export",
    "false", "fg", "for", "function", "getopts", "hash", "if", "jobs", "kill", "local", "printf", "pwd", "read", "return", "set",
    "shift", "source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until", "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_simple_command_is_known() {
        for (text, program) in [
            ("cargo test -p x", Some("cargo")),
            ("  ./scripts/test.sh\n", Some("./scripts/test.sh")),
            ("make&&x", None),
            ("A=1 make", None),
            ("$MAKE", None),
            ("(make)", None),
            ("[ -f x ]", None),
            ("! grep x y", None),
            ("cd web && npm test", None),
            ("test -f x", None),
            ("'my tool' x", None),
            ("", None),
        ] {
            assert_eq!(check_program(&CommandSpec::Shell(text.to_owned())).as_deref(), program, "{text}");
        }
        let argv = CommandSpec::Argv(vec!["my tool".to_owned(), "x".to_owned()]);
        assert_eq!(check_program(&argv).as_deref(), Some("my tool"));
        assert_eq!(check_program(&CommandSpec::Argv(Vec::new())), None);
    }

    #[test]
    fn a_program_is_found_by_path_or_by_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (tool, note) = (dir.path().join("tool"), dir.path().join("note"));
        std::fs::write(&tool, "").unwrap();
        std::fs::write(&note, "").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&note, std::fs::Permissions::from_mode(0o644)).unwrap();
        let path = Some(dir.path().as_os_str());
        assert!(program_exists("tool", path, Path::new("/")));
        assert!(program_exists("./tool", None, dir.path()));
        for (name, path) in [("note", path), ("tool", None), ("absent", path), ("./absent", path), ("", path)] {
            assert!(!program_exists(name, path, Path::new("/")), "{name}");
        }
    }
}
