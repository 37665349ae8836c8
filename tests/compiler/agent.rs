//! agent.yaml.

use crate::fixture::{Fixture, PROJECT};

#[test]
fn a_small_project_has_no_findings() {
    let fixture = Fixture::new(PROJECT);
    assert_eq!(fixture.lines(), Vec::<String>::new());
}
