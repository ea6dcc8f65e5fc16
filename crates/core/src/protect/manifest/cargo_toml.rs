//! The keys of `Cargo.toml`.

use super::split::{Part, is_listed};

const PACKAGE: &str = "\
name version edition rust-version description documentation readme homepage repository license license-file keywords \
categories authors exclude include publish links default-run";
/// Work keys of a library, a binary or an example. Other keys decide whether its tests run.
const TARGET: &str = "\
name path crate-type crate_type proc-macro proc_macro required-features doc";

pub(super) fn part(path: &[&str]) -> Part {
    match path {
        ["package" | "project" | "workspace" | "lib" | "target"]
        | ["workspace", "package"]
        | ["package" | "project", "metadata"]
        | ["target", _] => Part::Split,
        ["package" | "project", key] | ["workspace", "package", key] if is_listed(PACKAGE, key) => Part::Work,
        ["package" | "project", "metadata", "docs"] | ["features" | "badges"] => Part::Work,
        [.., key] if is_dependencies(key) && matches!(path.len(), 1 | 3) && (path.len() == 1 || path[0] == "target") => {
            Part::Dependencies
        }
        ["workspace", "dependencies"] => Part::Dependencies,
        ["workspace", "members"] => Part::Members,
        ["workspace", "default-members"] => Part::DefaultMembers,
        ["bin" | "example"] => Part::Named,
        ["lib", key] | ["bin" | "example", _, key] if is_listed(TARGET, key) => Part::Work,
        _ => Part::Protected,
    }
}

fn is_dependencies(key: &str) -> bool {
    matches!(key, "dependencies" | "dev-dependencies" | "dev_dependencies" | "build-dependencies" | "build_dependencies")
}
