//! Merges two versions of a manifest: for each key, decides which side it is taken from.

use std::collections::{BTreeMap, BTreeSet};

use super::KeyPath;

/// How to treat a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Work,
    Protected,
    /// A table: each of its keys is decided separately.
    Split,
    /// Dependencies by name: work, except for redirecting an existing one to files of the project, where the agent could have put its
    /// own version of a test tool.
    Dependencies,
    /// Replacements of dependencies by name: work, unless they point to files of the project.
    Overrides,
    /// A list to which additions are work. Any other change is protected.
    Members,
    /// The same, but without the list everything is a member, so introducing it is a restriction.
    DefaultMembers,
    /// A list of tables, each with a `name`. Their keys are decided separately, below that name.
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Base,
    Attempt,
}

/// A value that is taken as a whole: it is protected, or is not the expected table or list.
struct NotMerged;

/// A parsed value of any format.
pub(super) trait Document: Clone + PartialEq {
    fn get(&self, key: &str) -> Option<&Self>;
    fn keys(&self) -> Option<Vec<&str>>;
    fn items(&self) -> Option<&[Self]>;
    fn text(&self) -> Option<&str>;
    fn table(entries: Vec<(String, Self)>) -> Self;
    fn list(items: Vec<Self>) -> Self;
    fn string(text: &str) -> Self;
}

pub(super) struct Merger {
    part: fn(&[&str]) -> Part,
    work_from: Side,
    changed: Vec<KeyPath>,
}

impl Merger {
    /// The merged document, and the protected keys that differ.
    pub(super) fn merge<D: Document>(part: fn(&[&str]) -> Part, work_from: Side, base: &D, attempt: &D) -> (D, Vec<KeyPath>) {
        let mut state = Self { part, work_from, changed: Vec::new() };
        let merged = state.value(&[], Some(base), Some(attempt)).unwrap_or_else(|| D::table(Vec::new()));
        state.changed.sort();
        state.changed.dedup();
        (merged, state.changed)
    }

    fn value<D: Document>(&mut self, path: &[&str], base: Option<&D>, attempt: Option<&D>) -> Option<D> {
        if base == attempt {
            return base.cloned();
        }
        let part = if path.is_empty() { Part::Split } else { (self.part)(path) };
        let merged = match part {
            Part::Work => return self.work(base, attempt),
            Part::Protected => Err(NotMerged),
            Part::Split => self.split(path, base, attempt),
            Part::Dependencies => self.dependencies(path, base, attempt, false),
            Part::Overrides => self.dependencies(path, base, attempt, true),
            Part::DefaultMembers if base.is_none() => Err(NotMerged),
            Part::Members | Part::DefaultMembers => self.members(path, base, attempt),
            Part::Named => self.named(path, base, attempt),
        };
        merged.unwrap_or_else(|NotMerged| self.protected(path, base, attempt))
    }

    fn work<D: Document>(&self, base: Option<&D>, attempt: Option<&D>) -> Option<D> {
        match self.work_from {
            Side::Base => base.cloned(),
            Side::Attempt => attempt.cloned(),
        }
    }

    fn protected<D: Document>(&mut self, path: &[&str], base: Option<&D>, attempt: Option<&D>) -> Option<D> {
        self.differences(path, base, attempt);
        match self.work_from {
            Side::Base => attempt.cloned(),
            Side::Attempt => base.cloned(),
        }
    }

    /// Records the differences inside a protected value: changing one script gives `scripts.test`.
    fn differences<D: Document>(&mut self, path: &[&str], base: Option<&D>, attempt: Option<&D>) {
        const DEEPEST: usize = 4;
        let keys = |side: Option<&D>| side.map_or_else(|| (path.len() == 1).then(Vec::new), |value| value.keys().map(owned));
        let names: BTreeSet<String> = match (keys(base), keys(attempt)) {
            (Some(before), Some(after)) if path.len() < DEEPEST => before.into_iter().chain(after).collect(),
            (Some(_) | None, _) => BTreeSet::new(),
        };
        if names.is_empty() {
            return self.changed(path);
        }
        for name in &names {
            let [before, after] = [base, attempt].map(|side| side.and_then(|value| value.get(name)));
            if before != after {
                let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
                self.differences(&path, before, after);
            }
        }
    }

    fn changed(&mut self, path: &[&str]) {
        self.changed.push(KeyPath(path.iter().map(|key| (*key).to_owned()).collect()));
    }

    fn split<D: Document>(&mut self, path: &[&str], base: Option<&D>, attempt: Option<&D>) -> Result<Option<D>, NotMerged> {
        self.each(path, base, attempt, Self::value)
    }

    fn dependencies<D: Document>(
        &mut self,
        path: &[&str],
        base: Option<&D>,
        attempt: Option<&D>,
        overrides: bool,
    ) -> Result<Option<D>, NotMerged> {
        self.each(path, base, attempt, |merger, path, base, attempt| {
            let local = attempt.and_then(local_source);
            let redirects = local.is_some() && (overrides || base.is_some()) && local != base.and_then(local_source);
            if redirects { merger.protected(path, base, attempt) } else { merger.work(base, attempt) }
        })
    }

