//! Compiles the `.proto` files with protox, so that no system `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sources = [
        "selu/capability/v1/capability.proto",
        "selu/capability/v1/older.proto",
    ];
    let files = protox::compile(sources, ["."])?;
    tonic_prost_build::configure().compile_fds(files)?;
    println!("cargo::rerun-if-changed=selu");
    Ok(())
}
