//! Regular expressions, compiled with the engine that checks calls (I12).

use std::collections::HashMap;

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::walk::Walk;
use super::{REGEX_BYTES_MAX, pointer, with_regex_bytes};
use crate::diag::codes::tools as codes;
use crate::diag::{Problem, shown};

/// Distinct expressions of one schema: each takes time to compile, and schemas come from containers too.
const COUNT_MAX: usize = 200;

/// Those among them that are large once compiled, such as `^\p{L}{1,100}$`.
const LARGE_MAX: usize = 10;

/// Those that are listed as refused: finding out that one is too large takes as long as compiling it.
const REFUSED_MAX: usize = 20;

/// Bytes from which a compiled expression is large.
const LARGE_BYTES: usize = 64 * 1024;

/// What compiling an expression came to.
#[derive(PartialEq)]
enum Compiled {
    Small,
    Large,
    Refused,
}

/// Expressions that do not compile, and the first that is one too many.
pub(super) fn problems(walk: &Walk<'_>) -> Vec<Problem> {
    let mut known: HashMap<&str, Compiled> = HashMap::new();
    let (mut large, mut refused) = (0, 0);
    let mut problems = Vec::new();
    let all = walk
        .locations
        .iter()
        .flat_map(|location| expressions(&location.pointer, location.map));
    for (text, place, at_key) in all {
        if !known.contains_key(text) {
            let compiled = compile(text, walk.draft);
            large += usize::from(compiled == Compiled::Large);
            refused += usize::from(compiled == Compiled::Refused);
            known.insert(text, compiled);
        }
        let problem = if known.len() > COUNT_MAX || large > LARGE_MAX || refused > REFUSED_MAX {
            Problem::new(
                &codes::SCHEMA_TOO_LARGE,
                format!(
                    "too many regular expressions: at most {COUNT_MAX}, of which {LARGE_MAX} may be large once compiled, and no more than {REFUSED_MAX} wrong ones are listed"
                ),
            )
        } else if known.get(text) == Some(&Compiled::Refused) {
            Problem::new(
                &codes::SCHEMA_REGEX,
                format!(
                    "`{}` does not compile as a regular expression, or is too large",
                    shown(text)
                ),
            )
        } else {
            continue;
        };
        let last = problem.code == &codes::SCHEMA_TOO_LARGE;
        problems.push(if at_key {
            problem.at_key(place)
        } else {
            problem.at(place)
        });
        if last {
            break;
        }
    }
    problems
}

/// Each expression of a subschema with its place, and whether it is a key.
fn expressions<'a>(
    at: &str,
    map: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a str, String, bool)> {
    let pattern = map
        .get("pattern")
        .and_then(Value::as_str)
        .map(|text| (text, format!("{at}/pattern"), false));
    let place = format!("{at}/patternProperties");
    let keys = map
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .map(move |key| (key.as_str(), pointer::push(&place, key), true));
    pattern.into_iter().chain(keys)
}

fn compile(text: &str, draft: Draft) -> Compiled {
    let probe = json!({ "pattern": text });
    let fits = |bytes: usize| with_regex_bytes(draft, bytes).build(&probe).is_ok();
    if fits(LARGE_BYTES) {
        Compiled::Small
    } else if fits(REGEX_BYTES_MAX) {
        Compiled::Large
    } else {
        Compiled::Refused
    }
}
