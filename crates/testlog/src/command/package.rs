//! `npm`, `pnpm`, `yarn`, `bun`: the script's name decides.

use super::unwrap::after_options;
use super::{Framework, Kind, base_name, by_program, by_task, classify};

pub(super) fn package_script(tool: &str, args: &[&str]) -> Option<Kind> {
    let valued =
        ["-w", "--workspace", "--prefix", "-C", "--cwd", "--filter", "-F", "--dir", "--loglevel", "--include", "--exclude"];
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        match *arg {
            option if valued.contains(&option) => at += 2,
            option if option.starts_with('-') => at += 1,
            "run" | "run-script" | "rum" | "urn" => {
                at += 1;
                while let Some(option) = args.get(at).filter(|arg| arg.starts_with('-')) {
                    at += if valued.contains(option) { 2 } else { 1 };
                }
                let script = args.get(at)?;
                return by_task(script)
                    .or_else(|| by_program(base_name(script), &args[at + 1..]).filter(|kind| matches!(kind, Kind::Direct(_))));
            }
            "exec" | "x" | "dlx" => return classify(after_options(&args[at + 1..])),
            "workspace" => at += 2,
            "workspaces" | "foreach" | "recursive" | "m" | "multi" => at += 1,
            "test" | "t" | "tst" | "it" | "install-test" | "cit" => {
                let own = tool == "bun" && *arg == "test";
                return Some(if own { Kind::Direct(Framework::Bun) } else { Kind::Runner });
            }
            "install" | "i" | "ci" | "add" | "remove" | "rm" | "uninstall" | "update" | "up" | "upgrade" | "link" | "publish"
            | "pack" | "audit" | "outdated" | "ls" | "list" | "why" | "view" | "info" | "show" | "init" | "create" | "cache"
            | "config" | "explain" => {
                return None;
            }
            script => {
                // `yarn jest`, `pnpm test:unit`: npm has no such shorthand.
                return if tool == "npm" { None } else { classify(&args[at..]).or_else(|| by_task(script)) };
            }
        }
    }
    None
}
