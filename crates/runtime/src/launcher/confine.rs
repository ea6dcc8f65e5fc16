//! The fallback without namespaces: Landlock lets a program write only to the paths that the plan makes writable.
//!
//! Landlock rules can only grant access, never exclude a path, so everything stays readable: **masks are not enforced**, and the
//! plan's copy-on-write folders are visible only at the path of their upper folder. The plan for this mode should use real paths.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::process::getuid;

use super::failure::{Failure, Step};
use super::target::{Target, give_up_inheritance};
use super::{hold, system};
use crate::launcher::plan::{Mount, ViewPlan};

/// The newest rights to request; an older kernel enforces those that it knows.
const VERSION: ABI = ABI::V6;

pub(super) fn run(plan: &Path, target: &Target) -> ExitCode {
    let confined = || -> Result<(), Failure> {
        let plan = hold::read_plan(plan)?;
        target.enter_folder()?;
        confine(&writable(&plan, getuid().is_root()))?;
        give_up_inheritance()?;
        target.die_with_parent()
    };
    let failure = confined().err().unwrap_or_else(|| target.execute());
    target.report(&failure).into()
}

/// The real paths that the plan makes writable.
fn writable(plan: &ViewPlan, as_root: bool) -> Vec<PathBuf> {
    let own = plan.mounts.iter().filter_map(|mount| match mount {
        Mount::Bind { from, write: true, .. } => Some(from.clone()),
        Mount::Overlay { upper, .. } => Some(upper.clone()),
        Mount::Scratch { at } => Some(at.clone()),
        Mount::Bind { write: false, .. } | Mount::Mask { .. } => None,
    });
    // /dev contains the machine's disks, which root can write to.
    let devices: &[&str] = if as_root { &system::DEVICES } else { &["/dev"] };
    own.chain(devices.iter().chain(&["/dev/shm", "/dev/pts", "/dev/ptmx"]).map(PathBuf::from))
        .filter(|path| path.exists())
        .collect()
}

fn confine(writable: &[PathBuf]) -> Result<(), Failure> {
    let refused = |error: &RulesetError| Failure::new(Step::Landlock, &io::Error::other(error.to_string()));
    let enforce = || -> Result<RulesetStatus, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(VERSION))?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)?
            .create()?
            .add_rules(beneath(Path::new("/"), AccessFs::from_read(VERSION)))?;
        for path in writable {
            let rights = if path.is_dir() { AccessFs::from_all(VERSION) } else { AccessFs::from_file(VERSION) };
            ruleset = ruleset.add_rules(beneath(path, rights))?;
        }
        Ok(ruleset.restrict_self()?.ruleset)
    };
    match enforce().map_err(|error| refused(&error))? {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(Failure::new(Step::Landlock, &io::Error::from_raw_os_error(libc::EOPNOTSUPP))),
    }
}

/// Blocks abstract Unix sockets, such as the desktop's. They are part of the network, which an open view shares. Does nothing if
/// the kernel cannot block them.
pub(super) fn leave_nameless_sockets() -> Result<(), Failure> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::AbstractUnixSocket);
    let enforced = ruleset.and_then(Ruleset::create).and_then(landlock::RulesetCreated::restrict_self);
    enforced.map(drop).map_err(|error| Failure::new(Step::Landlock, &io::Error::other(error.to_string())))
}

/// Skips a path that does not exist. It then stays unwritable, which is safe.
fn beneath(path: &Path, rights: BitFlags<AccessFs>) -> Option<Result<PathBeneath<PathFd>, RulesetError>> {
    PathFd::new(path).ok().map(|fd| Ok(PathBeneath::new(fd, rights)))
}
