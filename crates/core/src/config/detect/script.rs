//! `package.json`: its scripts, and the package manager according to the lock file.

use serde_json::Value;

use super::{ProjectFiles, Proposals};
use crate::check::Stage::{self, Correctness, Quality};

/// Scripts worth a gate, with the names that projects use for each, preferred names first.
const SCRIPTS: [(&str, Stage, &[&str]); 5] = [
    ("test", Correctness, &["test:ci", "test", "test:run", "test:unit"]),
    ("typecheck", Correctness, &["typecheck", "type-check", "check-types", "check:types", "types", "tsc"]),
    ("build", Correctness, &["build"]),
    ("lint", Quality, &["lint:ci", "lint", "eslint"]),
    ("format", Quality, &["format:check", "format-check", "check:format", "fmt:check"]),
];

pub(super) fn package(listing: &ProjectFiles, found: &mut Proposals) {
    if !listing.has("package.json") {
        return;
    }
    let Ok(package) = serde_json::from_str::<Value>(listing.text("package.json")) else {
        found.note("package.json could not be read as JSON, so its scripts were left out.");
        return;
    };
    let manager = manager(listing, &package);
    let script = |name: &str| package.get("scripts").and_then(|scripts| scripts.get(name)).and_then(Value::as_str);
    for (gate, stage, names) in SCRIPTS {
        for name in names {
            let Some(text) = script(name) else { continue };
            if text.trim().is_empty() || is_placeholder(text) {
                continue;
            }
            if watches(text) {
                found
                    .note(format!("The script `{name}` in package.json watches for changes and never ends, so it was left out."));
                continue;
            }
            let command = command(manager, name, text);
            found.propose(gate, manager, stage, &command, format!("Found the script `{name}` in package.json."));
            break;
        }
    }
}

/// From `packageManager`, else from the lock file, else npm.
fn manager(listing: &ProjectFiles, package: &Value) -> &'static str {
    let known = ["npm", "pnpm", "yarn", "bun"];
    let named = package.get("packageManager").and_then(Value::as_str).and_then(|text| text.split('@').next());
    if let Some(name) = named.and_then(|name| known.into_iter().find(|known| *known == name)) {
        return name;
    }
    let locks = [
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("package-lock.json", "npm"),
        ("npm-shrinkwrap.json", "npm"),
    ];
    locks.into_iter().find(|(lock, _)| listing.has(lock)).map_or("npm", |(_, manager)| manager)
}

fn command(manager: &str, name: &str, text: &str) -> String {
    // `bun test` and `yarn test:ci` do not run the script; `run` works the same everywhere.
    let run = if name == "test" && matches!(manager, "npm" | "pnpm") {
        format!("{manager} test")
    } else {
        format!("{manager} run {name}")
    };
    // Create React App starts watch mode unless `CI` is set.
    if text.contains("react-scripts test") { format!("CI=true {run}") } else { run }
}

/// What `npm init` writes.
fn is_placeholder(text: &str) -> bool {
    text.contains("no test specified")
}

fn watches(text: &str) -> bool {
    text.split_whitespace().any(|word| matches!(word, "--watch" | "--watchAll" | "--watch=true" | "watch" | "nodemon"))
}
