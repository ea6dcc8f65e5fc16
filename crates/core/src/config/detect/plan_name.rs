//! Finds a plan by common file names, without parsing it.

use super::ProjectFiles;

/// Most likely first.
const NAMES: [&str; 12] = [
    "PLAN.md",
    "plan.md",
    "IMPLEMENTATION_PLAN.md",
    "prd.json",
    "feature_list.json",
    "prd.md",
    "PRD.md",
    "docs/PLAN.md",
    "docs/plan.md",
    "TODO.md",
    "todo.md",
    "TASKS.md",
];

/// The plan to use, and the other candidates.
pub(super) fn find(listing: &ProjectFiles) -> (Option<String>, Vec<String>) {
    let mut homes: Vec<(u32, String)> = listing
        .inside(".ralph")
        .filter_map(|name| name.strip_prefix("PRD-")?.strip_suffix("/plan.md")?.parse().ok())
        .map(|number| (number, format!(".ralph/PRD-{number}/plan.md")))
        .filter(|(_, path)| listing.has(path))
        .collect();
    homes.sort_unstable();
    let mut plans =
        homes.into_iter().map(|(_, path)| path).chain(NAMES.into_iter().filter(|name| listing.has(name)).map(str::to_owned));
    let first = plans.next();
    (first, plans.collect())
}
