//! Tools that use up what they are given.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Calls one of them; `None` if it is none.
pub(crate) fn call(tool: &str, arguments: &Value) -> Option<Result<Value, String>> {
    let number = |name: &str| arguments[name].as_u64().unwrap_or(0);
    Some(match tool {
        "burn" => Ok(burn(Duration::from_secs(number("seconds")))),
        "eat" => Ok(eat(number("mb"))),
        "fork" => fork(number("processes")),
        "wait" => {
            std::thread::sleep(Duration::from_millis(number("ms")));
            Ok(json!({}))
        }
        "never" => loop {
            println!("probe: never ends");
            std::thread::sleep(Duration::from_secs(3600));
        },
        _ => return None,
    })
}

/// Keeps one core busy for so long.
fn burn(time: Duration) -> Value {
    let start = Instant::now();
    let mut turns: u64 = 0;
    while start.elapsed() < time {
        turns = std::hint::black_box(turns.wrapping_mul(31).wrapping_add(7));
    }
    json!(turns)
}

/// Writes to so much memory, and keeps it until the end.
fn eat(mb: u64) -> Value {
    let mut kept = Vec::new();
    for _ in 0..mb {
        kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
    json!(kept.len())
}

/// Starts processes that stay.
fn fork(processes: u64) -> Result<Value, String> {
    let mut started: Vec<Child> = Vec::new();
    for _ in 0..processes {
        let child = Command::new("/probe").arg("silent").spawn();
        started.push(child.map_err(|error| format!("after {}: {error}", started.len()))?);
    }
    Ok(json!(started.len()))
}
