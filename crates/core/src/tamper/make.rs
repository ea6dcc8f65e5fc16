//! Calls of make, and targets that are tasks: a file of such a name makes make do nothing.

use std::collections::{BTreeMap, BTreeSet};

/// What the arguments of make say.
pub(super) struct Call<'a> {
    /// Where it goes first.
    pub(super) place: &'a str,
    pub(super) makefile: Option<&'a str>,
    /// Empty text is the first target.
    pub(super) targets: Vec<String>,
    /// Whatever is there is made anew.
    always: bool,
}

impl<'a> Call<'a> {
    pub(super) fn of(arguments: &[&'a str]) -> Self {
        let mut call = Self { place: "", makefile: None, targets: Vec::new(), always: false };
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "-C" | "--directory" => call.place = words.next().unwrap_or_default(),
                "-f" | "--file" | "--makefile" => call.makefile = words.next(),
                "-I" | "-o" | "-W" | "--include-dir" | "--old-file" | "--what-if" => drop(words.next()),
                "-B" | "--always-make" => call.always = true,
                _ if word.starts_with('-') => {
                    let of = |names: [&str; 2]| names.into_iter().find_map(|name| word.strip_prefix(name));
                    call.place = of(["-C", "--directory="]).unwrap_or(call.place);
                    call.makefile = of(["-f", "--file="]).or(call.makefile);
                }
                _ if word.contains('=') => {}
                _ => call.targets.push(word.to_owned()),
            }
        }
        if call.targets.is_empty() {
            call.targets.push(String::new());
        }
        call
    }

    /// Targets that the call leads to and that are tasks, by this makefile.
    pub(super) fn tasks(&self, makefile: &str) -> BTreeSet<String> {
        if self.always { BTreeSet::new() } else { tasks(makefile, &self.targets) }
    }
}

/// Targets that these lead to, that make nothing of their own name, and that make takes for made as soon as a file has it.
pub(super) fn tasks(makefile: &str, targets: &[String]) -> BTreeSet<String> {
    let text = makefile.replace("\\\n", " ");
    let rules = Rules::of(&text);
    let mut open: Vec<&str> = targets.iter().map(|target| if target.is_empty() { rules.first } else { target }).collect();
    let mut reached = BTreeSet::new();
    while let Some(target) = open.pop() {
        if reached.insert(target) {
            open.extend(rules.needs(target));
        }
    }
    let is_taken = |target: &&str| rules.is_task(target) && !rules.runs_anyway(target, &mut BTreeSet::new());
    reached.into_iter().filter(is_taken).map(str::to_owned).collect()
}

#[derive(Default)]
struct Rule<'a> {
    needs: Vec<&'a str>,
    recipe: Vec<&'a str>,
    /// `name::`, which is made each time.
    double: bool,
}

#[derive(Default)]
struct Rules<'a> {
    first: &'a str,
    by_name: BTreeMap<&'a str, Rule<'a>>,
    /// Every target may be phony: what is, is computed.
    unknown: bool,
}

impl<'a> Rules<'a> {
    fn of(text: &'a str) -> Self {
        let mut rules = Self::default();
        let mut current: Vec<&str> = Vec::new();
        for line in text.lines() {
            if line.starts_with('\t') {
                for name in &current {
                    rules.by_name.entry(name).or_default().recipe.push(line);
                }
                continue;
            }
            let line = line.split('#').next().unwrap_or_default();
            if line.starts_with("MAKEFLAGS") && (line.contains("-B") || line.contains("--always-make")) {
                rules.unknown = true;
            }
            let Some((names, rest)) = line.split_once(':') else { continue };
            if names.contains('=') || rest.starts_with('=') || rest.starts_with(":=") || line.starts_with(' ') {
                continue;
            }
            let (rest, double) = rest.strip_prefix(':').map_or((rest, false), |rest| (rest, true));
            let (needs, inline) = rest.split_once(';').map_or((rest, None), |(needs, inline)| (needs, Some(inline)));
            // What stands after the bar only has to be there.
            let needs = needs.split('|').next().unwrap_or_default();
            current = names.split_whitespace().collect();
            rules.unknown |= current.contains(&".PHONY") && needs.contains('$');
            for name in &current {
                if rules.first.is_empty() && !name.starts_with('.') {
                    rules.first = name;
                }
                let rule = rules.by_name.entry(name).or_default();
                rule.needs.extend(needs.split_whitespace());
                rule.recipe.extend(inline);
                rule.double |= double;
            }
        }
        rules
    }

