//! Texts and JSON values changed at random, from a fixed start.

use serde_json::Value;

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

    /// The same for a JSON text: mostly its values change, so that it stays one.
    pub(super) fn mutate_json(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let seed = &seeds[self.below(seeds.len())];
        let value = serde_json::from_slice(seed);
        match value {
            Ok(mut value) if self.below(8) != 0 => {
                for _ in 0..=self.below(6) {
                    self.change_value(&mut value, 0);
                }
                value.to_string().into_bytes()
            }
            _ => self.mutate(seeds),
        }
    }

    /// Goes down at random, and changes what it comes to.
    fn change_value(&mut self, value: &mut Value, depth: usize) {
        let down = self.below(5) != 0 && depth < 40;
        match value {
            Value::Array(items) if down && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(12) {
                    0 => drop(items.remove(at)),
                    1 if items.len() < 200 => items.push(items[at].clone()),
                    _ => self.change_value(&mut items[at], depth + 1),
                }
            }
            Value::Object(map) if down && !map.is_empty() => {
                let at = self.below(map.len());
                let key = map.keys().nth(at).cloned().unwrap_or_default();
                match self.below(12) {
                    0 => drop(map.remove(&key)),
                    1 => {
                        // The value under another key: a keyword's where a property's stood, and the reverse.
                        let value = map[&key].clone();
                        let other = self.word();
                        map.insert(other, value);
                    }
                    2 => {
                        let new = self.value();
                        let key = self.word();
                        map.insert(key, new);
                    }
                    _ => {
                        if let Some(inner) = map.get_mut(&key) {
                            self.change_value(inner, depth + 1);
                        }
                    }
                }
            }
            _ if self.below(4) == 0 => {
                // One level more, of what is there.
                let inner = value.take();
                *value = match self.below(3) {
                    0 => Value::Array(vec![inner.clone(), inner]),
                    1 => serde_json::json!({"type": "object", "properties": {"a": inner}}),
                    _ => serde_json::json!({"anyOf": [inner], "$ref": "#"}),
                };
            }
            _ => *value = self.value(),
        }
    }

    /// A word of the dictionary without its quotes.
    fn word(&mut self) -> String {
        let word = self.dictionary[self.below(self.dictionary.len())];
        word.trim_matches('"').to_owned()
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::from(self.state as i64 >> self.below(64)),
            3 => Value::from(f64::from_bits(self.state)),
            4 => serde_json::json!([]),
            5 => serde_json::json!({}),
            _ => Value::String(self.word()),
        }
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
