//! Files that an agent must not write.

use super::super::{Family, Matcher, PolicyContext, Protected, Rule};
use super::{Entry, deny};
use crate::policy::STORY_SCOPE;
use crate::policy::act::Access;
use crate::policy::path::{Place, below, fold};

const CHANGES: &[Access] = &[Access::Write, Access::DeleteAll];

pub(super) fn rules() -> Vec<Rule> {
    deny(
        Family::Paths,
        vec![
            Entry {
                name: "git-dir",
                matcher: Matcher::Place { access: CHANGES, is: in_git_dir },
                reason: "git's own files may only be changed by git commands",
                alternative: "use the git command for it, if the policy allows that",
                matches: &[
                    "Write: .git/hooks/pre-commit",
                    "echo x > .git/config",
                    "rm -rf .git",
                    "cp hook sub/.git/hooks/pre-push",
                ],
                not_matches: &["Write: .gitignore", "cat .git/HEAD", "Write: .github/workflows/ci.yml", "Read: .git/config"],
            },
            Entry {
                name: "verdone-dir",
                matcher: Matcher::Place { access: CHANGES, is: in_verdone_dir },
                reason: "an agent must not change the run's settings and records",
                alternative: "write lessons into .verdone/guardrails.md, or call the tool `add_guardrail` if you have it; leave the rest to the user",
                matches: &[
                    "Write: .verdone/config.toml",
                    "sed -i s/a/b/ .verdone/config.toml",
                    "rm -r .verdone",
                    "touch ./src/../.verdone/x",
                    "rm -rf ~/.local/state/verdone",
                    "Write: ~/.local/state/verdone/loops/a/b.json",
                ],
                not_matches: &[
                    "Write: .verdone/guardrails.md",
                    "cat .verdone/config.toml",
                    "Write: .verdone/notes/a.md",
                    "Write: verdone.md",
                ],
            },
            Entry {
                name: "agent-settings",
                matcher: Matcher::Place { access: CHANGES, is: is_agent_settings },
                reason: "an agent that changes its own settings can disable its guards",
                alternative: "say in the answer which setting is missing; the user decides",
                matches: &[
                    "Write: .claude/settings.json",
                    "Write: ~/.claude/settings.local.json",
                    "Write: .mcp.json",
                    "tee .codex/config.toml",
                    "mv x .gemini/settings.json",
                ],
                not_matches: &["Write: .claude/agents/reviewer.md", "cat .claude/settings.json", "Write: src/settings.json"],
            },
            Entry {
                name: "plan-status",
                matcher: Matcher::Plan(Protected::Status),
                reason: "only a passed verification marks a story as done",
                alternative: "finish the work, and call the tool `complete_story` if you have it; Verdone ticks the story when its checks pass",
                matches: &["Edit: plan.md\n- [ ] US-001\n- [x] US-001", "sed -i 's/\\[ \\]/[x]/' plan.md", "rm plan.md"],
                not_matches: &["Edit: plan.md\n# Plan\n# The plan", "cat plan.md", "Write: docs/plan.md"],
            },
            Entry {
                name: "plan-checks",
                matcher: Matcher::Plan(Protected::Checks),
                reason: "a story's criteria and checks must not change while it is worked on",
                alternative: "meet the criteria as they stand, or say why they cannot be met: with the tool `report_blocked` if you have it, else in the answer",
                matches: &[
                    "Edit: plan.md\nVerification: `make test`\nVerification: `true`",
                    "Edit: plan.md\nmake test\nmake",
                    "Write: plan.md\n# Plan\n\n- [ ] US-001: One\n",
                ],
                not_matches: &[
                    "Edit: plan.md\n# Plan\n# The plan",
                    "Edit: other.md\nmake test\nmake",
                    "grep Verification plan.md",
                ],
            },
            Entry {
                name: "env-file",
                matcher: Matcher::Place { access: CHANGES, is: is_env_file },
                reason: "such files contain secrets and are usually ignored by git, so they cannot be restored",
                alternative: "write the variable's name into an example file such as .env.example, and say what to set",
                matches: &["Write: .env", "echo X=1 >> .env", "mv .env .env.old", "sed -i s/a/b/ ./sub/../.env"],
                not_matches: &["Write: .env.example", "cat .env", "Write: src/.environment.rs"],
            },
            Entry {
                name: "outside-delete",
                matcher: Matcher::Place { access: &[Access::DeleteAll], is: is_outside_or_whole },
                reason: "this deletes a directory that the run cannot restore",
                alternative: "delete files below the work tree, or in your own temporary directory",
                matches: &[
                    "rm -rf /",
                    "rm -rf ~",
                    "rm -r ..",
                    "cd / && rm -rf usr",
                    "find /home -delete",
                    "rm -rf /work/project",
                ],
                not_matches: &["rm -rf target", "rm -rf /tmp/build", "rm -rf ./a/../b", "ls /"],
            },
            Entry {
                name: "outside-write",
                matcher: Matcher::Place { access: CHANGES, is: is_outside },
                reason: "this lies outside the work tree, where the run neither checks nor restores",
                alternative: "write below the work tree, or in a temporary directory",
                matches: &[
                    "Write: /etc/hosts",
                    "echo x > ../other/file",
                    "cp a ~/bin/a",
                    "Edit: ../x.rs\na\nb",
                    "cd /etc && echo x > passwd",
                ],
                not_matches: &["Write: src/a.rs", "echo x > /tmp/a", "make 2> /dev/null", "cat /etc/hosts"],
            },
            Entry {
                name: STORY_SCOPE,
                matcher: Matcher::Place { access: CHANGES, is: is_out_of_scope },
                reason: "this is outside the paths that the story names as its scope",
                alternative: "keep to the story's scope, or say in the answer why it is too narrow; scratch files go to a temporary directory",
                matches: &[],
                not_matches: &["Write: src/a.rs", "echo x > /tmp/a", "touch README.md"],
            },
        ],
    )
}

