//! Turns errors of the other crates into advice: each gets a kind, a position and the next command to type.

use std::fs;
use std::io;
use std::path::Path;

use verdone_core::agent::TurnOutcome;
use verdone_core::engine::prompt::PromptError;
use verdone_plan::{PlanError, Problem};
use verdone_runtime::audit::{AuditError, RerunError};
use verdone_runtime::base::finding::{FIRST_COMMIT, Finding};
use verdone_runtime::git::{CommitError, GitError};
use verdone_runtime::project::approval::ApprovalError;
use verdone_runtime::project::client_settings::SettingsFileError;
use verdone_runtime::project::plan_file::{FindError, PlanFileError};
use verdone_runtime::run::land::LandError;
use verdone_runtime::run::planning::PlanningError;
use verdone_runtime::run::prune::PruneError;
use verdone_runtime::run::recover::RecoverError;
use verdone_runtime::run::review::ReviewError;
use verdone_runtime::run::step::StepError;
use verdone_runtime::run::undo::UndoError;
use verdone_runtime::run::{RunError, RunPlanError};
use verdone_runtime::store::{JournalError, LockError};
use verdone_runtime::verify;
use verdone_runtime::verify::on_demand::VerifyError;
use verdone_runtime::workspace::WorkspaceError;

use super::{CliError, Kind, Place};

/// How many problems of a plan to print; the first ones are the ones to fix.
const SHOWN: usize = 20;

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(finding) => finding.into(),
            RunError::Find(error) => error.into(),
            RunError::Plan(error) | RunError::RunPlan(RunPlanError::Plan(error)) => error.into(),
            RunError::Git(error) | RunError::RunPlan(RunPlanError::Git(error)) => error.into(),
            RunError::Lock(error) => error.into(),
            RunError::Journal(error) => error.into(),
            RunError::Approval(error) => error.into(),
            RunError::Recover(error) => error.into(),
            RunError::Workspace(error) => error.into(),
            RunError::Settings(error) => error.into(),
            RunError::RunPlan(RunPlanError::Copy { ref source, .. }) | RunError::Io { ref source, .. } => {
                Self::error(error.to_string()).advice(source)
            }
        }
    }
}

impl From<AuditError> for CliError {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Unknown { .. } => Self::new(Kind::Usage, error.to_string()).hint("git log --oneline lists commits"),
            AuditError::Range { .. } => Self::new(Kind::Usage, error.to_string()).hint("verdone audit main..HEAD"),
            AuditError::NoCommit => Self::new(Kind::Human, error.to_string()).hint("verdone run PLAN"),
            AuditError::Git(error) => error.into(),
            AuditError::Journal(error) => error.into(),
        }
    }
}

impl From<RerunError> for CliError {
    fn from(error: RerunError) -> Self {
        match error {
            RerunError::Git(error) => error.into(),
            RerunError::Workspace(error) => error.into(),
            RerunError::Verify(error) => error.into(),
            RerunError::Outputs(ref source) => Self::error(error.to_string()).advice(source),
        }
    }
}

