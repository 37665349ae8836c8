//! One target run over kept seeds and over what is made of them.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// One run may take this long: a guard against hanging, not a measure of speed.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs a target over the seeds and then over what `next` makes of them. `share` is how many runs it gets unless
/// `SELU_FUZZ_RUNS` says: slow ones get fewer. The process may have held `memory_kb` in the end.
#[allow(
    clippy::print_stdout,
    reason = "how far it came is for whoever runs it"
)]
pub(super) fn run(
    name: &str,
    share: u64,
    memory_kb: u64,
    seeds: &[Vec<u8>],
    mut next: impl FnMut(&[Vec<u8>]) -> Vec<u8>,
    mut target: impl FnMut(&[u8]),
) {
    let runs = variable("SELU_FUZZ_RUNS").unwrap_or(share);
    let mut longest = Duration::ZERO;
    for run in 0..runs + seeds.len() as u64 {
        let input = match seeds.get(usize::try_from(run).unwrap()) {
            Some(seed) => seed.clone(),
            None => next(seeds),
        };
        let began = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let took = began.elapsed();
        assert!(
            ended.is_ok() && took < LONGEST,
            "{name}, run {run}, {took:?}: \"{}\"",
            input.escape_ascii()
        );
        longest = longest.max(took);
    }
    let held = held_kb();
    println!("{name}: {runs} runs, the longest {longest:?}, at most {held} kB");
    assert!(held < memory_kb);
}

/// Where the random changes begin: `SELU_FUZZ_SEED`, or always the same.
pub(super) fn first_seed() -> u64 {
    variable("SELU_FUZZ_SEED").unwrap_or(1)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The most memory that the process has held.
fn held_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}
