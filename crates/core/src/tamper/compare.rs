//! The tests before and after, over the whole change: which are gone, which moved, which do less than they did.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::inventory::{Inventory, Marker, Test, hash_of, inventory};
use super::watched::is_test_path;
use super::{Alarm, AlarmKind, File, Severity};
use crate::source::Language;

/// Of the tokens of a test that is gone, how many have to be in new tests for it to count as rewritten.
const REWRITTEN: f64 = 0.6;
/// New tests that one that is gone is held against by name.
const MOST_SUCCESSORS: usize = 1_000;
/// Names of tests that one alarm lists.
const NAMED: usize = 5;

/// One test and the file that it is in.
struct Placed<'a> {
    file: usize,
    test: &'a Test,
}

pub(super) fn tests(files: &[File<'_>]) -> Vec<Alarm> {
    let read = |language: Option<Language>, path: &str, text: Option<&String>| match (language, text) {
        (Some(language), Some(text)) => inventory(language, path, text),
        _ => Inventory::default(),
    };
    let old: Vec<Inventory> = files.iter().map(|file| read(file.old_language, file.old_path, file.old.as_ref())).collect();
    let new: Vec<Inventory> = files.iter().map(|file| read(file.language, file.path, file.new.as_ref())).collect();
    let mut found = Findings { files, alarms: BTreeMap::new() };
    let (lost, added) = pair(&old, &new, &mut found);
    found.judge_lost(&lost, &added);
    found.judge_added(&added);
    found.judge_modules(&old, &new);
    found.judge_foreign();
    found.count(&old, &new);
    found.finish()
}

/// What is said once for all tests of a file that it holds for.
type Group = (AlarmKind, Severity, usize, &'static str);

struct Findings<'a> {
    files: &'a [File<'a>],
    alarms: BTreeMap<Group, Vec<(u32, String)>>,
}

/// What two tests have to share to be a pair.
type Key = fn(&Placed<'_>) -> (usize, u64, u64);

/// Pairs tests before and after; what is left of each.
fn pair<'a>(old: &'a [Inventory], new: &'a [Inventory], found: &mut Findings<'_>) -> (Vec<Placed<'a>>, Vec<Placed<'a>>) {
    let placed = |all: &'a [Inventory]| -> Vec<Placed<'a>> {
        all.iter()
            .enumerate()
            .flat_map(|(file, inventory)| inventory.tests.iter().map(move |test| Placed { file, test }))
            .collect()
    };
    let (old, new) = (placed(old), placed(new));
    let mut taken_old = vec![false; old.len()];
    let mut taken_new = vec![false; new.len()];
    // From the surest to the least sure; each way of pairing sees what the ones before it left.
    let ways: [Key; 4] = [
        |it| (it.file + 1, hash_of(it.test.name.as_str()), it.test.digest),
        |it| (it.file + 1, hash_of(it.test.name.as_str()), 0),
        |it| (0, 0, it.test.digest),
        |it| (0, hash_of(it.test.name.as_str()), 1),
    ];
    for (number, key) in ways.into_iter().enumerate() {
        let mut open: HashMap<(usize, u64, u64), Vec<usize>> = HashMap::new();
        for (at, it) in new.iter().enumerate().rev().filter(|(at, _)| !taken_new[*at]) {
            open.entry(key(it)).or_default().push(at);
        }
        for (at, before) in old.iter().enumerate() {
            if taken_old[at] || (number == 2 && before.test.asserted.all() == 0) {
                continue;
            }
            let Some(candidates) = open.get_mut(&key(before)) else { continue };
            // One that runners find is preferred to one that they do not.
            let best = candidates.iter().rposition(|at| new[*at].test.reach).or_else(|| candidates.len().checked_sub(1));
            let Some(other) = best.map(|best| candidates.remove(best)) else { continue };
            (taken_old[at], taken_new[other]) = (true, true);
            found.compare(before, &new[other]);
        }
    }
    let rest = |all: Vec<Placed<'a>>, taken: Vec<bool>| {
        all.into_iter().zip(taken).filter(|(_, taken)| !taken).map(|(it, _)| it).collect()
    };
    (rest(old, taken_old), rest(new, taken_new))
}

