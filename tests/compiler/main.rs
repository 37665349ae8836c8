//! The compiler from the outside: directories in, findings and a project out.

mod fixture;

mod agent;
