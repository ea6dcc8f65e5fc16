//! Applies `export`, `declare`, `readonly` and `unset` to variables.

use super::Assignment;
use super::fragment::bits_of;
use super::scope::Scope;
use super::word::Word;

pub(super) fn is_declaration(name: &str) -> bool {
    matches!(name, "export" | "declare" | "typeset" | "local" | "readonly" | "unset")
}

/// Handles words whose text is known after expansion, such as `"$name=value"`. An unknown word may refer to any variable.
pub(super) fn declared_words(keyword: &str, options: &str, words: &[Word], scope: &mut Scope) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    for word in words.iter().filter(|word| !word.prefix().starts_with('-')) {
        if let Some((name, _)) = word.prefix().split_once('=') {
            let (name, append) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
            let value = word.without_prefix(&format!("{name}{}=", if append { "+" } else { "" }));
            let known = Assignment { name: name.to_owned(), value: value.unwrap_or_else(|| Word::any(false)) };
            scope.assign(name, bits_of(&known.value), append);
            mark(keyword, options, &known, scope);
            assignments.push(known);
        } else if let Some(name) = word.literal() {
            match keyword {
                // Only functions.
                "unset" if options.contains('f') => {}
                "unset" => scope.unset(name),
                _ => mark(keyword, options, &Assignment { name: name.to_owned(), value: Word::text("") }, scope),
            }
        } else {
            scope.doubt_all();
        }
    }
    assignments
}

/// Applies attributes that change the meaning of later assignments.
pub(super) fn mark(keyword: &str, options: &str, assigned: &Assignment, scope: &mut Scope) {
    if !is_declaration(keyword) || (keyword == "export" && !options.contains('n')) {
        return;
    }
    if keyword != "export" && options.contains('n') {
        // A name reference: two names for one variable.
        scope.make_wild(&assigned.name);
        match assigned.value.literal() {
            Some("") => {}
            Some(target) => scope.make_wild(target),
            None => scope.doubt_all(),
        }
    } else if options.contains(['i', 'l', 'u', 'c']) {
        scope.make_wild(&assigned.name);
    }
    if keyword == "readonly" || options.contains('r') {
        scope.fix(&assigned.name);
    }
}