impl From<VerifyError> for CliError {
    fn from(error: VerifyError) -> Self {
        let (words, hints) = (error.to_string(), error.hints());
        match error {
            VerifyError::Project(error) => error.into(),
            VerifyError::Settings(error) => error.into(),
            VerifyError::Find(error) => error.into(),
            VerifyError::Plan(error) => error.into(),
            VerifyError::Approval(error) => error.into(),
            VerifyError::Git(GitError::Io { source, .. }) if is_read_only(&source) => {
                Self::error(format!("cannot write to the repository: {words}"))
                    .hint("verdone verify stores a snapshot of the files in .git: make it writable for the user who runs verdone")
            }
            VerifyError::Git(error) => error.into(),
            VerifyError::Workspace(error) => error.into(),
            VerifyError::Refused(finding) => finding.into(),
            VerifyError::NoStory { .. }
            | VerifyError::NoStage { .. }
            | VerifyError::NoCommit
            | VerifyError::NoRef { .. }
            | VerifyError::Unrelated { .. } => hints.into_iter().fold(Self::usage(words), Self::hint),
            VerifyError::Nothing { .. } => hints.into_iter().fold(Self::new(Kind::Human, words), Self::hint),
            VerifyError::Io { source, .. } => Self::error(words).advice(&source),
        }
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

impl From<WorkspaceError> for CliError {
    fn from(error: WorkspaceError) -> Self {
        let hints = error.hints();
        let made = match error {
            WorkspaceError::Git(error) => error.into(),
            WorkspaceError::Required { .. }
            | WorkspaceError::HostList { .. }
            | WorkspaceError::Filter { .. }
            | WorkspaceError::Hidden { .. }
            | WorkspaceError::HiddenNeedsView { .. }
            | WorkspaceError::Temp { .. } => Self::usage(error.to_string()),
            other => Self::error(other.to_string()),
        };
        hints.into_iter().fold(made, Self::hint)
    }
}

impl From<LandError> for CliError {
    fn from(error: LandError) -> Self {
        let hints = error.hints();
        let kind = match error {
            LandError::Git(error) | LandError::Commit(CommitError::Git(error)) => return error.into(),
            LandError::Journal(error) => return error.into(),
            LandError::Lock(error) => return error.into(),
            LandError::Workspace(error) => return error.into(),
            LandError::Step(error) => return error.into(),
            LandError::Verify(error) => return error.into(),
            LandError::Recover(error) => return error.into(),
            LandError::Interrupted { signal } => Kind::Stopped(signal),
            LandError::Nothing | LandError::Unknown { .. } | LandError::Several { .. } => Kind::Usage,
            LandError::Commit(CommitError::Refused { .. })
            | LandError::Refused { .. }
            | LandError::Conflict { .. }
            | LandError::Red { .. } => Kind::Human,
        };
        hints.into_iter().fold(Self::new(kind, error.to_string()), Self::hint)
    }
}

impl From<Finding> for CliError {
    fn from(finding: Finding) -> Self {
        finding.hints.into_iter().fold(Self::usage(finding.message), Self::hint)
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        let kind = match &error {
            GitError::Missing
            | GitError::TooOld
            | GitError::UnknownFormat { .. }
            | GitError::NotARepository { .. }
            | GitError::Bare { .. }
            | GitError::NotAWorkTree { .. }
            | GitError::NoIdentity { .. } => Kind::Usage,
            GitError::CheckedOut { .. } => Kind::Human,
            GitError::Failed { .. }
            | GitError::TimedOut { .. }
            | GitError::Unexpected { .. }
            | GitError::Locked { .. }
            | GitError::BranchMoved { .. }
            | GitError::LandedHalf { .. }
            | GitError::NotACheckpoint { .. }
            | GitError::NewerCheckpoint { .. }
            | GitError::NotStarted(_)
            | GitError::Io { .. } => Kind::Error,
        };
        let hint = error.hint();
        let mut made = Self::new(kind, error.to_string());
        if let GitError::Io { source, .. } = &error {
            made = made.advice(source);
        }
        hint.into_iter().fold(made, Self::hint)
    }
}

impl From<FindError> for CliError {
    fn from(error: FindError) -> Self {
        error.hints().into_iter().fold(Self::usage(error.to_string()), Self::hint)
    }
}

impl From<PlanFileError> for CliError {
    fn from(error: PlanFileError) -> Self {
        match error {
            PlanFileError::Plan(error) => error.into(),
            PlanFileError::Read { .. }
            | PlanFileError::NotAFile { .. }
            | PlanFileError::TooLarge { .. }
            | PlanFileError::NoSuchStory(_) => Self::usage(error.to_string()),
            PlanFileError::Write { ref source, .. } => Self::error(error.to_string()).advice(source),
        }
    }
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> Self {
        let more = error.problems.len().saturating_sub(SHOWN);
        let shown = PlanError { name: error.name.clone(), problems: error.problems.iter().take(SHOWN).cloned().collect() };
        let mut made = Self::usage(shown.to_string());
        if let [only] = &error.problems[..] {
            made.place = place(&error.name, only);
        }
        if more > 0 {
            made = made.hint(format!("and {more} more"));
        }
        let mut hints: Vec<String> = error.problems.into_iter().filter_map(|problem| problem.hint).collect();
        hints.dedup();
        hints.into_iter().take(3).fold(made, Self::hint)
    }
}

impl CliError {
    /// A problem in a file written by people, with its line.
    pub(crate) fn in_file(path: &Path, name: &str, problem: Problem) -> Self {
        let mut error = Self::usage(format!("{name}:{}:{}: {}", problem.line, problem.column, problem.message));
        error.place = place(&path.to_string_lossy(), &problem);
        error.hints.extend(problem.hint);
        error
    }
}

impl From<SettingsFileError> for CliError {
    fn from(error: SettingsFileError) -> Self {
        match &error {
            SettingsFileError::NoHome => Self::caused(Kind::Usage, error).hint("set HOME, or use --local"),
            SettingsFileError::NotAFile { .. } | SettingsFileError::NotText { .. } => Self::caused(Kind::Usage, error),
            SettingsFileError::LinkToNothing { .. } => Self::caused(Kind::Usage, error).hint("fix or remove the link"),
            SettingsFileError::Changed { .. } => {
                Self::caused(Kind::Error, error).hint("nothing was written; run the command again")
            }
            SettingsFileError::Io { .. } => Self::caused(Kind::Error, error),
        }
    }
}

/// The line with the problem, if the file can still be read.
fn place(name: &str, problem: &Problem) -> Option<Place> {
    let bytes = fs::read(name).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.lines().nth(problem.line.checked_sub(1)? as usize)?.to_owned();
    Some(Place { line: problem.line, column: problem.column, text })
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        match &error {
            LockError::Held { .. } => Self::error(error.to_string()).hint("wait for it (verdone log --follow), or stop it first"),
            LockError::Io { source, .. } => {
                Self::error(error.to_string()).advice(source).hint("a run must be able to write to the repository")
            }
        }
    }
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        match &error {
            JournalError::Newer { .. } => Self::error(error.to_string()).hint("use the newer verdone that wrote it"),
            JournalError::Broken { .. } => {
                Self::error(error.to_string()).hint("verdone run keeps the file and continues with the lines that can be read")
            }
            JournalError::Io { source, .. } => Self::error(error.to_string()).advice(source),
        }
    }
}

