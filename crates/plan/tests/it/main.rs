//! Plans of every format: what is read, what is edited, which story is next.

mod formats;
mod properties;
mod select;

use verdone_plan::Dialect;

/// Knows no words of its own.
const DIALECT: Dialect = Dialect { read_proof: |text| Err(format!("{text:?} is unknown")), no_check_hint: "add a check" };