fn in_git_dir(place: &Place, context: &PolicyContext) -> bool {
    place.folded(context).split('/').any(|part| part == ".git")
}

fn in_verdone_dir(place: &Place, context: &PolicyContext) -> bool {
    /// The folder outside of the project for sealed answers and loops.
    const STATE: &str = "/.local/state/verdone/";
    const OPEN: &[&str] = &["/.verdone/guardrails.md", "/.verdone/notes.md"];
    // The project may be a folder below the top of the work tree.
    let is_ours = |path: String| {
        let path = format!("/{path}");
        let is_open = OPEN.iter().any(|open| path.ends_with(open)) || path.contains("/.verdone/notes/");
        path.split('/').any(|part| part == ".verdone") && !is_open
    };
    // Without views, the agent's workspace and its temporary folder are in there.
    let is_scratch = |temp: &String| temp.contains(STATE) && place.path.starts_with(&format!("{temp}/"));
    match place.in_tree(context) {
        Some(path) => format!("/{path}/").contains(STATE) || is_ours(path),
        None => format!("{}/", place.path).contains(STATE) && !context.temp.iter().any(is_scratch),
    }
}

fn is_agent_settings(place: &Place, context: &PolicyContext) -> bool {
    const FILES: &[&str] = &[
        "/.claude.json",
        "/.mcp.json",
        "/.codex/config.toml",
        "/.codex/hooks.json",
        "/.gemini/settings.json",
        "/.qwen/settings.json",
        "/.cursor/hooks.json",
        "/.cursor/cli.json",
        "/opencode.json",
        "/managed-settings.json",
    ];
    const FOLDERS: &[&str] = &["/.claude/hooks/", "/.github/hooks/", "/.opencode/plugin/"];
    // An unknown name below such a folder may be any of its files.
    const COMPUTED: &[&str] = &["/.claude/…", "/.codex/…", "/.gemini/…", "/.qwen/…"];
    let path = place.folded(context);
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    let is_claudes = folder.ends_with("/.claude") && name.starts_with("settings") && name.ends_with(".json");
    is_claudes
        || FILES.iter().chain(COMPUTED).any(|end| path.ends_with(end))
        || FOLDERS.iter().any(|folder| path.contains(folder))
}

fn is_env_file(place: &Place, context: &PolicyContext) -> bool {
    let path = place.folded(context);
    context.env_files.iter().any(|file| fold(file, context.ignore_case) == path)
}

fn is_outside(place: &Place, context: &PolicyContext) -> bool {
    place.in_tree(context).is_none() && !place.in_temp(context) && !place.is_harmless_device()
}

fn is_outside_or_whole(place: &Place, context: &PolicyContext) -> bool {
    let holds_tree = below(&context.root, &place.path, context.ignore_case).is_some();
    holds_tree || is_outside(place, context)
}

fn is_out_of_scope(place: &Place, context: &PolicyContext) -> bool {
    let Some(scope) = context.scope.as_ref().filter(|scope| scope.enforced) else { return false };
    place.in_tree(context).is_some_and(|path| scope.outside(context.ignore_case)(&path))
}
