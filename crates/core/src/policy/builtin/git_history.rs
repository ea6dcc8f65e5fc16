//! Commands that discard work or move branches. Loops in a user's own session depend on both.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::{Arguments, COMMIT_VALUED};
use verdone_shell::Word;

const KEEP: &str = "undo the edits by hand; the next attempt starts from a clean workspace anyway";
const BRANCH: &str = "stay on the branch that the run was started on";

pub(super) fn rules() -> Vec<Rule> {
    deny(
        Family::GitHistory,
        vec![
            Entry {
                name: "git-rebase",
                matcher: Matcher::Git { commands: &["rebase", "filter-branch", "filter-repo", "replace"], when: |_, _| true },
                reason: "rewriting commits loses their evidence",
                alternative: "add a new commit on top, or leave the change in the tree",
                matches: &["git rebase main", "git rebase -i HEAD~3", "git filter-branch --all"],
                not_matches: &["git log main..HEAD", "echo git rebase", "git commit -m 'rebase later'"],
            },
            Entry {
                name: "git-reset-hard",
                matcher: Matcher::Git { commands: &["reset"], when: |_, rest| resets_files(rest) },
                reason: "this throws away uncommitted work",
                alternative: KEEP,
                matches: &["git reset --hard", "git reset --har HEAD~1", "git reset --merge", "git reset --keep HEAD~2"],
                not_matches: &["git reset", "git reset HEAD src/a.rs", "git reset -- --hard", "git commit -m 'reset --hard'"],
            },
            Entry {
                name: "git-reset-branch",
                matcher: Matcher::Git { commands: &["reset"], when: |_, rest| moves_branch(rest) },
                reason: "this moves the branch to another commit",
                alternative: "`git reset -- FILE` takes files out of the index and leaves the branch where it is",
                matches: &["git reset HEAD~1", "git reset --soft HEAD^", "git reset --mixed origin/main", "git reset 1a2b3c4d"],
                not_matches: &["git reset", "git reset HEAD", "git reset -- HEAD~1", "git reset -p", "git reset HEAD src/a.rs"],
            },
            Entry {
                name: "git-clean",
                matcher: Matcher::Git { commands: &["clean"], when: |_, rest| !is_dry(rest) },
                reason: "this deletes files that are in no commit",
                alternative: "delete the files that you made by name",
                matches: &["git clean -fd", "git clean -xdf", "git -C sub clean --force"],
                not_matches: &["git clean -n", "git clean --dry-run", "git clean -dn", "make clean"],
            },
            Entry {
                name: "git-discard",
                matcher: Matcher::Git { commands: &["checkout", "restore", "checkout-index", "read-tree"], when: discards },
                reason: "this overwrites uncommitted work with an older state",
                alternative: KEEP,
                matches: &[
                    "git checkout -- src/a.rs",
                    "git checkout .",
                    "git restore src/a.rs",
                    "git checkout HEAD~1 src/a.rs",
                    "git checkout -f main",
                ],
                not_matches: &[
                    "git restore --staged src/a.rs",
                    "git diff -- src/a.rs",
                    "echo git checkout .",
                    "git show HEAD:src/a.rs",
                ],
            },
            Entry {
                name: "git-stash",
                matcher: Matcher::Git { commands: &["stash"], when: |_, rest| stashes(rest) },
                reason: "the stash hides work from the run and is shared by all work trees",
                alternative: "leave the work in the tree, or copy files to a temporary directory",
                matches: &["git stash", "git stash push -m x", "git stash pop", "git stash -u"],
                not_matches: &["git stash list", "git stash show -p", "echo git stash"],
            },
            Entry {
                name: "git-switch",
                matcher: Matcher::Git { commands: &["switch", "checkout", "bisect"], when: switches },
                reason: "the run's commits belong to the branch that it was started on",
                alternative: BRANCH,
                matches: &["git switch main", "git checkout -b other", "git checkout main", "git bisect start"],
                not_matches: &["git branch", "git branch new-name", "git checkout", "git log main"],
            },
            Entry {
                name: "git-amend",
                matcher: Matcher::Git {
                    commands: &["commit"],
                    when: |_, rest| Arguments::new(rest).long_beside("--amend", 4, COMMIT_VALUED),
                },
                reason: "amending rewrites a commit that may have evidence",
                alternative: "make a new commit, or leave the change in the tree",
                matches: &["git commit --amend", "git commit --am --no-edit", "git commit -a --amend -m x"],
                not_matches: &["git commit -m '--amend'", "git commit -am x", "git commit -m x -- --amend"],
            },
            Entry {
                name: "git-branch-move",
                matcher: Matcher::Git { commands: &["branch", "tag", "fetch", "update-ref", "symbolic-ref"], when: forces },
                reason: "this moves a branch, a tag or HEAD by force",
                alternative: BRANCH,
                matches: &[
                    "git branch -f main HEAD~3",
                    "git fetch origin main:main",
                    "git update-ref refs/heads/main HEAD~1",
                    "git tag -f v1",
                    "git symbolic-ref HEAD refs/heads/x",
                ],
                not_matches: &[
                    "git branch topic",
                    "git fetch origin main",
                    "git fetch git@host:o/r.git",
                    "git symbolic-ref HEAD",
                    "git tag v2",
                ],
            },
            Entry {
                name: "git-ref-delete",
                matcher: Matcher::Git { commands: &["branch", "tag", "update-ref", "symbolic-ref", "reflog"], when: deletes },
                reason: "this deletes a branch, a tag or its reflog",
                alternative: "leave them to the user",
                matches: &[
                    "git branch -D topic",
                    "git tag --delete v1",
                    "git update-ref -d refs/heads/x",
                    "git reflog expire --all",
                ],
                not_matches: &["git branch --list", "git tag", "git reflog", "git branch -v"],
            },
            Entry {
                name: "git-prune",
                matcher: Matcher::Git { commands: &["gc", "prune"], when: prunes },
                reason: "this destroys commits and files that git still keeps",
                alternative: "leave them; `git gc` without `--prune` keeps recent objects",
                matches: &["git gc --prune=now", "git prune", "git gc --aggressive --prune=all", "git prune --expire now"],
                not_matches: &["git gc", "git gc --auto", "git prune -n", "git gc --prune=never", "npm prune"],
            },
            Entry {
                name: "git-notes",
                matcher: Matcher::Git { commands: &["notes"], when: |_, rest| writes_notes(rest) },
                reason: "notes contain the run's evidence",
                alternative: "write what you learned into the answer or the guardrails",
                matches: &["git notes add -m x", "git notes --ref=verdone remove HEAD", "git notes prune"],
                not_matches: &["git notes", "git notes show HEAD", "git notes list"],
            },
            Entry {
                name: "git-worktree",
                matcher: Matcher::Git {
                    commands: &["worktree"],
                    when: |_, rest| !matches!(Arguments::new(rest).first(), Some("list") | None),
                },
                reason: "the run works in one worktree; Verdone verifies no other",
                alternative: "work in the tree that the run was started in",
                matches: &["git worktree add ../x", "git worktree remove ../x --force", "git worktree prune"],
                not_matches: &["git worktree list", "git worktree", "echo git worktree add"],
            },
        ],
    )
}