impl From<RecoverError> for CliError {
    fn from(error: RecoverError) -> Self {
        let message = error.to_string();
        match error {
            RecoverError::Open(error) => error.into(),
            RecoverError::Journal(error) => Self { message, ..error.into() },
            RecoverError::Git(error) => {
                let hints = Self::from(error).hints;
                let made = hints.into_iter().fold(Self::error(message), Self::hint);
                made.hint("nothing is lost; verdone run tries again")
            }
            RecoverError::Io { source, .. } => {
                Self::error(message).advice(&source).hint("nothing is lost; verdone run tries again")
            }
        }
    }
}

impl From<UndoError> for CliError {
    fn from(error: UndoError) -> Self {
        match error {
            UndoError::Git(error) | UndoError::Commit(CommitError::Git(error)) => error.into(),
            UndoError::Journal(error) => error.into(),
            UndoError::Lock(error) => error.into(),
            UndoError::Plan(error) => error.into(),
            UndoError::Land(error) => error.into(),
            UndoError::Nothing | UndoError::Unfinished { .. } => Self::usage(error.to_string()),
            UndoError::NoCommit { .. } => Self::usage(error.to_string()).hint("verdone undo --list"),
            UndoError::NotLast { .. } => {
                Self::usage(error.to_string()).hint("undo those first, or land the run and then undo this story")
            }
            UndoError::MovedOn { ref branch, .. } => {
                Self::new(Kind::Human, error.to_string()).hint(format!("git log {branch} shows what came later"))
            }
            UndoError::Conflict { .. } => Self::new(Kind::Human, error.to_string()).hint("revert it by hand: git revert COMMIT"),
            UndoError::Refused { ref hint, .. } => hint.iter().fold(Self::new(Kind::Human, error.to_string()), Self::hint),
            UndoError::Commit(CommitError::Refused { .. }) => Self::new(Kind::Human, error.to_string()),
        }
    }
}

impl From<PruneError> for CliError {
    fn from(error: PruneError) -> Self {
        match error {
            PruneError::Lock(error) => error.into(),
            PruneError::Journal(error) => error.into(),
            PruneError::Git(error) => error.into(),
            PruneError::Io { .. } | PruneError::Loops(_) => Self::error(error.to_string()),
        }
    }
}

impl From<StepError> for CliError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Git(error) => error.into(),
            StepError::Workspace(error) => error.into(),
            StepError::Verify(error) => error.into(),
            StepError::Plan(error) => error.into(),
            StepError::Prompt(error) => error.into(),
            StepError::CommitKept { .. } | StepError::ReviewBranch { .. } => Self::new(Kind::Human, error.to_string()),
            StepError::Io { .. } | StepError::NoAttempt(_) => Self::error(error.to_string()),
        }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        Self::usage(error.to_string()).hint("fix the template, or remove it to use the built-in one")
    }
}

impl From<ApprovalError> for CliError {
    fn from(error: ApprovalError) -> Self {
        Self::error(error.to_string())
    }
}

impl From<PlanningError> for CliError {
    fn from(error: PlanningError) -> Self {
        match error {
            PlanningError::Git(error) => error.into(),
            PlanningError::Workspace(error) => error.into(),
            PlanningError::NoCommit => Self::usage(error.to_string()).hint(FIRST_COMMIT),
            PlanningError::Approval(error) => error.into(),
            PlanningError::Prompt(error) => error.into(),
            PlanningError::Exists(_) => Self::usage(error.to_string()).hint("choose another file with --output"),
            PlanningError::EmptyRequest => Self::usage(error.to_string()).hint("say what you want: verdone plan new 'TEXT'"),
            PlanningError::NotAPlan { ref source, .. } => {
                let why = source.problems.first().map(|problem| format!("line {}: {}", problem.line, problem.message));
                why.into_iter().fold(Self::new(Kind::Human, error.to_string()), Self::hint)
            }
            PlanningError::NoIds { .. } => Self::new(Kind::Human, error.to_string())
                .hint("give the stories ids (`- [ ] US-001: Title`) and save it as your plan"),
            PlanningError::Aborted(_) | PlanningError::Skipped => Self::new(Kind::Human, error.to_string()),
            PlanningError::Settings(error) => error.into(),
            PlanningError::Turn(ref outcome) => unplanned(outcome, error.to_string()),
            PlanningError::Io { .. } => Self::error(error.to_string()),
        }
    }
}

