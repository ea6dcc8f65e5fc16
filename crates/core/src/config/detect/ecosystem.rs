//! Build tools whose commands are the same in every project.

use super::{ProjectFiles, Proposals};
use crate::check::Stage::{Correctness, Quality};

pub(super) fn cargo(listing: &ProjectFiles, found: &mut Proposals) {
    if !listing.has("Cargo.toml") {
        return;
    }
    let workspace = has_section(listing.text("Cargo.toml"), "workspace");
    let (scope, all) = if workspace { (" --workspace", " --all") } else { ("", "") };
    found.propose("test", "cargo", Correctness, &format!("cargo test{scope}"), "Found Cargo.toml.");
    let clippy = format!("cargo clippy{scope} --all-targets -- -D warnings");
    found.propose("clippy", "cargo", Quality, &clippy, "Found Cargo.toml.");
    found.propose("fmt", "cargo", Quality, &format!("cargo fmt{all} --check"), "Found Cargo.toml.");
}

pub(super) fn python(listing: &ProjectFiles, found: &mut Proposals) {
    let pyproject = listing.text("pyproject.toml");
    let runner = listing.first(&["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"]).map_or("", |lock| match lock {
        "uv.lock" => "uv run ",
        "poetry.lock" => "poetry run ",
        "pdm.lock" => "pdm run ",
        _ => "pipenv run ",
    });
    if has_section(listing.text("tox.ini"), "tox") || has_section(pyproject, "tool.tox") {
        found.propose("test", "tox", Correctness, &format!("{runner}tox"), "Found a tox configuration.");
    } else if let Some(because) = pytest_settings(listing).or_else(|| python_test(listing)) {
        match (&listing.pytest, unittest(listing)) {
            _ if !runner.is_empty() => found.propose("test", "pytest", Correctness, &format!("{runner}pytest"), because),
            (Some(pytest), _) => found.propose("test", "pytest", Correctness, pytest, because),
            (None, Some(unittest)) => found.propose("test", "unittest", Correctness, &unittest, because),
            (None, None) => found.note(format!("{because} pytest is not installed, so it is not proposed as a gate.")),
        }
    }
    if listing.first(&["ruff.toml", ".ruff.toml"]).is_some() || has_section(pyproject, "tool.ruff") {
        found.propose("lint", "ruff", Quality, &format!("{runner}ruff check"), "Found a ruff configuration.");
    }
    if listing.first(&["mypy.ini", ".mypy.ini"]).is_some() || has_section(pyproject, "tool.mypy") {
        found.propose("mypy", "mypy", Quality, &format!("{runner}mypy ."), "Found a mypy configuration.");
    }
}

/// The command for Python's `unittest`, if all tests are written for it and are in one folder.
fn unittest(listing: &ProjectFiles) -> Option<String> {
    let python = listing.python.filter(|_| pytest_settings(listing).is_none())?;
    let tests: Vec<&str> = listing.names.iter().map(String::as_str).filter(|name| is_python_test(name)).collect();
    let is_its_own = |name: &&str| listing.text(name).contains("unittest") && !listing.text(name).contains("pytest");
    let folder = |name: &&str| name.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let first = folder(tests.first()?);
    // Its discovery only finds `test*.py`.
    let is_found = |name: &&str| name.rsplit('/').next().is_some_and(|file| file.starts_with("test"));
    if !tests.iter().all(|name| is_its_own(name) && is_found(name) && folder(name) == first) {
        return None;
    }
    Some(match first {
        None => format!("{python} -m unittest"),
        Some(folder) if listing.has(&format!("{folder}/__init__.py")) => {
            format!("{python} -m unittest discover -s {folder} -t .")
        }
        Some(folder) => format!("{python} -m unittest discover -s {folder}"),
    })
}

