//! File globs: `*` and `?` stay inside a name, `**` does not.

/// Whether the whole text fits. Time is at most the product of the lengths.
pub(crate) fn fits(glob: &str, text: &str) -> bool {
    if !glob.contains(['*', '?']) {
        return glob == text;
    }
    let glob: Vec<char> = glob.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // One row of the table of (rest of glob, rest of text): no backtracking, so no pattern is slow.
    let mut row = vec![false; text.len() + 1];
    row[text.len()] = true;
    // The row before that: without the first character of the rest of the glob.
    let mut shorter = row.clone();
    let mut at = glob.len();
    while at > 0 {
        at -= 1;
        let deep = glob[at] == '*' && at > 0 && glob[at - 1] == '*';
        let mut next = vec![false; text.len() + 1];
        for start in (0..=text.len()).rev() {
            next[start] = match glob[at] {
                '*' => row[start] || (start < text.len() && (deep || text[start] != '/') && next[start + 1]),
                '?' => start < text.len() && text[start] != '/' && row[start + 1],
                c => start < text.len() && text[start] == c && row[start + 1],
            };
        }
        if deep {
            at -= 1;
            // `**/x` fits `x` as well.
            if glob.get(at + 2) == Some(&'/') {
                for start in 0..=text.len() {
                    let begins = start == 0 || text[start - 1] == '/';
                    next[start] |= begins && shorter[start];
                }
            }
        }
        shorter = std::mem::replace(&mut row, next);
    }
    row[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_stars_fit_any_number_of_folders_and_none() {
        let table = [
            ("**/x", "x", true),
            ("**/x", "a/x", true),
            ("**/x", "a/b/x", true),
            ("**/x", "ax", false),
            ("a/**/x", "a/x", true),
            ("a/**/x", "a/b/c/x", true),
            ("a/**/x", "ab/x", false),
            ("a/**", "a/b/c", true),
            ("**/a/**/b", "a/b", true),
            ("**/a/**/b", "x/a/y/z/b", true),
            ("**/a/**/b", "x/ab", false),
            ("*/x", "a/b/x", false),
            ("**/.verdone/notes/**", "p/.verdone/notes/n.md", true),
            ("/**/.mcp.json", "/home/u/.mcp.json", true),
            ("**/", "a/", true),
        ];
        for (glob, text, expected) in table {
            assert_eq!(fits(glob, text), expected, "{glob} {text}");
        }
    }

    #[test]
    fn a_path_of_many_folders_is_no_trouble() {
        let path = format!("{}/x", vec!["a"; 20_000].join("/"));
        assert!(fits("**/a/**/x", &path));
        assert!(!fits("**/b/**/x", &path));
    }
}
