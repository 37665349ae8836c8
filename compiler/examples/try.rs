fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let s = selu_compiler::source::read(dir.as_str().into());
    let c = selu_compiler::check::check(&s);
    print!(
        "{}",
        selu_compiler::diag::render::text(&c.diagnostics, &s, false)
    );
    println!("{}", c.project.is_some());
}
