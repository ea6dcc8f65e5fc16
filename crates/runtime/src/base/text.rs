//! Formats lists of names for messages.

/// How many names a message lists.
const SHOWN: usize = 8;

/// The first few names, and how many more there are.
pub(crate) fn listed<N: AsRef<str>>(names: &[N]) -> String {
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| name.as_ref().to_owned()).collect();
    if names.len() > SHOWN {
        shown.push(format!("and {} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_says_how_many_names_it_leaves_out() {
        let names: Vec<String> = (1..=10).map(|n| n.to_string()).collect();
        assert_eq!(listed(&names[..8]), "1, 2, 3, 4, 5, 6, 7, 8");
        assert_eq!(listed(&names), "1, 2, 3, 4, 5, 6, 7, 8, and 2 more");
        assert_eq!(listed::<&str>(&[]), "");
    }
}
