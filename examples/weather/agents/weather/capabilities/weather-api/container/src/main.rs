//! The weather capability's server: two tools over built-in climate normals.

mod normals;
mod tools;

use std::process::ExitCode;

fn main() -> ExitCode {
    selu_example_support::serve(tools::Weather::new())
}
