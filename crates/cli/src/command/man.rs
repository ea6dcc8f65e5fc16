//! `verdone man`.

use std::fs;
use std::path::Path;

use clap::CommandFactory as _;

use super::{Context, Outcome};
use crate::args::{Cli, ManArgs};
use crate::error::CliError;
use crate::terminal::print_verbatim;

pub(super) fn run(args: &ManArgs, context: &Context) -> Outcome {
    if let Some(dir) = &args.dir {
        write_all(&context.start.join(dir))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        print_verbatim(&String::from_utf8_lossy(&page))?;
    }
    Ok(0)
}

fn write_all(dir: &Path) -> Result<(), CliError> {
    let refused = |error| CliError::error(format!("cannot write man pages into {}: {error}", dir.display()));
    fs::create_dir_all(dir).map_err(refused)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(refused)
}