/// The error for a turn that produced no plan. The turn changed nothing.
fn unplanned(outcome: &TurnOutcome, message: String) -> CliError {
    let (kind, hint) = match outcome {
        TurnOutcome::NotRunnable { .. } | TurnOutcome::Auth { .. } => (Kind::Usage, Some("verdone doctor checks the agent")),
        // Their reasons say what to do.
        TurnOutcome::UnknownModel { .. } => (Kind::Usage, None),
        TurnOutcome::Billing { .. } => (Kind::Limit, None),
        TurnOutcome::UsageLimit { .. } => (Kind::Limit, Some("nothing was changed; try again after the reset")),
        TurnOutcome::Budget { .. } => {
            (Kind::Limit, Some("limits.cost_usd in .verdone/config.toml also limits the cost of planning"))
        }
        TurnOutcome::ApiError { retryable: true, .. } => {
            (Kind::Error, Some("the service failed, not your request; nothing was changed, try again later"))
        }
        TurnOutcome::ApiError { .. } => (Kind::Error, Some("nothing was changed; check agent.claude in verdone config show")),
        TurnOutcome::MaxTurns { .. } => (Kind::Error, Some("ask for less at once, or check agent.claude.args")),
        TurnOutcome::Refused { .. } => (Kind::Error, Some("rephrase the request")),
        TurnOutcome::GuardDead { .. } => (Kind::Error, Some("verdone doctor checks the client and its hooks")),
        TurnOutcome::TimedOut { .. } => {
            (Kind::Error, Some("limits.turn_time in .verdone/config.toml sets how long a turn may take"))
        }
        TurnOutcome::Idle { .. } => {
            (Kind::Error, Some("limits.idle_time in .verdone/config.toml sets how long it may be silent"))
        }
        TurnOutcome::Looping { .. } => {
            (Kind::Error, Some("limits.identical_calls in .verdone/config.toml sets how often it may repeat a call"))
        }
        TurnOutcome::Ended | TurnOutcome::Crashed { .. } | TurnOutcome::Interrupted => (Kind::Error, None),
    };
    hint.into_iter().fold(CliError::new(kind, message), CliError::hint)
}

impl From<verify::VerifyError> for CliError {
    fn from(error: verify::VerifyError) -> Self {
        match error {
            verify::VerifyError::Git(error) => error.into(),
            verify::VerifyError::Workspace(error) => error.into(),
            verify::VerifyError::Output(_) => Self::error(error.to_string()),
        }
    }
}

impl From<ReviewError> for CliError {
    fn from(error: ReviewError) -> Self {
        let (hints, text) = (error.hints(), error.to_string());
        let told = match error {
            ReviewError::Land(error) => return error.into(),
            ReviewError::Git(error) => return error.into(),
            ReviewError::Workspace(error) => return error.into(),
            ReviewError::Verify(error) => return error.into(),
            ReviewError::Plan(error) => return error.into(),
            ReviewError::Recover(error) => return error.into(),
            ReviewError::Journal(error) => return error.into(),
            ReviewError::Lock(error) => return error.into(),
            ReviewError::Interrupted { signal, .. } => Self::new(Kind::Stopped(signal), text),
            ReviewError::Nothing | ReviewError::NotWaiting { .. } | ReviewError::NotInPlan { .. } | ReviewError::Unborn => {
                Self::usage(text)
            }
            ReviewError::Conflict { .. } | ReviewError::Red { .. } | ReviewError::Hook { .. } | ReviewError::Needed { .. } => {
                Self::new(Kind::Human, text)
            }
            ReviewError::Commit(_) | ReviewError::RunPlan(_) | ReviewError::Io(_) => Self::error(text),
        };
        hints.into_iter().fold(told, Self::hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_that_cannot_be_written_is_called_that() {
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let error = VerifyError::Git(GitError::Io { path: "/r/.git".into(), source: kind.into() });
            let (words, hints) = CliError::from(error).into_words();
            assert!(words.starts_with("cannot write to the repository: /r/.git: "), "{words}");
            assert!(hints[0].contains("make it writable"), "{hints:?}");
        }
    }
}
