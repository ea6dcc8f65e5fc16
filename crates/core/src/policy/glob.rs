//! File globs: `*` and `?` stay inside a name, `**` does not.

/// Whether the whole text fits. Time is at most the product of the lengths for each `**`.
pub(crate) fn fits(glob: &str, text: &str) -> bool {
    if !glob.contains(['*', '?']) {
        return glob == text;
    }
    let glob: Vec<char> = glob.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // One row of the table of (rest of glob, rest of text): no backtracking, so no pattern is slow.
    let mut row = vec![false; text.len() + 1];
    row[text.len()] = true;
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
                    next[start] |= begins && fits_rest(&glob[at + 3..], &text[start..]);
                }
            }
        }
        row = next;
    }
    row[0]
}

fn fits_rest(glob: &[char], text: &[char]) -> bool {
    fits(&glob.iter().collect::<String>(), &text.iter().collect::<String>())
}
