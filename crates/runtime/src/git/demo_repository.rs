//! Creates a repository with a first commit for the demo, independent of the user's settings.

use std::path::Path;

use super::command::Call;
use super::error::GitError;
use super::{DEADLINE, Git};

impl Git {
    /// Creates a repository with everything in `dir` on a `demo` branch, with its own identity and without signing or hooks.
    pub fn create_demo_repository(dir: &Path, message: &str) -> Result<(), GitError> {
        let settings = [
            ("user.name", "Verdone demo"),
            ("user.email", "demo@localhost"),
            ("commit.gpgSign", "false"),
            ("core.hooksPath", "/dev/null"),
        ];
        let call = |subcommand: &str| Call::plumbing(dir, subcommand, DEADLINE);
        call("init").args(["-q", "-b", "demo", "--template="]).run()?;
        for (name, value) in settings {
            call("config").args([name, value]).run()?;
        }
        call("add").args(["-A"]).run()?;
        call("commit").args(["-q", "-m", message]).run()?;
        Ok(())
    }
}
