//! `verdone config schema`.

use verdone_core::config::Config;

use super::Outcome;
use crate::terminal::print_verbatim;

pub(super) fn run() -> Outcome {
    print_verbatim(&format!("{:#}\n", Config::schema()))?;
    Ok(0)
}