    /// Merges two tables key by key.
    fn each<D: Document>(
        &mut self,
        path: &[&str],
        base: Option<&D>,
        attempt: Option<&D>,
        merge: impl Fn(&mut Self, &[&str], Option<&D>, Option<&D>) -> Option<D>,
    ) -> Result<Option<D>, NotMerged> {
        let keys = |side: Option<&D>| side.map_or(Some(Vec::new()), |table| table.keys().map(owned));
        let (base_keys, attempt_keys) = (keys(base).ok_or(NotMerged)?, keys(attempt).ok_or(NotMerged)?);
        let (first, second) = match self.work_from {
            Side::Base => (base_keys, attempt_keys),
            Side::Attempt => (attempt_keys, base_keys),
        };
        let seen: BTreeSet<String> = first.iter().cloned().collect();
        let mut entries = Vec::new();
        for key in first.into_iter().chain(second.into_iter().filter(|key| !seen.contains(key))) {
            let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            let side = |table: Option<&D>| table.and_then(|table| table.get(&key)).cloned();
            if let Some(value) = merge(self, &path, side(base).as_ref(), side(attempt).as_ref()) {
                entries.push((key, value));
            }
        }
        // An empty table can have a meaning, such as `[workspace]`.
        let kept = !entries.is_empty() || (base.is_some() && attempt.is_some()) || self.protected_side_is_empty(base, attempt);
        Ok(kept.then(|| D::table(entries)))
    }

    fn protected_side_is_empty<D: Document>(&self, base: Option<&D>, attempt: Option<&D>) -> bool {
        let side = match self.work_from {
            Side::Base => attempt,
            Side::Attempt => base,
        };
        side.and_then(Document::keys).is_some_and(|keys| keys.is_empty())
    }

    fn members<D: Document>(&mut self, path: &[&str], base: Option<&D>, attempt: Option<&D>) -> Result<Option<D>, NotMerged> {
        let texts = |side: Option<&D>| -> Option<Vec<String>> {
            let Some(side) = side else { return Some(Vec::new()) };
            side.items()?.iter().map(|item| item.text().map(str::to_owned)).collect()
        };
        let (before, after) = (texts(base).ok_or(NotMerged)?, texts(attempt).ok_or(NotMerged)?);
        let (was, is): (BTreeSet<&str>, BTreeSet<&str>) =
            (before.iter().map(String::as_str).collect(), after.iter().map(String::as_str).collect());
        // `!packages/a` removes members.
        let added = |item: &&str| !was.contains(item) && !item.starts_with('!');
        let excluded = |item: &&str| !was.contains(item) && item.starts_with('!');
        let old = before.iter().map(String::as_str);
        let new = after.iter().map(String::as_str);
        if !is.iter().any(excluded) && was.iter().all(|item| is.contains(item)) {
            return Ok(self.work(base, attempt));
        }
        self.changed(path);
        let merged: Vec<&str> = match self.work_from {
            Side::Attempt => old.chain(new.filter(added)).collect(),
            Side::Base => old.filter(|item| is.contains(item)).chain(new.filter(excluded)).collect(),
        };
        let both = base.is_some() && attempt.is_some();
        Ok((both || !merged.is_empty()).then(|| D::list(merged.into_iter().map(D::string).collect())))
    }

    fn named<D: Document>(&mut self, path: &[&str], base: Option<&D>, attempt: Option<&D>) -> Result<Option<D>, NotMerged> {
        let (before, after) = (by_name(base).ok_or(NotMerged)?, by_name(attempt).ok_or(NotMerged)?);
        let (first, second) = match self.work_from {
            Side::Base => (base, attempt),
            Side::Attempt => (attempt, base),
        };
        let mut names: Vec<&str> = first.map_or_else(Vec::new, names_in_order);
        let seen: BTreeSet<&str> = names.iter().copied().collect();
        names.extend(second.map_or_else(Vec::new, names_in_order).into_iter().filter(|name| !seen.contains(name)));
        let mut items = Vec::new();
        for name in names {
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            let merged = self.split(&path, before.get(name), after.get(name))?;
            // An item without a name only has protected keys of something that does not exist.
            items.extend(merged.filter(|item| item.get("name").is_some()));
        }
        Ok((!items.is_empty()).then(|| D::list(items)))
    }
}

/// Whether a key is one of these words.
pub(super) fn is_listed(words: &str, key: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == key)
}

fn names_in_order<D: Document>(list: &D) -> Vec<&str> {
    list.items().unwrap_or_default().iter().filter_map(|item| item.get("name")?.text()).collect()
}

fn by_name<D: Document>(list: Option<&D>) -> Option<BTreeMap<String, D>> {
    let Some(list) = list else { return Some(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    for item in list.items()? {
        if found.insert(item.get("name")?.text()?.to_owned(), item.clone()).is_some() {
            return None;
        }
    }
    Some(found)
}

fn owned(keys: Vec<&str>) -> Vec<String> {
    keys.into_iter().map(str::to_owned).collect()
}

/// The local files that a dependency comes from, if not from a registry: a path, or a URL of a local file.
fn local_source<D: Document>(value: &D) -> Option<String> {
    const LOCAL: [&str; 9] = ["file:", "link:", "portal:", "patch:", "./", "../", "/", "~/", "workspace:."];
    if let Some(text) = value.text() {
        let text = text.trim();
        return LOCAL.iter().any(|start| text.starts_with(start)).then(|| text.to_owned());
    }
    if let Some(path) = value.get("path").and_then(D::text) {
        return Some(path.to_owned());
    }
    let nested = value.keys()?.into_iter().filter_map(|key| value.get(key)).filter_map(local_source);
    let found: Vec<String> = nested.collect();
    (!found.is_empty()).then(|| found.join(", "))
}