fn pytest_settings(listing: &ProjectFiles) -> Option<String> {
    if let Some(file) =
        listing.first(&["pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py", "tests/conftest.py", "test/conftest.py"])
    {
        return Some(format!("Found {file}."));
    }
    if has_section(listing.text("pyproject.toml"), "tool.pytest") {
        return Some("Found a pytest configuration in pyproject.toml.".to_owned());
    }
    if has_section(listing.text("setup.cfg"), "tool:pytest") {
        return Some("Found a pytest configuration in setup.cfg.".to_owned());
    }
    if has_section(listing.text("tox.ini"), "pytest") {
        return Some("Found a pytest configuration in tox.ini.".to_owned());
    }
    None
}

fn python_test(listing: &ProjectFiles) -> Option<String> {
    listing.names.iter().find(|name| is_python_test(name)).map(|name| format!("Found {name}."))
}

/// Whether pytest would collect a file of this name.
pub fn is_python_test(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    has_extension(file, "py") && (file.starts_with("test_") || file.ends_with("_test.py"))
}

pub(super) fn go(listing: &ProjectFiles, found: &mut Proposals) {
    if !listing.has("go.mod") {
        return;
    }
    found.propose("test", "go", Correctness, "go test ./...", "Found go.mod.");
    found.propose("vet", "go", Quality, "go vet ./...", "Found go.mod.");
    if let Some(file) = listing.first(&[".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"]) {
        found.propose("lint", "go", Quality, "golangci-lint run", format!("Found {file}."));
    }
}

pub(super) fn jvm(listing: &ProjectFiles, found: &mut Proposals) {
    let gradle = listing.first(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]);
    if let Some(file) = gradle {
        let program = if listing.has("gradlew") { "./gradlew" } else { "gradle" };
        found.propose("test", "gradle", Correctness, &format!("{program} --no-daemon test"), format!("Found {file}."));
    }
    if listing.has("pom.xml") {
        let program = if listing.has("mvnw") { "./mvnw" } else { "mvn" };
        found.propose("test", "maven", Correctness, &format!("{program} --batch-mode test"), "Found pom.xml.");
    }
}

pub(super) fn ruby(listing: &ProjectFiles, found: &mut Proposals) {
    let bundle = if listing.has("Gemfile") { "bundle exec " } else { "" };
    let spec = || listing.inside("spec").find(|name| name.ends_with("_spec.rb")).map(|name| format!("spec/{name}"));
    if let Some(sign) = listing.first(&[".rspec", "spec/spec_helper.rb"]).map(str::to_owned).or_else(spec) {
        found.propose("test", "rspec", Correctness, &format!("{bundle}rspec"), format!("Found {sign}."));
    }
    if listing.has(".rubocop.yml") {
        found.propose("lint", "rubocop", Quality, &format!("{bundle}rubocop"), "Found .rubocop.yml.");
    }
}

pub(super) fn bats(listing: &ProjectFiles, found: &mut Proposals) {
    let holds = |folder: &&str| listing.inside(folder).any(|name| has_extension(name, "bats"));
    if let Some(folder) = ["test", "tests", "spec"].into_iter().find(|folder| holds(folder)) {
        found.propose("test", "bats", Correctness, &format!("bats {folder}"), format!("Found .bats files in {folder}/."));
    } else if listing.top().any(|name| has_extension(name, "bats")) {
        found.propose("test", "bats", Correctness, "bats .", "Found .bats files.");
    }
}

fn has_extension(name: &str, extension: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|own| own == extension)
}

/// `[name]` at the start of a line, also `[name.sub]` or `[name:sub]`.
fn has_section(text: &str, name: &str) -> bool {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix('['))
        .filter_map(|line| line.strip_prefix(name))
        .any(|rest| rest.starts_with([']', '.', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_their_whole_name() {
        for (text, name, expected) in [
            ("[workspace]\nmembers = []", "workspace", true),
            ("[workspace.package]\n", "workspace", true),
            ("[package]\nname = \"workspace\"", "workspace", false),
            ("[workspaces]", "workspace", false),
            ("  [tool.pytest.ini_options]", "tool.pytest", true),
            ("# [tool.pytest]", "tool.pytest", false),
        ] {
            assert_eq!(has_section(text, name), expected, "{text}");
        }
    }
}
