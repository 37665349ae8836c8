//! The calculator capability's server: units and dates, without state, for several agents at once.

mod tools;
mod units;

use std::process::ExitCode;

fn main() -> ExitCode {
    selu_example_support::serve(tools::Calculator)
}
