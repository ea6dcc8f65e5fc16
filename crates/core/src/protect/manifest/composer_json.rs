//! The keys of `composer.json`.

use super::split::{Part, is_listed};

const WORK: &str = "\
$schema name description version type keywords homepage readme time license authors support funding require require-dev \
conflict replace provide suggest autoload minimum-stability prefer-stable bin archive abandoned";

pub(super) fn part(path: &[&str]) -> Part {
    match path {
        [key] if is_listed(WORK, key) => Part::Work,
        _ => Part::Protected,
    }
}