impl Findings<'_> {
    fn add(&mut self, kind: AlarmKind, severity: Severity, file: usize, why: &'static str, test: &Test) {
        let name: String = test.name.chars().take(80).collect();
        self.alarms.entry((kind, severity, file, why)).or_default().push((test.line, name));
    }

    /// A test that is still there.
    fn compare(&mut self, before: &Placed<'_>, after: &Placed<'_>) {
        let (old, new, file) = (before.test, after.test, after.file);
        if old.reach && !new.reach {
            return self.add(AlarmKind::TestOutOfReach, Severity::High, file, "", new);
        }
        let same_body = old.digest == new.digest;
        for marker in new.markers.difference(&old.markers) {
            let (kind, severity, why) = match marker {
                Marker::Skipped => (AlarmKind::TestSkipped, Severity::High, ""),
                // A condition became another condition: what it is, a machine cannot weigh.
                Marker::SkippedIf | Marker::SkippedElsewhere if old.markers.contains(&Marker::Skipped) => continue,
                Marker::SkippedElsewhere if old.markers.contains(&Marker::SkippedIf) => continue,
                Marker::SkippedIf => (AlarmKind::TestSkipped, Severity::Medium, "under a condition"),
                Marker::SkippedElsewhere => (AlarmKind::TestSkipped, Severity::Low, "on other platforms"),
                Marker::Only => (AlarmKind::TestFocused, Severity::High, ""),
                Marker::ExpectedToFail if same_body => (AlarmKind::TestInverted, Severity::High, "its body is the same"),
                Marker::ExpectedToFail => (AlarmKind::TestInverted, Severity::Low, ""),
                Marker::EarlyReturn => (AlarmKind::TestSkipped, Severity::High, "returns before it asserts"),
                Marker::Swallows => (AlarmKind::TestWeakened, Severity::Medium, "catches what its assertions raise"),
            };
            self.add(kind, severity, file, why, new);
        }
        let (had, has) = (old.asserted, new.asserted);
        let skipped = new.markers.contains(&Marker::Skipped);
        // What it called before proves nothing about what it asserted itself.
        let handed_over = has.local > had.local;
        if had.real > 0 && has.real == 0 && !skipped && !handed_over {
            if has.constant > 0 && has.constant >= has.helpers.saturating_sub(has.constant) {
                self.add(AlarmKind::TestWeakened, Severity::High, file, "asserts only what is always true", new);
            } else if has.helpers == 0 {
                self.add(AlarmKind::TestWeakened, Severity::High, file, "asserts nothing any more", new);
            }
        } else if !skipped && has.constant > had.constant && has.real < had.real {
            self.add(
                AlarmKind::TestWeakened,
                Severity::High,
                file,
                "asserts what is always true in place of what was asserted",
                new,
            );
        } else if has.all() < had.all().div_ceil(2) && had.real >= 4 && !skipped {
            self.add(AlarmKind::TestWeakened, Severity::Low, file, "asserts less than half of what it did", new);
        } else if !same_body
            && !skipped
            && !handed_over
            && old.assertions.iter().any(|one| new.assertions.binary_search(one).is_err())
        {
            self.add(AlarmKind::AssertionChanged, Severity::Low, file, "", new);
        }
    }

    /// A test that is gone: merged into another, gone with what it tested, replaced, or just gone.
    fn judge_lost(&mut self, lost: &[Placed<'_>], added: &[Placed<'_>]) {
        let removed = self.removed_names();
        let mut fresh: HashMap<usize, usize> = HashMap::new();
        // What new and changed tests say, for each language.
        let mut said: HashMap<Option<Language>, HashSet<u64>> = HashMap::new();
        for it in added.iter().filter(|it| it.test.reach && it.test.asserted.all() > 0) {
            *fresh.entry(it.file).or_default() += 1;
            said.entry(self.files[it.file].language).or_default().extend(&it.test.tokens);
        }
        let successors: Vec<Successor> = added
            .iter()
            .filter(|it| {
                it.test.reach && it.test.asserted.real + it.test.asserted.local > 0 && !it.test.markers.contains(&Marker::Skipped)
            })
            .take(MOST_SUCCESSORS)
            .map(|it| Successor { file: it.file, language: self.files[it.file].language, words: words_of(&it.test.name) })
            .collect();
        let mut missing: HashMap<usize, usize> = HashMap::new();
        for it in lost.iter().filter(|it| counts(it.test)) {
            *missing.entry(it.file).or_default() += 1;
        }
        for it in lost.iter().filter(|it| it.test.reach) {
            let file = &self.files[it.file];
            let told = said.get(&file.old_language).map_or(0.0, |said| share(&it.test.tokens, said));
            let gone = file.new.is_none();
            let named = words_of(&it.test.name);
            if !counts(it.test) {
                self.add(AlarmKind::TestDeleted, Severity::Low, it.file, "it did not run, or asserted nothing", it.test);
            } else if it.test.tokens.iter().any(|token| removed.contains(token)) {
                self.add(AlarmKind::TestDeleted, Severity::Low, it.file, "with what it tested", it.test);
            } else if told >= REWRITTEN
                || successors
                    .iter()
                    .any(|new| (gone || new.file == it.file) && new.language == file.old_language && succeeds(&named, &new.words))
            {
                self.add(AlarmKind::TestRewritten, Severity::Low, it.file, "what it said is in new tests", it.test);
            } else if !gone && fresh.get(&it.file).copied().unwrap_or(0) >= missing.get(&it.file).copied().unwrap_or(0) {
                self.add(
                    AlarmKind::TestRewritten,
                    Severity::Medium,
                    it.file,
                    "new tests in its file say something else",
                    it.test,
                );
            } else {
                self.add(AlarmKind::TestDeleted, Severity::High, it.file, "", it.test);
            }
        }
    }

    /// Hashes of names that source files of the change defined and no file of it defines any more.
    fn removed_names(&self) -> HashSet<u64> {
        static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
            let words = r"\b(?:fn|def|function|class|func|struct|enum|trait|interface|type|module|macro_rules!)\s*\*?\s*(?:\([^)]*\)\s*)?(?:self\.)?([A-Za-z_]\w{3,})";
            let values = r"(?m)^(?:export\s+)?(?:const|static|pub const)\s+([A-Za-z_]\w{3,})";
            Regex::new(&format!("{words}|{values}")).expect("a fixed pattern compiles")
        });
        static TESTS: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))?\s+)?mod\s+\w+\s*\{").expect("a fixed pattern compiles")
        });
        // Helpers of tests that lie in the file itself do not count: they go with the tests.
        let names = |text: &str| -> BTreeSet<String> {
            let text = TESTS.find(text).map_or(text, |tests| &text[..tests.start()]);
            let name = |found: regex::Captures<'_>| found.get(1).or_else(|| found.get(2)).map(|name| name.as_str().to_owned());
            DEFINED.captures_iter(text).filter_map(name).collect()
        };
        let mut removed = BTreeSet::new();
        for file in self.files.iter().filter(|file| file.old_language.is_some() && !is_test_path(file.old_path)) {
            removed.extend(names(file.old.as_deref().unwrap_or_default()));
        }
        for file in self.files.iter().filter(|file| file.language.is_some()) {
            for name in names(file.new.as_deref().unwrap_or_default()) {
                removed.remove(&name);
            }
        }
        // Tests of a file that hold their own functions do not go with them.
        let kept = |name: &String| !name.starts_with("test") && !name.starts_with("Test");
        removed.iter().filter(|name| kept(name)).map(|name| hash_of(&name.as_bytes())).collect()
    }

    fn judge_added(&mut self, added: &[Placed<'_>]) {
        for it in added {
            if it.test.markers.contains(&Marker::Only) {
                self.add(AlarmKind::TestFocused, Severity::High, it.file, "", it.test);
            } else if it.test.reach && it.test.asserted.real + it.test.asserted.local == 0 && it.test.asserted.constant > 0 {
                self.add(AlarmKind::TestWeakened, Severity::Low, it.file, "new, and asserts only what is always true", it.test);
            } else if it.test.markers.contains(&Marker::Skipped) || it.test.markers.contains(&Marker::EarlyReturn) {
                self.add(AlarmKind::TestSkipped, Severity::Low, it.file, "new", it.test);
            }
        }
    }

    /// Files of tests that no module declares any more.
    fn judge_modules(&mut self, old: &[Inventory], new: &[Inventory]) {
        let declared: BTreeSet<&String> = new.iter().flat_map(|inventory| &inventory.modules).collect();
        for (file, (before, after)) in old.iter().zip(new).enumerate() {
            for name in after.conditional.difference(&before.conditional).filter(|name| before.modules.contains(*name)) {
                let entry =
                    self.alarms.entry((AlarmKind::TestSkipped, Severity::Medium, file, "the module is under a condition"));
                entry.or_default().push((0, name.clone()));
            }
        }
        for (file, inventory) in old.iter().enumerate().filter(|(file, _)| self.files[*file].new.is_some()) {
            for name in inventory.modules.iter().filter(|name| !declared.contains(name)) {
                let ends = [format!("{name}.rs"), format!("{name}/mod.rs")];
                let is_it = |path: &str| ends.iter().any(|end| path == end || path.ends_with(&format!("/{end}")));
                let deleted = self.files.iter().any(|file| file.new.is_none() && is_it(file.path));
                // Written out where it was declared.
                let inline = self.files[file].new.as_deref().is_some_and(|text| text.contains(&format!("mod {name} {{")));
                if !deleted && !inline {
                    let entry = self.alarms.entry((
                        AlarmKind::TestOutOfReach,
                        Severity::High,
                        file,
                        "the module is not declared any more",
                    ));
                    entry.or_default().push((0, name.clone()));
                }
            }
        }
    }

    /// Files of tests in languages that are not read: only that they are gone can be told.
    fn judge_foreign(&mut self) {
        const KINDS: [&str; 14] =
            ["java", "kt", "cs", "php", "swift", "scala", "ex", "exs", "c", "cc", "cpp", "dart", "lua", "hs"];
        for (at, file) in self.files.iter().enumerate() {
            let kind = file.path.rsplit_once('.').map_or("", |(_, kind)| kind);
            if file.new.is_some() || !KINDS.contains(&kind) || !is_test_path(file.path) {
                continue;
            }
            let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
            let moved = self.files.iter().any(|other| {
                other.new.is_some()
                    && other.old.is_none()
                    && is_test_path(other.path)
                    && (other.new == file.old || name(other.path) == name(file.path))
            });
            if !moved {
                let entry = self.alarms.entry((AlarmKind::TestDeleted, Severity::Medium, at, "the whole file"));
                entry.or_default().push((0, name(file.path)));
            }
        }
    }

    fn count(&mut self, old: &[Inventory], new: &[Inventory]) {
        let count = |all: &[Inventory]| {
            all.iter().flat_map(|inventory| &inventory.tests).filter(|test| test.reach && counts(test)).count()
        };
        let (before, after) = (count(old), count(new));
        if after < before {
            let entry = self.alarms.entry((AlarmKind::FewerTests, Severity::Low, usize::MAX, ""));
            entry.or_default().push((0, format!("{before} before, {after} now, in the changed files")));
        }
    }

    fn finish(self) -> Vec<Alarm> {
        let one = |((kind, severity, file, why), mut tests): (Group, Vec<(u32, String)>)| {
            tests.sort();
            let more = tests.len().saturating_sub(NAMED);
            let line = tests.first().map(|(line, _)| *line).filter(|line| *line > 0);
            let mut text = tests.iter().take(NAMED).map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
            if more > 0 {
                text.push_str(&format!(" and {more} more"));
            }
            if !why.is_empty() {
                text.push_str(&format!("; {why}"));
            }
            let path = self.files.get(file).map_or_else(String::new, |file| file.path.to_owned());
            Alarm { kind, severity, path, line, text, expected: false }
        };
        self.alarms.into_iter().map(one).collect()
    }
}

