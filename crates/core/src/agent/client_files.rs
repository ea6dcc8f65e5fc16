//! The files of agents' clients: logins, transcripts, and settings that take effect outside of a workspace.

use std::path::Path;

/// A client that may be started, by Verdone or by an agent's command.
#[derive(Debug)]
pub struct KnownClient {
    pub program: &'static str,
    /// Its logins below HOME.
    pub logins: &'static [&'static str],
}

pub const KNOWN_CLIENTS: [KnownClient; 10] = [
    KnownClient { program: "claude", logins: &[".claude/.credentials.json"] },
    KnownClient { program: "codex", logins: &[".codex/auth.json"] },
    KnownClient { program: "gemini", logins: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"] },
    KnownClient { program: "qwen", logins: &[".qwen/oauth_creds.json"] },
    KnownClient { program: "opencode", logins: &[".local/share/opencode/auth.json"] },
    KnownClient { program: "copilot", logins: &[".config/github-copilot", ".copilot"] },
    KnownClient { program: "cursor-agent", logins: &[".config/cursor/auth.json"] },
    KnownClient { program: "amp", logins: &[".local/share/amp/secrets.json"] },
    KnownClient { program: "goose", logins: &[".config/goose/secrets.yaml"] },
    KnownClient { program: "q", logins: &[".local/share/amazon-q"] },
];

/// What a client keeps between sessions, in a folder below HOME.
#[derive(Debug)]
pub struct ClientState {
    pub program: &'static str,
    pub folder: &'static str,
    /// The variable that moves the folder elsewhere.
    pub folder_variable: &'static str,
    /// The login file, in the folder.
    pub login: &'static str,
    /// Transcripts, in a folder for each project.
    pub transcripts: &'static str,
    /// The client's own notes, in the folder of a project.
    pub memory: &'static str,
    /// Beside the folder, or inside it if the folder is not at its usual place.
    pub answers: &'static str,
    /// Large and useless for another session.
    pub not_copied: &'static [&'static str],
}

/// The only client whose state Verdone shares with its views.
pub const CLIENT_STATE: ClientState = ClientState {
    program: "claude",
    folder: ".claude",
    folder_variable: "CLAUDE_CONFIG_DIR",
    login: ".credentials.json",
    transcripts: "projects",
    memory: "memory",
    answers: ".claude.json",
    not_copied: &["projects", "shell-snapshots", "debug", "file-history", "todos", "statsig"],
};

/// The key of the tokens in the client's login file.
pub const LOGIN_KEY: &str = "claudeAiOauth";

/// What a login file contains, and so how a renewed one is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginForm {
    /// Tokens below [`LOGIN_KEY`] with the time until which they are valid.
    Claude,
    /// Tokens below `tokens` with the account, and the time of the last renewal.
    Codex,
}

/// Codex's folder below HOME, the variable that moves it, and what is in it.
pub const CODEX_FOLDER: &str = ".codex";
pub const CODEX_FOLDER_VARIABLE: &str = "CODEX_HOME";
pub const CODEX_LOGIN: &str = "auth.json";
pub const CODEX_SESSIONS: &str = "sessions";

/// The client's settings in a project: shared, and the user's own.
pub const PROJECT_SETTINGS: &str = ".claude/settings.json";
pub const LOCAL_SETTINGS: &str = ".claude/settings.local.json";
/// Where a project's hook scripts usually are.
pub const PROJECT_HOOKS: &str = ".claude/hooks";
/// State files of session loops that other tools write.
pub const LOOP_STATE: &str = ".claude/data/ralph-loops";

/// The longest name of a project's folder. A longer one is cut and gets a hash.
const LONGEST_KEY: usize = 200;

impl ClientState {
    /// The client's name for the folder of a project, as observed with 2.1.325. Lengths count UTF-16 units.
    pub fn project_key(&self, path: &Path) -> String {
        let units: Vec<u16> = path.to_string_lossy().encode_utf16().collect();
        let plain = |unit: &u16| u8::try_from(*unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
        let key: String = units.iter().map(plain).collect();
        if key.len() <= LONGEST_KEY {
            return key;
        }
        let hash = units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
        format!("{}-{}", &key[..LONGEST_KEY], base_36(hash.unsigned_abs()))
    }
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
        let key = |path: &str| CLIENT_STATE.project_key(Path::new(path));
        assert_eq!(key("/home/u/my_app.v2"), "-home-u-my-app-v2");
        let long = format!("/tmp/wd-d/{}/{}", "long_näme😀.x".repeat(8), "b".repeat(120));
        let expected = format!("-tmp-wd-d-{}-{}-m47plh", "long-n-me---x".repeat(8), "b".repeat(85));
        assert_eq!(key(&long), expected);
    }
}
