//! Parses the options in a command's arguments.

use verdone_shell::Word;

/// Options of `git commit` and similar commands that take the next word as their value.
pub(super) const COMMIT_VALUED: &[&str] =
    &["-m", "--message", "-F", "--file", "-C", "-c", "--author", "--date", "-t", "--template", "--trailer"];

/// The arguments of one command. Unknown words are ignored, because rules only ask for what is certain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a> {
    words: &'a [Word],
}

impl<'a> Arguments<'a> {
    pub(super) fn new(words: &'a [Word]) -> Self {
        Self { words }
    }

    /// The words before `--`.
    fn options(&self) -> impl Iterator<Item = &'a str> {
        self.words.iter().map_while(|word| (word.literal() != Some("--")).then(|| word.prefix()))
    }

    /// A long option, in full or abbreviated to at least `shortest` bytes; also with a value after `=`.
    pub(super) fn long(&self, name: &str, shortest: usize) -> bool {
        self.options().any(|word| {
            let given = word.split('=').next().unwrap_or_default();
            given.len() >= shortest && given.starts_with("--") && name.starts_with(given)
        })
    }

    /// Like `long`, but skips the values of `valued` options and of clusters that end in one.
    pub(super) fn long_beside(&self, name: &str, shortest: usize, valued: &[&str]) -> bool {
        let mut skip = false;
        self.options().any(|word| {
            if std::mem::take(&mut skip) {
                return false;
            }
            let cluster = word.starts_with('-') && !word.starts_with("--");
            skip = valued.iter().any(|option| *option == word || (cluster && option.len() == 2 && word.ends_with(&option[1..])));
            word.len() >= shortest && word.starts_with("--") && name.starts_with(word)
        })
    }

    /// A short option, alone or in a cluster. The letters in `valued` take the rest of the cluster, or the next word, as their value.
    pub(super) fn short(&self, letter: char, valued: &str) -> bool {
        let mut skip = false;
        self.options().any(|word| {
            if std::mem::take(&mut skip) {
                return false;
            }
            let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { return false };
            for (at, c) in cluster.char_indices() {
                if c == letter {
                    return true;
                }
                if valued.contains(c) {
                    skip = at + c.len_utf8() == cluster.len();
                    return false;
                }
            }
            false
        })
    }

    /// One of these exact words, before `--`.
    pub(super) fn any(&self, names: &[&str]) -> bool {
        self.options().any(|word| names.contains(&word))
    }

    /// The words that are not options; `valued` options take the next word.
    pub(super) fn operands(&self, valued: &[&str]) -> Vec<&'a Word> {
        let mut out = Vec::new();
        let (mut skip, mut only) = (false, false);
        for word in self.words {
            let prefix = word.prefix();
            if std::mem::take(&mut skip) {
                continue;
            }
            if only || !prefix.starts_with('-') || prefix == "-" {
                out.push(word);
            } else if word.literal() == Some("--") {
                only = true;
            } else {
                skip = valued.contains(&prefix);
            }
        }
        out
    }

    pub(super) fn first(&self) -> Option<&'a str> {
        self.operands(&[]).first().and_then(|word| word.literal())
    }

    pub(super) fn has_separator(&self) -> bool {
        self.words.iter().any(|word| word.literal() == Some("--"))
    }

    /// The values of an option, attached to it or in the next word.
    pub(super) fn value(&self, names: &[&str]) -> Vec<Word> {
        let mut out = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            for name in names {
                let given = word.prefix().split('=').next().unwrap_or_default();
                // Long options may be abbreviated as long as they are unambiguous.
                let cut = given.len() >= 5 && given.len() < name.len() && name.starts_with(given) && given.starts_with("--");
                if word.literal() == Some(name) || (cut && word.literal() == Some(given)) {
                    out.extend(self.words.get(at + 1).cloned());
                } else if let Some(value) = word.without_prefix(&format!("{name}=")) {
                    out.push(value);
                } else if let Some(value) = word.without_prefix(&format!("{given}=")).filter(|_| cut) {
                    out.push(value);
                } else if !name.starts_with("--")
                    && name.len() == 2
                    && let Some(value) = word.without_prefix(name)
                {
                    out.push(value);
                }
            }
        }
        out
    }

    /// The values of a short option, also at the end of or inside a cluster; the letters in `valued` end a cluster.
    pub(super) fn clustered(&self, letter: char, valued: &str) -> Vec<Word> {
        let mut out = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            let Some(cluster) = word.prefix().strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { continue };
            let Some(end) = cluster.find(|c| c == letter || valued.contains(c)).filter(|end| cluster[*end..].starts_with(letter))
            else {
                continue;
            };
            let value = word.without_prefix(&format!("-{}", &cluster[..=end])).filter(|rest| rest.literal() != Some(""));
            out.extend(value.or_else(|| self.words.get(at + 1).cloned()));
        }
        out
    }

    pub(super) fn all(&self) -> &'a [Word] {
        self.words
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}
