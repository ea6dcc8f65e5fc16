//! The keys of `pyproject.toml`. Tool tables are protected, except for the data of package managers.

use super::split::{Part, is_listed};

const POETRY: &str = "\
name version description license authors maintainers readme homepage repository documentation keywords classifiers \
packages include exclude extras scripts urls package-mode requires-poetry";
const SETUPTOOLS: &str = "\
packages py-modules package-data include-package-data exclude-package-data dynamic license-files zip-safe";

pub(super) fn part(path: &[&str]) -> Part {
    match path {
        ["project" | "build-system" | "tool"]
        | ["project", "entry-points"]
        | ["tool", "poetry" | "uv" | "pdm" | "hatch" | "setuptools" | "flit"]
        | ["tool", "poetry", "plugins" | "group"]
        | ["tool", "poetry", "group", _]
        | ["tool", "uv", "workspace"] => Part::Split,
        // Plugins that test tools and linters load automatically.
        ["project", "entry-points", group] | ["tool", "poetry", "plugins", group] => entry_points(group),
        ["tool", "poetry", "dependencies" | "dev-dependencies"] | ["tool", "poetry", "group", _, "dependencies"] => {
            Part::Dependencies
        }
        ["tool", "uv", "sources"] => Part::Overrides,
        ["tool", "uv", "workspace", "members"] => Part::Members,
        ["tool", "poetry", key] if is_listed(POETRY, key) => Part::Work,
        ["tool", "setuptools", key] if is_listed(SETUPTOOLS, key) => Part::Work,
        ["project", _]
        | ["dependency-groups"]
        | ["build-system", "requires" | "build-backend"]
        | ["tool", "poetry", "group", _, "optional"]
        | ["tool", "uv" | "pdm", "dev-dependencies"]
        | ["tool", "pdm" | "hatch", "version"]
        | ["tool", "hatch", "metadata"]
        | ["tool", "flit", "module"] => Part::Work,
        _ => Part::Protected,
    }
}

fn entry_points(group: &str) -> Part {
    let of_a_tool =
        ["pytest11", "flake8", "pylint", "mypy", "nose", "coverage", "tox", "nox"].iter().any(|tool| group.starts_with(tool));
    if of_a_tool { Part::Protected } else { Part::Work }
}
