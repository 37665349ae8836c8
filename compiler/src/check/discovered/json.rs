//! JSON that is read without losing anything: a key that stands twice is found, which `serde_json` alone drops.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What was read.
pub(crate) struct Parsed {
    /// The last value of a key that stands twice.
    pub(crate) value: Value,
    /// Pointers of such keys.
    pub(crate) duplicates: Vec<String>,
}

/// Reads one value and nothing after it. Nesting is bounded by the library.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, serde_json::Error> {
    let duplicates = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Seed {
        place: String::new(),
        duplicates: &duplicates,
    }
    .deserialize(&mut reader)?;
    reader.end()?;
    Ok(Parsed {
        value,
        duplicates: duplicates.into_inner(),
    })
}

struct Seed<'a> {
    place: String,
    duplicates: &'a RefCell<Vec<String>>,
}

impl Seed<'_> {
    fn below(&self, segment: &str) -> Seed<'_> {
        Seed {
            place: format!(
                "{}/{}",
                self.place,
                segment.replace('~', "~0").replace('/', "~1")
            ),
            duplicates: self.duplicates,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below(&list.len().to_string()))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let below = self.below(&key);
            let place = below.place.clone();
            let value = entries.next_value_seed(below)?;
            if map.insert(key, value).is_some() {
                self.duplicates.borrow_mut().push(place);
            }
        }
        Ok(Value::Object(map))
    }
}
