//! Commands that push or merge. The user does that after the run.

use super::super::{Family, Matcher, Rule};
use super::{Entry, deny};
use crate::policy::arguments::Arguments;
use crate::policy::matcher::Certainty;
use verdone_shell::{Simple, Word};

const INSTEAD: &str = "if you have the tool `request_merge`, call it: it prepares the story for review. Otherwise leave the work in the \
    tree: what passes its checks is committed, and the user pushes and merges after the run";

pub(super) fn rules() -> Vec<Rule> {
    deny(
        Family::GitRemote,
        vec![
            Entry {
                name: "git-push",
                matcher: Matcher::Git { commands: &["push", "send-pack", "http-push"], when: |_, _| true },
                reason: "pushing publishes unreviewed work",
                alternative: INSTEAD,
                matches: &["git push", "git -C . push origin main", "true && /usr/bin/git --no-pager push", "bash -c 'git push'"],
                not_matches: &[
                    "git commit -m 'then git push'",
                    "echo git push",
                    "git stash-push-notes",
                    "grep -rn 'git push' docs",
                ],
            },
            Entry {
                name: "git-push-by-helper",
                matcher: Matcher::Git { commands: &["subtree", "lfs", "svn", "p4", "flow", "town", "cinnabar"], when: pushes },
                reason: "this git command pushes",
                alternative: INSTEAD,
                matches: &["git subtree push --prefix x origin main", "git lfs push origin main", "git svn dcommit"],
                not_matches: &["git lfs ls-files", "git subtree split --prefix x", "git svn log"],
            },
            Entry {
                name: "git-merge",
                matcher: Matcher::Git { commands: &["merge", "octopus-merge"], when: |_, _| true },
                reason: "merging combines work that was checked separately",
                alternative: INSTEAD,
                matches: &["git merge main", "git merge --abort", "cd x; git -c a.b=c merge dev"],
                not_matches: &["git merge-base HEAD main", "git log --merges", "echo git merge"],
            },
            Entry {
                name: "git-pull",
                matcher: Matcher::Git { commands: &["pull"], when: |_, _| true },
                reason: "pulling merges or rebases commits that were not checked here",
                alternative: "`git fetch` shows what is new without touching the tree",
                matches: &["git pull", "git pull --rebase", "git --git-dir=.git pull"],
                not_matches: &["git fetch", "git request-pull", "gh pr list"],
            },
            Entry {
                name: "remote-programs",
                matcher: Matcher::Programs(PROGRAMS),
                reason: "this program pushes or merges",
                alternative: INSTEAD,
                matches: &["gh pr merge 12 --squash", "jj git push", "ralph stream merge", "glab mr merge 3", "hg push"],
                not_matches: &["gh pr view 12", "glab mr list", "jj log", "hg status", "echo gh pr merge"],
            },
            Entry {
                name: "pull-request",
                matcher: Matcher::Programs(PULL_REQUESTS),
                reason: "this asks others to review work that has not passed its checks yet",
                alternative: INSTEAD,
                matches: &["gh pr create --fill", "gh -R o/r pr new -t x", "glab mr create", "hub pull-request -m x"],
                not_matches: &["gh pr list", "gh pr diff 3", "glab mr view 3", "echo gh pr create"],
            },
            Entry {
                name: "remote-api-merge",
                matcher: Matcher::Simple(merges_by_api),
                reason: "this request merges, pushes or opens a pull request through the forge's own interface",
                alternative: INSTEAD,
                matches: &[
                    "gh api repos/o/r/pulls -f title=x -f head=y -f base=main",
                    "gh api -X PUT repos/o/r/pulls/1/merge",
                    "gh api --method POST repos/o/r/merges -f base=main",
                    "glab api -X PUT projects/1/merge_requests/2/merge",
                ],
                not_matches: &[
                    "gh api repos/o/r/pulls/1",
                    "gh api repos/o/r/pulls/1/merge",
                    "gh api repos/o/r/pulls",
                    "gh api repos/o/r/issues -f title=x",
                ],
            },
        ],
    )
}

const PULL_REQUESTS: &[&[&str]] = &[
    &["gh", "pr", "create"],
    &["gh", "pr", "new"],
    &["glab", "mr", "create"],
    &["glab", "mr", "new"],
    &["glab", "mr", "for"],
    &["hub", "pull-request"],
    &["tea", "pr", "create"],
    &["tea", "pulls", "create"],
    &["az", "repos", "pr", "create"],
];

const PROGRAMS: &[&[&str]] = &[
    &["gh", "pr", "merge"],
    &["gh", "pr", "update-branch"],
    &["gh", "repo", "sync"],
    &["glab", "mr", "merge"],
    &["glab", "mr", "accept"],
    &["glab", "mr", "rebase"],
    &["glab", "repo", "sync"],
    &["hub", "push"],
    &["hub", "merge"],
    &["hub", "sync"],
    &["hub", "pull"],
    &["tea", "pr", "merge"],
    &["tea", "pulls", "merge"],
    &["jj", "git", "push"],
    &["ralph", "stream", "merge"],
    &["hg", "push"],
    &["sl", "push"],
    &["svn", "commit"],
    &["svn", "ci"],
    &["bzr", "push"],
    &["fossil", "push"],
    &["fossil", "sync"],
    &["arc", "land"],
    &["gt", "submit"],
    &["gt", "merge"],
    &["gt", "sync"],
    &["spr", "land"],
    &["repo", "upload"],
    &["dulwich", "push"],
    &["got", "send"],
    &["gix", "push"],
];

fn pushes(_: &str, arguments: &[Word]) -> bool {
    matches!(Arguments::new(arguments).first(), Some("push" | "dcommit" | "submit" | "publish" | "ship" | "sync" | "finish"))
}

fn merges_by_api(simple: &Simple) -> Certainty {
    let Some((program, rest)) = simple.words.split_first() else { return Certainty::No };
    let base = program.base();
    let arguments = Arguments::new(rest);
    if !matches!(base.literal(), Some("gh" | "glab" | "hub")) || arguments.first() != Some("api") {
        return Certainty::No;
    }
    // Without a method, a request with fields or a body is a POST.
    let methods = arguments.value(&["-X", "--method"]);
    let sends = || ["-f", "-F", "--field", "--raw-field", "--input"].iter().any(|option| !arguments.value(&[option]).is_empty());
    let changes = if methods.is_empty() { sends() } else { methods.iter().any(|method| method.literal() != Some("GET")) };
    let merges = rest.iter().any(|word| {
        const ENDS: &[&str] = &["/merge", "/merges", "/pulls", "/merge_requests"];
        const PARTS: &[&str] = &["/git/refs", "mergePullRequest", "createPullRequest"];
        let path = word.prefix();
        ENDS.iter().any(|end| path.ends_with(end)) || PARTS.iter().any(|part| path.contains(part))
    });
    if changes && merges { Certainty::Yes } else { Certainty::No }
}
