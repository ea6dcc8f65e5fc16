//! The part of a makefile that some of its targets may depend on.

use std::collections::{BTreeMap, BTreeSet};

/// Every line but those of rules that the targets do not lead to. Patterns, computed names, conditions and definitions stay: what they
/// mean for a target is make's to say. An empty target is the first one.
pub(super) fn decisive<'a>(makefile: &'a str, targets: &'a BTreeSet<String>) -> Vec<&'a str> {
    let mut wants: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut first = "";
    for (names, needs) in makefile.lines().filter_map(rule) {
        for name in names {
            if first.is_empty() && !name.starts_with('.') {
                first = name;
            }
            wants.entry(name).or_default().extend(needs.split_whitespace());
        }
    }
    let mut open: Vec<&str> = targets.iter().map(|target| if target.is_empty() { first } else { target.as_str() }).collect();
    let mut reached = BTreeSet::new();
    while let Some(target) = open.pop() {
        if reached.insert(target) {
            open.extend(wants.get(target).into_iter().flatten());
        }
    }
    let mut inside = true;
    let in_reach = |line: &&str| {
        let said = !line.trim().is_empty() && !line.starts_with('#');
        if let Some((mut names, _)) = rule(line) {
            inside = names.any(|name| !is_plain(name) || reached.contains(name));
        } else if said && !line.starts_with('\t') {
            inside = true;
        }
        said && inside
    };
    makefile.lines().filter(in_reach).collect()
}

/// The targets of a rule's line, and what they need.
fn rule(line: &str) -> Option<(impl Iterator<Item = &str>, &str)> {
    let (names, needs) = line.split_once(':')?;
    let sets = needs.starts_with('=') || needs.starts_with(":=") || names.contains('=');
    (!sets && !line.starts_with(['\t', ' ', '#'])).then(|| (names.split_whitespace(), needs.split(';').next().unwrap_or(needs)))
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(['%', '$', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_that_a_target_does_not_lead_to_are_left_out() {
        let makefile = "X := 1\nall: a\n\tcc a\n\nown: deep\n\t./a\n\n# note\ndeep:\n\tsh deep.sh\nother: ; true\nother2:\n\techo\n%.o: %.c\n\tcc $<\n\
                        ifdef X\nendif\n";
        let of = |target: &str| decisive(makefile, &BTreeSet::from([target.to_owned()])).join("|");
        let rest = "%.o: %.c|\tcc $<|ifdef X|endif";
        assert_eq!(of("own"), format!("X := 1|own: deep|\t./a|deep:|\tsh deep.sh|{rest}"));
        assert_eq!(of(""), format!("X := 1|all: a|\tcc a|{rest}"));
        assert_eq!(of("none"), format!("X := 1|{rest}"));
        assert!(decisive("::\n:\n\t\n=:=\n", &BTreeSet::new()).len() <= 4);
    }
}