    fn needs(&self, target: &str) -> &[&'a str] {
        self.by_name.get(target).map_or(&[], |rule| &rule.needs)
    }

    fn is_phony(&self, target: &str) -> bool {
        self.unknown || self.needs(".PHONY").contains(&target)
    }

    fn is_task(&self, target: &str) -> bool {
        let Some(rule) = self.by_name.get(target) else { return false };
        let plain = !target.starts_with('.') && !target.contains(['%', '$', '*', '=']);
        plain && !rule.double && !rule.recipe.is_empty() && !self.is_phony(target) && !makes(target, &rule.recipe)
    }

    /// Whether something that it needs is made each time, so that its own recipe runs each time.
    fn runs_anyway(&self, target: &'a str, seen: &mut BTreeSet<&'a str>) -> bool {
        self.needs(target).iter().any(|need| {
            let forces =
                self.by_name.get(need).is_some_and(|rule| rule.double || rule.recipe.is_empty() && rule.needs.is_empty());
            let again = forces || self.is_phony(need) || self.is_task(need);
            again || seen.insert(need) && self.runs_anyway(need, seen)
        })
    }
}

/// Whether a recipe seems to make the file of its target.
fn makes(target: &str, recipe: &[&str]) -> bool {
    let below = format!("{target}/");
    recipe.iter().any(|line| {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_start_matches(['@', '-', '+'])).collect();
        let is_it = |word: &str| word == target || word.starts_with(&below) || word.strip_prefix('>') == Some(target);
        let made = words.windows(2).any(|pair| {
            is_it(pair[1])
                && (matches!(pair[0], "o" | ">" | ">>" | "touch" | "mkdir" | "p" | "output") || pair[1].starts_with('>'))
        });
        let copied = words.first().is_some_and(|first| matches!(*first, "cp" | "mv" | "ln" | "install"));
        line.contains("$@") || line.contains("$(@") || made || copied && words.last().is_some_and(|last| is_it(last))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(makefile: &str, call: &str) -> Vec<String> {
        Call::of(&call.split_whitespace().collect::<Vec<_>>()).tasks(makefile).into_iter().collect()
    }

    #[test]
    fn a_task_that_is_not_phony_is_taken_for_made() {
        assert_eq!(of("test:\n\tsh tests/greet\n", "test"), ["test"]);
        assert_eq!(of("all: lint\n\ntest: unit\n\nunit:\n\tnpm run unit\nlint:\n\tnpm run lint\n", "test"), ["unit"]);
        assert_eq!(of("X := 1\ncheck: ; npm test\n", ""), ["check"]);
        assert_eq!(of("test: src/a.c\n\tcargo test\n", "-j 2 test V=1"), ["test"]);
    }

    #[test]
    fn what_is_phony_makes_its_file_or_runs_anyway_is_not() {
        for makefile in [
            ".PHONY: all test\ntest:\n\tsh tests/greet\n",
            ".PHONY: all \\\n  test\ntest:\n\tsh tests/greet\n",
            ".PHONY: $(TASKS)\ntest:\n\tsh tests/greet\n",
            "MAKEFLAGS += -B\ntest:\n\tsh tests/greet\n",
            "test::\n\tsh tests/greet\n",
            "test: FORCE\n\tsh tests/greet\nFORCE:\n",
            ".PHONY: build\ntest: build\n\tsh tests/greet\nbuild:\n\tcc a.c\n",
            "test: test.c\n\tcc test.c -o test\n",
            "test: test.c\n\tcc $< -o $@\n",
            "test:\n\tmkdir -p test && cp a test/\n",
            "other:\n\ttrue\n",
        ] {
            assert_eq!(of(makefile, "test"), [""; 0], "{makefile}");
        }
        assert_eq!(of("test:\n\tsh tests/greet\n", "-B test"), [""; 0]);
    }

    #[test]
    fn a_call_says_where_by_what_and_for_what() {
        let read = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let call = Call::of(&words);
            (call.place.to_owned(), call.makefile.map(str::to_owned), call.targets)
        };
        let own = |place: &str, makefile: Option<&str>, target: &str| {
            (place.to_owned(), makefile.map(str::to_owned), vec![target.to_owned()])
        };
        assert_eq!(read("-C sub test"), own("sub", None, "test"));
        assert_eq!(read("-Csub --file=a.mk -k test CC=gcc"), own("sub", Some("a.mk"), "test"));
        assert_eq!(read("--directory=sub"), own("sub", None, ""));
    }
}
