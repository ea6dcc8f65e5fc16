//! Asks a program something: briefly, without input, and with little output.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use verdone_core::base::redact::Redactor;

use super::signal::Signals;
use super::{Ended, EnvPlan, Spawn, SpawnError, Stdin, run};

pub(crate) fn probe(argv: Vec<OsString>, cwd: &Path, patience: Duration) -> Result<Ended, SpawnError> {
    let redactor = Redactor::default();
    let spawn = Spawn {
        inside: None,
        argv,
        cwd: cwd.to_owned(),
        env: EnvPlan::default(),
        stdin: Stdin::Null,
        wall: Some(patience),
        idle: None,
        grace: Duration::from_secs(1),
        cap: 4096,
        keep: None,
        redactor: &redactor,
    };
    run(&spawn, &Signals::none(), &mut |_| {})
}
