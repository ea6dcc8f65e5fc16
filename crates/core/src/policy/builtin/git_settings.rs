//! Commands that permanently change how git behaves: settings, hooks, and which files git looks at.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::{Arguments, COMMIT_VALUED};
use crate::policy::matcher::Certainty;
use verdone_shell::{Simple, Word, git_call, is_command_setting};

pub(super) fn rules() -> Vec<Rule> {
    deny(
        Family::GitSettings,
        vec![
            Entry {
                name: "git-no-verify",
                matcher: Matcher::Simple(skips_hooks),
                reason: "the user's git hooks are part of the checks",
                alternative: "commit without it and fix what the hook complains about",
                matches: &[
                    "git commit --no-verify -m x",
                    "git commit -nm x",
                    "git commit -an -m x",
                    "git commit --no-verif",
                    "HUSKY=0 git commit -m x",
                ],
                not_matches: &["git commit -m '--no-verify'", "git commit -m -n", "git log -n 3", "echo git commit --no-verify"],
            },
            Entry {
                name: "git-config",
                matcher: Matcher::Git { commands: &["config"], when: |_, rest| writes_config(rest) },
                reason: "git's settings are the user's",
                alternative: "read them with `git config --get NAME`; ask the user in the answer if one is missing",
                matches: &[
                    "git config user.name x",
                    "git config --global core.hooksPath /dev/null",
                    "git config --unset a.b",
                    "git config set a.b c",
                ],
                not_matches: &["git config --get user.name", "git config user.name", "git config --list", "git config get a.b"],
            },
            Entry {
                name: "git-config-override",
                matcher: Matcher::Simple(overrides),
                reason: "this disables git hooks or changes git's configuration",
                alternative: "run git with the user's own settings",
                matches: &[
                    "git -c core.hooksPath=/dev/null commit -m x",
                    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath git commit",
                    "export GIT_CONFIG_GLOBAL=/dev/null",
                    "git -ccore.hookspath= commit -m x",
                    "git --exec-path=. status",
                    "git --config-env=core.pager=X log",
                ],
                not_matches: &["git -c color.ui=never status", "GIT_PAGER=cat git log", "git -c user.name=x commit -m y"],
            },
            Entry {
                name: "git-remote-change",
                matcher: Matcher::Git {
                    commands: &["remote"],
                    when: |_, rest| !matches!(Arguments::new(rest).first(), Some("show" | "get-url" | "update") | None),
                },
                reason: "where the repository is published is the user's choice",
                alternative: "read it with `git remote -v`",
                matches: &["git remote add x url", "git remote set-url origin url", "git remote rm origin"],
                not_matches: &["git remote", "git remote -v", "git remote show origin"],
            },
            Entry {
                name: "git-hide",
                matcher: Matcher::Git { commands: &["update-index"], when: |_, rest| hides(rest) },
                reason: "a file that git skips cannot be verified",
                alternative: "leave the file visible; list build products in .gitignore",
                matches: &[
                    "git update-index --assume-unchanged a",
                    "git update-index --skip-worktree a",
                    "git update-index --cacheinfo 1,2,3",
                ],
                not_matches: &["git update-index --refresh", "git update-index --no-skip-worktree a", "git ls-files -v"],
            },
        ],
    )
}

fn skips_hooks(simple: &Simple) -> Certainty {
    let Some(call) = git_call(&simple.words) else { return Certainty::No };
    let sure = if call.is_git { Certainty::Yes } else { Certainty::Maybe };
    let command = call.command.literal().unwrap_or_default();
    let arguments = Arguments::new(call.arguments);
    let hooked = ["commit", "push", "merge", "rebase", "am", "cherry-pick", "revert", "pull"].contains(&command);
    let told = hooked
        && (arguments.long_beside("--no-verify", 6, COMMIT_VALUED) || (command == "commit" && arguments.short('n', "mFCctSu")));
    let by_variable = call.is_git
        && hooked
        && simple.assignments.iter().any(|set| {
            matches!(set.name.as_str(), "HUSKY" | "LEFTHOOK") && set.value.literal() == Some("0")
                || matches!(set.name.as_str(), "HUSKY_SKIP_HOOKS" | "SKIP" | "PRE_COMMIT_ALLOW_NO_CONFIG" | "OVERCOMMIT_DISABLE")
        });
    if told || by_variable { sure } else { Certainty::No }
}

fn writes_config(rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    let valued = ["-f", "--file", "--blob", "--type", "-t", "--default"];
    let operands = arguments.operands(&valued);
    let first = operands.first().and_then(|word| word.literal());
    let reads = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--get-colorbool",
        "--list",
        "-l",
        "--help",
        "-h",
    ];
    let writes = ["--add", "--replace-all", "--unset", "--unset-all", "--remove-section", "--rename-section", "--edit", "-e"];
    if arguments.any(&writes) {
        return true;
    }
    match first {
        _ if arguments.any(&reads) => false,
        Some("get" | "list") | None => false,
        Some("set" | "unset" | "edit" | "rename-section" | "remove-section") => true,
        Some(_) => operands.len() > 1,
    }
}

fn overrides(simple: &Simple) -> Certainty {
    let by_variable = simple
        .assignments
        .iter()
        .any(|set| set.name.starts_with("GIT_CONFIG") || matches!(set.name.as_str(), "GIT_TEMPLATE_DIR" | "GIT_EXEC_PATH"));
    let by_option = git_call(&simple.words).is_some_and(|call| call.settings.iter().any(|(name, _)| overrides_by(name)));
    // Git programs from another folder, and settings whose values are not on the command line.
    let by_place = git_call(&simple.words).is_some_and(|call| {
        let own = simple.words.len().saturating_sub(call.arguments.len() + 1);
        simple.words[..own].iter().any(|word| {
            let from_variable = word.without_prefix("--config-env=").map(|setting| setting.prefix().to_ascii_lowercase());
            word.prefix().starts_with("--exec-path=") || from_variable.is_some_and(|setting| is_grave(&setting))
        })
    });
    if by_variable || by_option || by_place { Certainty::Yes } else { Certainty::No }
}

fn overrides_by(name: &str) -> bool {
    matches!(name, "core.hookspath" | "core.fsmonitor" | "core.sshcommand" | "include.path" | "core.worktree")
        || name.starts_with("includeif.")
        || name.starts_with("filter.")
}

fn is_grave(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default();
    overrides_by(name) || is_command_setting(name) || name.starts_with("alias.")
}

fn hides(rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    arguments.long("--assume-unchanged", 4)
        || arguments.long("--skip-worktree", 4)
        || arguments.any(&["--cacheinfo", "--index-info"])
}
