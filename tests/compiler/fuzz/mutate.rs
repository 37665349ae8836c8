//! Texts changed at random, from a fixed start.

/// Longest text that is made.
const LONGEST: usize = 64 * 1024;

/// Makes the same texts from the same start.
pub(super) struct Mutator<'a> {
    state: u64,
    dictionary: &'a [&'a str],
}

impl<'a> Mutator<'a> {
    pub(super) fn new(seed: u64, dictionary: &'a [&'a str]) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            dictionary,
        }
    }

    /// One of the seeds with one to eight changes.
    pub(super) fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut text = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut text, seeds);
            text.truncate(LONGEST);
        }
        text
    }

    fn change(&mut self, text: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let from = self.below(text.len() + 1);
        let most = 1 << self.below(9);
        let to = (from + self.below(most)).min(text.len());
        match self.below(9) {
            0 => drop(text.drain(from..to)),
            1 => {
                // Several times over, to nest and to repeat.
                let slice = text[from..to].repeat(1 << self.below(8));
                text.splice(from..from, slice);
            }
            2 | 3 => {
                let word = self.dictionary[self.below(self.dictionary.len())];
                let word = word.repeat(if self.below(20) == 0 { 300 } else { 1 });
                text.splice(from..from, word.into_bytes());
            }
            4 => {
                let word = self.dictionary[self.below(self.dictionary.len())];
                text.splice(from..to, word.bytes());
            }
            5 => {
                let byte = self.below(256) as u8;
                text.insert(from, byte);
            }
            6 => {
                if let Some(byte) = text.get_mut(from) {
                    *byte ^= 1 << self.below(8);
                }
            }
            7 => {
                // A piece of another seed.
                let other = &seeds[self.below(seeds.len())];
                let start = self.below(other.len() + 1);
                let end = (start + self.below(200)).min(other.len());
                text.splice(from..to, other[start..end].iter().copied());
            }
            _ => {
                // A line or so elsewhere.
                let piece: Vec<u8> = text.drain(from..to).collect();
                let at = self.below(text.len() + 1);
                text.splice(at..at, piece);
            }
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 11) % end.max(1) as u64) as usize
    }
}
