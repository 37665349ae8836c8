//! The compiler from the outside: directories in, findings and a project out.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests
#![allow(clippy::print_stdout)] // a skipped test says so

mod fixture;
mod formats;

mod again;
mod agent;
mod codes;
mod corpus;
mod cures;
mod field;
mod fuzz;
mod layout;
mod levels;
mod manifest;
mod mutants;
mod purity;
mod render;
mod review;
mod rules;
mod same;
mod schemas;
mod settings;
mod yaml;
