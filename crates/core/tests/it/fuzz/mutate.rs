//! Changes an input at random; the same seed gives the same inputs.

/// The maximum input length, which exceeds what the readers accept.
const LONGEST: usize = 160 * 1024;

/// Xorshift with a multiplication: small, fast and good enough.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero would stay zero.
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number from 0 up to, but not including, `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Creates an input from others by a few changes.
pub(crate) fn mutate(random: &mut Random, corpus: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut bytes = random.pick(corpus).clone();
    for _ in 0..=random.below(5) {
        let other = random.pick(corpus);
        change(random, &mut bytes, other, words);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let at = random.below(bytes.len() + 1);
    let length = random.below(bytes.len() - at + 1).min(1 << random.below(12));
    match random.below(12) {
        0 => drop(bytes.drain(at..at + length)),
        1 => {
            let part = bytes[at..at + length].to_vec();
            bytes.splice(at..at, part);
        }
        // Repeats a part many times: depth and length are where readers break.
        2 => {
            let part =
                if random.below(2) == 0 { random.pick(words).as_bytes().to_vec() } else { bytes[at..at + length].to_vec() };
            let times = (1 << random.below(15)).min(LONGEST / part.len().max(1));
            bytes.splice(at..at, part.repeat(times));
        }
        3..=6 => drop(bytes.splice(at..at, random.pick(words).bytes())),
        7 => drop(bytes.splice(at..at + length, random.pick(words).bytes())),
        8 => {
            let from = random.below(other.len() + 1);
            let to = from + random.below(other.len() - from + 1);
            bytes.splice(at..at + length, other[from..to].iter().copied());
        }
        9 => bytes.insert(at, random.below(256) as u8),
        10 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        _ => bytes.truncate(at),
    }
}
