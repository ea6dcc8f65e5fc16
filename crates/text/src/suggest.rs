//! Suggests the name that was probably meant.

/// The closest known name, if it is close enough to be a typo.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' ', '.'], "_");
    let name = plain(name);
    let farthest = allowed(&name);
    let near = |candidate: &&'n str| {
        let candidate = plain(candidate);
        // "timeout" for "turn_timeout", "iterations" for "max_iterations".
        let contains = name.len() >= 4 && (candidate.contains(&name) || (candidate.len() >= 4 && name.contains(&candidate)));
        let distance = distance(&name, &candidate);
        if distance <= farthest {
            Some(distance)
        } else if contains {
            Some(farthest + 1)
        } else {
            None
        }
    };
    known.into_iter().filter_map(|candidate| near(&candidate).map(|cost| (cost, candidate))).min().map(|(_, name)| name)
}

/// Whether a name as a whole is a slip for this one, so that no part of it counts.
pub fn is_slip(name: &str, known: &str) -> bool {
    distance(&name.to_lowercase(), &known.to_lowercase()) <= allowed(name)
}

/// How many letters a slip may change.
fn allowed(name: &str) -> usize {
    (name.chars().count() / 3).clamp(1, 3)
}

/// The edit distance between two names (insert, delete, replace, swap of neighbours).
pub fn distance(a: &str, b: &str) -> usize {
    // Hostile names may be long, but no typo is.
    const LONGEST: usize = 64;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(LONGEST).collect(), b.chars().take(LONGEST).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_the_name_that_was_meant() {
        let known = ["max_iterations", "attempts", "turns", "turn_time", "gate", "limits", "command", "scripted"];
        for (name, meant) in [
            ("turn", Some("turns")),
            ("max-iterations", Some("max_iterations")),
            ("iterations", Some("max_iterations")),
            ("atempts", Some("attempts")),
            ("gates", Some("gate")),
            ("limit", Some("limits")),
            ("comand", Some("command")),
            ("COMMAND", Some("command")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), known), None);
    }
}