/// Whether it tested something before.
fn counts(test: &Test) -> bool {
    !test.markers.contains(&Marker::Skipped) && test.asserted.all() > 0
}

/// A new test that may stand for one that is gone.
struct Successor {
    file: usize,
    language: Option<Language>,
    words: BTreeSet<String>,
}

/// Whether a new test is the old one under a name that says more or less, as after a change of what is wanted.
fn succeeds(old: &BTreeSet<String>, new: &BTreeSet<String>) -> bool {
    let same = old.intersection(new).count();
    same >= 2 && same * 10 >= old.len() * 6
}

fn words_of(name: &str) -> BTreeSet<String> {
    let mut words: BTreeSet<String> = BTreeSet::new();
    let mut word = String::new();
    for c in name.chars().chain([' ']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && word.chars().next_back().is_some_and(char::is_lowercase)) {
            words.insert(std::mem::take(&mut word).to_lowercase());
        }
        if c.is_alphanumeric() {
            word.push(c);
        }
    }
    words.retain(|word| word.len() > 2 && word != "test" && word != "should" && word != "the");
    words
}

fn share(tokens: &[u64], said: &HashSet<u64>) -> f64 {
    // Signs are in every test.
    let words: Vec<&u64> = tokens.iter().filter(|token| **token > 255).collect();
    if words.is_empty() {
        return 0.0;
    }
    words.iter().filter(|token| said.contains(token)).count() as f64 / words.len() as f64
}
