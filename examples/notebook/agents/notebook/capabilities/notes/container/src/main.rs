//! The notebook capability's server: notes as text files in the workspace.

mod store;
mod tools;

use std::process::ExitCode;

/// Where the workspace is mounted (F3).
const WORKSPACE: &str = "/workspace";

fn main() -> ExitCode {
    selu_example_support::serve(tools::Notes::new(WORKSPACE))
}
