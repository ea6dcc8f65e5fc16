//! `verdone config schema`.

use verdone_core::config::Config;

use super::Outcome;
use crate::terminal::print;

pub(super) fn run() -> Outcome {
    print(&format!("{:#}\n", Config::schema()))?;
    Ok(0)
}
