//! Plans of every format: what is read, what is edited, which story is next.

mod formats;
mod properties;
mod select;

use verdone_plan::Dialect;

/// Knows no word for a proof.
const DIALECT: Dialect = Dialect { read_proof: |text| Err(format!("{text:?} is unknown")), no_check_hint: "add a check" };
