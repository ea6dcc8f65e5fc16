//! Finds a plan by common file names, without parsing it.

use super::ProjectFiles;

/// Names that are used only for plans, most likely first.
pub const PLAN_NAMES: [&str; 8] = [
    "PLAN.md",
    "plan.md",
    "IMPLEMENTATION_PLAN.md",
    "prd.json",
    "feature_list.json",
    "prd.md",
    "PRD.md",
    "scripts/ralph/prd.json",
];

/// Names of files that may be plans. They count only where no file has one of the names above: many projects keep a TODO.md beside
/// their plan.
pub const OTHER_PLAN_NAMES: [&str; 9] =
    ["docs/PLAN.md", "docs/plan.md", "TODO.md", "todo.md", "TODOS.md", "TASKS.md", "tasks.md", "CHECKLIST.md", "BACKLOG.md"];

/// The plan to use, and the other candidates.
pub(super) fn find(listing: &ProjectFiles) -> (Option<String>, Vec<String>) {
    let mut homes: Vec<(u32, String)> = listing
        .inside(".ralph")
        .filter_map(|name| name.strip_prefix("PRD-")?.strip_suffix("/plan.md")?.parse().ok())
        .map(|number| (number, format!(".ralph/PRD-{number}/plan.md")))
        .filter(|(_, path)| listing.has(path))
        .collect();
    homes.sort_unstable();
    let named = PLAN_NAMES.into_iter().chain(OTHER_PLAN_NAMES).filter(|name| listing.has(name)).map(str::to_owned);
    let mut plans = homes.into_iter().map(|(_, path)| path).chain(named);
    let first = plans.next();
    (first, plans.collect())
}
