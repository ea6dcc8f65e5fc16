//! Everything that is measured, by name.

/// What is timed, or whose memory is measured. A size is a number of stories; events are lines in the journal of a dead run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Case {
    /// An empty program, linked like ours.
    Empty,
    /// `sh -c true`: what an iteration costs for the agent, and again for each check, whoever starts them.
    Shell,
    /// `verdone run --dry-run`.
    DryRun(usize),
    /// The Bash loop with zero iterations.
    LoopStart(usize),
    /// Write the plan and the file, `git add`, `git commit`, several times.
    Bare(usize),
    /// The Bash loop, several iterations.
    Loop(usize),
    /// `verdone run`, several iterations.
    Run(usize),
    /// `verdone status` with that many events.
    Status(usize),
    /// `verdone run`, one iteration, after a dead run.
    Recovery(usize),
    /// The same without an earlier run.
    FirstRun,
    /// The same after many finished runs.
    OldRuns,
    /// The peak memory of `Run`.
    RunMemory(usize),
    /// The peak memory of `Status`.
    StatusMemory(usize),
    /// The peak memory of `Recovery`.
    RecoveryMemory(usize),
}

/// Which build of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Build {
    Ours,
    /// The build given by `--against`.
    Other,
}

/// Cheap cases are repeated within a round, so that their medians are as reliable as those of the expensive ones.
pub(crate) const CHEAP_REPEATS: usize = 5;

impl Case {
    pub(crate) fn repeats(self) -> usize {
        match self {
            Self::Empty | Self::Shell | Self::DryRun(_) | Self::LoopStart(_) => CHEAP_REPEATS,
            Self::Bare(_)
            | Self::Loop(_)
            | Self::Run(_)
            | Self::Status(_)
            | Self::Recovery(_)
            | Self::FirstRun
            | Self::OldRuns
            | Self::RunMemory(_)
            | Self::StatusMemory(_)
            | Self::RecoveryMemory(_) => 1,
        }
    }

    /// Whether the case involves our program.
    pub(crate) fn has_builds(self) -> bool {
        match self {
            Self::Empty | Self::Shell | Self::LoopStart(_) | Self::Bare(_) | Self::Loop(_) => false,
            Self::DryRun(_)
            | Self::Run(_)
            | Self::Status(_)
            | Self::Recovery(_)
            | Self::FirstRun
            | Self::OldRuns
            | Self::RunMemory(_)
            | Self::StatusMemory(_)
            | Self::RecoveryMemory(_) => true,
        }
    }
}
