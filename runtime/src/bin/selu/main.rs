//! The `selu` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((role, rest)) if role == "gateway" => selu_runtime::egress::main(rest),
        _ => ExitCode::from(64),
    }
}
