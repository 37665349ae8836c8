//! Compiles `capability.proto` with protox, so that no system `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["selu/capability/v1/capability.proto"], ["."])?;
    tonic_prost_build::configure().compile_fds(files)?;
    println!("cargo::rerun-if-changed=selu");
    Ok(())
}