fn resets_files(rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    arguments.long("--hard", 3) || arguments.long("--merge", 4) || arguments.long("--keep", 3)
}

fn moves_branch(rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    if resets_files(rest) || arguments.has_separator() {
        return false;
    }
    let operands = arguments.operands(&["--pathspec-from-file"]);
    let [only] = operands.as_slice() else { return false };
    let text = only.prefix();
    let is_hash = text.len() >= 7 && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_other = text.contains(['~', '^']) || text.contains("@{") || text == "ORIG_HEAD" || text == "FETCH_HEAD";
    let told = (arguments.long("--soft", 3) || arguments.long("--mixed", 4)) && text != "HEAD" && text != "@";
    is_hash || is_other || told || text.starts_with("origin/") || text.starts_with("refs/")
}

fn is_dry(rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    arguments.short('n', "e") || arguments.long("--dry-run", 4) || arguments.long("--help", 3) || arguments.any(&["-h"])
}

fn stashes(rest: &[Word]) -> bool {
    !matches!(Arguments::new(rest).first(), Some("list" | "show"))
}

fn discards(command: &str, rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    match command {
        "checkout" => {
            let forced = arguments.short('f', "bB") || arguments.long("--force", 4) || arguments.short('p', "bB");
            let sides = arguments.long("--ours", 4) || arguments.long("--theirs", 4) || arguments.long("--pathspec-from-file", 5);
            let operands = arguments.operands(&["-b", "-B", "--orphan"]);
            let files =
                operands.len() > 1 || operands.iter().any(|word| word.literal() == Some(".") || word.prefix().starts_with("./"));
            forced || sides || arguments.has_separator() || files
        }
        "restore" => {
            let index = arguments.short('S', "s") || arguments.long("--staged", 4);
            let files = arguments.short('W', "s") || arguments.long("--worktree", 3);
            (files || !index) && !arguments.is_empty()
        }
        "read-tree" => arguments.short('u', "") || arguments.short('m', "") || arguments.long("--reset", 3),
        _ => true,
    }
}

fn switches(command: &str, rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    match command {
        "checkout" => !arguments.is_empty() && !discards(command, rest),
        "bisect" => !matches!(arguments.first(), Some("log" | "visualize" | "view" | "help" | "terms") | None),
        _ => !arguments.any(&["-h", "--help"]),
    }
}

fn forces(command: &str, rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    let operands = arguments.operands(&["-m", "-F", "--message", "--file", "--depth", "--deepen", "-j", "--jobs", "-o"]);
    match command {
        "branch" => {
            let moved = ['f', 'm', 'M', 'C'].iter().any(|letter| arguments.short(*letter, "u"));
            moved || arguments.long("--force", 4) || arguments.long("--move", 4)
        }
        "tag" => arguments.short('f', "mFu") || arguments.long("--force", 4),
        // The first operand is the remote, whose address may contain a colon.
        "fetch" => operands.iter().skip(1).any(|word| word.prefix().contains(':')),
        "symbolic-ref" => operands.len() > 1,
        _ => !deletes(command, rest),
    }
}

fn deletes(command: &str, rest: &[Word]) -> bool {
    let arguments = Arguments::new(rest);
    let told = arguments.short('d', "umFm") || arguments.long("--delete", 4);
    match command {
        "branch" => told || arguments.short('D', "u"),
        "update-ref" => told || arguments.long("--stdin", 4),
        "reflog" => matches!(arguments.first(), Some("expire" | "delete" | "drop")),
        _ => told,
    }
}

fn prunes(command: &str, rest: &[Word]) -> bool {
    match command {
        "gc" => rest.iter().filter_map(|word| word.without_prefix("--prune=")).any(|when| when.literal() != Some("never")),
        _ => !is_dry(rest),
    }
}

fn writes_notes(rest: &[Word]) -> bool {
    let first = Arguments::new(rest).operands(&["--ref"]).first().and_then(|word| word.literal());
    !matches!(first, Some("list" | "show" | "get-ref") | None)
}
