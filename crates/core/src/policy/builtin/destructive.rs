//! Commands that destroy what no commit can bring back: infrastructure, file systems, files that were archived.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::Arguments;
use crate::policy::matcher::Certainty;
use verdone_shell::{Simple, Word};

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = deny(
        Family::Network,
        vec![Entry {
            name: "infrastructure",
            matcher: Matcher::Simple(changes_infrastructure),
            reason: "this changes or destroys real infrastructure, which no commit brings back",
            alternative: "check it without applying (`terraform validate`, `terraform plan`, `pulumi preview`, `cdk diff`); the user \
                applies it after the run",
            matches: &[
                "terraform apply -auto-approve",
                "terraform -chdir=infra destroy",
                "tofu apply plan.out",
                "terragrunt run-all destroy",
                "sh -c 'cd infra && pulumi up --yes'",
            ],
            not_matches: &[
                "terraform plan -destroy",
                "terraform validate",
                "terraform apply -help",
                "tofu fmt -check",
                "echo terraform apply",
            ],
        }],
    );
    rules.extend(deny(
        Family::Paths,
        vec![
            Entry {
                name: "format-disk",
                matcher: Matcher::Simple(formats),
                reason: "this overwrites a whole file system",
                alternative: "leave disks and images to the user: say in the answer which command to run",
                matches: &["mkfs.ext4 /dev/sda1", "sudo mkfs -t xfs /dev/sdb", "wipefs -a /dev/sdc", "mkswap /dev/sda2"],
                not_matches: &["mkfs.ext4 -V", "wipefs /dev/sdc", "man mkfs", "which mkfs.ext4"],
            },
            Entry {
                name: "tar-remove-files",
                matcher: Matcher::Simple(removes_archived),
                reason: "this deletes the files as soon as they are in the archive",
                alternative: "make the archive without `--remove-files`, and delete your own files by name",
                matches: &[
                    "tar czf old.tgz --remove-files src",
                    "tar --remove-f -cf x.tar docs",
                    "TAR_OPTIONS=--remove-files tar cf x.tar src",
                ],
                not_matches: &[
                    "tar czf old.tgz src",
                    "tar xf x.tar",
                    "tar cf x.tar -- --remove-files",
                    "echo tar --remove-files",
                ],
            },
        ],
    ));
    rules
}

/// Programs with their commands that change something.
const CHANGES: &[(&[&str], &[&str])] = &[
    (&["terraform", "tofu", "cdktf"], &["apply", "destroy", "deploy", "import", "taint", "untaint"]),
    (&["terragrunt"], &["apply", "destroy", "apply-all", "destroy-all", "import", "taint", "untaint"]),
    (&["pulumi"], &["up", "update", "destroy", "import"]),
    (&["cdk"], &["deploy", "destroy"]),
];

fn changes_infrastructure(simple: &Simple) -> Certainty {
    let Some((name, rest)) = program(simple) else { return Certainty::No };
    let Some((_, commands)) = CHANGES.iter().find(|(names, _)| names.contains(&name)) else { return Certainty::No };
    let arguments = Arguments::new(rest);
    let operands = arguments.operands(&["-C", "--cwd", "-s", "--stack", "--profile", "--working-dir"]);
    let operands: Vec<&str> = operands.iter().map(|word| word.literal().unwrap_or_default()).collect();
    let command = match operands.as_slice() {
        // `terragrunt run-all apply`, `terragrunt run --all -- apply`, `terragrunt stack run apply`
        ["run-all" | "run", command, ..] | ["stack", "run", command, ..] if name == "terragrunt" => command,
        [command, ..] => command,
        [] => return Certainty::No,
    };
    let changes = commands.contains(command) || matches!(operands.as_slice(), ["state", "rm" | "mv" | "push", ..]);
    answer(changes && !arguments.any(&["-help", "--help", "-h"]))
}

fn formats(simple: &Simple) -> Certainty {
    let Some((name, rest)) = program(simple) else { return Certainty::No };
    let arguments = Arguments::new(rest);
    let is_maker = name.starts_with("mkfs.") || matches!(name, "mkfs" | "mke2fs" | "mkswap" | "mkdosfs" | "mkntfs");
    // Without these, it lists what it would erase.
    let wipes = name == "wipefs" && (arguments.short('a', "ot") || arguments.short('o', "at") || arguments.long("--all", 3));
    // Without a device, these show their version or an error.
    let has_target = !arguments.operands(&["-t", "--type", "-o", "--offset"]).is_empty();
    answer((is_maker || wipes) && has_target && !arguments.any(&["--help", "-V", "--version"]))
}

/// GNU tar accepts abbreviated options, and more of them in a variable.
fn removes_archived(simple: &Simple) -> Certainty {
    let Some((name, rest)) = program(simple) else { return Certainty::No };
    let by_variable = || {
        let options = simple.assignments.iter().filter(|set| set.name == "TAR_OPTIONS");
        options.filter_map(|set| set.value.literal()).any(|value| value.split_whitespace().any(|word| word.starts_with("--rem")))
    };
    answer(matches!(name, "tar" | "gtar") && (Arguments::new(rest).long("--remove-files", 5) || by_variable()))
}

fn program(simple: &Simple) -> Option<(&str, &[Word])> {
    let (program, rest) = simple.words.split_first()?;
    let name = program.literal()?;
    Some((name.rsplit('/').next().unwrap_or(name), rest))
}

fn answer(yes: bool) -> Certainty {
    if yes { Certainty::Yes } else { Certainty::No }
}
