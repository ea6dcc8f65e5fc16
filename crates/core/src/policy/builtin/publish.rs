//! Commands that publish packages, images and releases. The user does that after the run.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::Arguments;
use crate::policy::matcher::Certainty;
use verdone_shell::{Simple, Word};

pub(super) fn rules() -> Vec<Rule> {
    deny(
        Family::Network,
        vec![Entry {
            name: "publish",
            matcher: Matcher::Simple(publishes),
            reason: "this publishes unreviewed work, and a release can rarely be withdrawn",
            alternative: "build it without publishing (`--dry-run`, `npm pack`, `cargo package`); the user publishes after the run",
            matches: &[
                "npm publish --access public",
                "cd pkg && pnpm -r publish",
                "cargo +nightly publish -p core",
                "python3 -m twine upload dist/*",
                "docker push ghcr.io/o/app:1",
                "docker buildx build --push -t app .",
                "gh release create v1 --notes x",
                "helm push chart.tgz oci://host/charts",
            ],
            not_matches: &[
                "npm publish --dry-run",
                "npm run publish",
                "cargo package",
                "twine check dist/*",
                "docker build -t app .",
                "gh release view v1",
                "echo npm publish",
            ],
        }],
    )
}

/// A program and its first operands; `*` stands for any word.
const COMMANDS: &[&[&str]] = &[
    &["npm", "publish"],
    &["npm", "unpublish"],
    &["npm", "deprecate"],
    &["pnpm", "publish"],
    &["yarn", "publish"],
    &["yarn", "npm", "publish"],
    &["yarn", "workspace", "*", "publish"],
    &["yarn", "workspace", "*", "npm", "publish"],
    &["bun", "publish"],
    &["deno", "publish"],
    &["jsr", "publish"],
    &["lerna", "publish"],
    &["changeset", "publish"],
    &["semantic-release"],
    &["vsce", "publish"],
    &["ovsx", "publish"],
    &["cargo", "publish"],
    &["cargo", "yank"],
    &["twine", "upload"],
    &["poetry", "publish"],
    &["uv", "publish"],
    &["hatch", "publish"],
    &["flit", "publish"],
    &["pdm", "publish"],
    &["gem", "push"],
    &["gem", "yank"],
    &["mix", "hex.publish"],
    &["nuget", "push"],
    &["dotnet", "nuget", "push"],
    &["docker", "push"],
    &["docker", "image", "push"],
    &["docker", "compose", "push"],
    &["docker", "manifest", "push"],
    &["podman", "push"],
    &["podman", "image", "push"],
    &["podman", "manifest", "push"],
    &["nerdctl", "push"],
    &["buildah", "push"],
    &["crane", "push"],
    &["helm", "push"],
    &["gh", "release", "create"],
    &["gh", "release", "upload"],
    &["gh", "release", "edit"],
    &["gh", "release", "delete"],
    &["gh", "release", "delete-asset"],
    &["hub", "release", "create"],
    &["tea", "releases", "create"],
    &["glab", "release", "create"],
    &["glab", "release", "upload"],
];

/// Goals that may appear anywhere among others: `mvn clean deploy`.
const GOALS: &[(&str, &str)] = &[("mvn", "deploy"), ("mvnw", "deploy"), ("gradle", "publish"), ("gradlew", "publish")];

/// Options of these programs that precede the command and take the next word.
const VALUED: &[&str] = &[
    "-R",
    "--repo",
    "-C",
    "--cwd",
    "--dir",
    "--prefix",
    "-w",
    "--workspace",
    "--filter",
    "-F",
    "--registry",
    "--config",
    "--context",
    "-H",
    "--host",
    "-l",
    "--log-level",
    "-f",
    "--file",
    "--manifest-path",
];

fn publishes(simple: &Simple) -> Certainty {
    let words = without_module(&simple.words);
    let Some((program, rest)) = words.split_first() else { return Certainty::No };
    let base = program.base();
    let Some(name) = base.literal() else { return Certainty::No };
    let arguments = Arguments::new(rest);
    if arguments.any(&["--dry-run", "-h", "--help"]) || (name == "cargo" && arguments.short('n', "p")) {
        return Certainty::No;
    }
    let starts = |command: &[&str]| {
        let mut operands = arguments.operands(VALUED);
        // `cargo +nightly publish`
        operands.retain(|word| !(name == "cargo" && word.prefix().starts_with('+')));
        let fits = |(word, wanted): (&&Word, &&str)| *wanted == "*" || word.literal() == Some(wanted);
        operands.len() >= command.len() && operands.iter().zip(command).all(fits)
    };
    let told = COMMANDS.iter().filter(|command| command[0] == name).any(|command| starts(&command[1..]));
    let goal = GOALS.iter().any(|(tool, goal)| *tool == name && rest.iter().any(|word| word.literal() == Some(goal)));
    let image = matches!(name, "docker" | "podman" | "nerdctl") && arguments.any(&["--push"]) && has_word(rest, "build");
    if told || goal || image { Certainty::Yes } else { Certainty::No }
}

fn has_word(words: &[Word], name: &str) -> bool {
    words.iter().any(|word| word.literal() == Some(name))
}

/// `python3 -m twine` is `twine`.
fn without_module(words: &[Word]) -> &[Word] {
    match words {
        [python, option, module @ ..]
            if option.literal() == Some("-m") && python.base().literal().is_some_and(|name| name.starts_with("python")) =>
        {
            module
        }
        words => words,
    }
}
