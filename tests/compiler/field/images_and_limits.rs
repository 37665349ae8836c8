//! Sections B and C: images and limits.

use selu_compiler::check::image;

use super::{HEAD, capability};
use crate::fixture::{check_manifest, manifest};

/// Registry, repository and tag.
fn parts(text: &str) -> Option<(String, String, Option<String>)> {
    let (image, _) = image::image(text);
    image.map(|image| (image.registry, image.repository, image.tag))
}

#[test]
fn b02_a_port_is_not_a_tag() {
    let digest = format!("sha256:{}", "0".repeat(64));
    for (text, registry, repository, tag) in [
        (
            "localhost:5000/service",
            "localhost:5000",
            "service",
            Some("latest"),
        ),
        (
            "reg.lan:5000/team/cap:2",
            "reg.lan:5000",
            "team/cap",
            Some("2"),
        ),
        (
            &format!("127.0.0.1:5000/x@{digest}"),
            "127.0.0.1:5000",
            "x",
            None,
        ),
        ("[::1]:5000/x:1", "[::1]:5000", "x", Some("1")),
        ("myhost/x:1", "docker.io", "myhost/x", Some("1")),
    ] {
        let expected = (
            registry.to_owned(),
            repository.to_owned(),
            tag.map(str::to_owned),
        );
        assert_eq!(parts(text), Some(expected), "{text}");
    }
}

#[test]
fn b03_a_capital_letter_is_shown_with_the_lower_case_form() {
    let fixture = manifest("id: weather\nimage: ghcr.io/Acme/Cap:V1\n");
    assert_eq!(fixture.lines(), ["manifest.yaml:2:8 error image-invalid"]);
    let finding = &fixture.check().diagnostics[0];
    assert_eq!(finding.suggestion.as_deref(), Some("ghcr.io/acme/cap:V1"));
    assert!(finding.message.contains("`A`"), "{}", finding.message);
    assert_eq!(
        manifest("id: Wetter\nimage: a/b:V1\n").check().diagnostics[0]
            .suggestion
            .as_deref(),
        Some("wetter")
    );
}

#[test]
fn c01_memory_has_a_least_and_zero_is_not_unlimited() {
    for bad in ["4", "0", "-1", "5"] {
        let text = manifest(&format!("{HEAD}resources: {{max_memory_mb: {bad}}}\n")).text();
        assert!(text.contains("manifest.yaml:3:28"), "{text}");
        assert!(text.contains("from 6"), "{bad}: {text}");
    }
    let checked = manifest(&format!("{HEAD}resources: {{max_memory_mb: 6}}\n")).check();
    assert_eq!(capability(&checked).limits.memory_mb, 6);
}

#[test]
fn c03_more_cores_than_one_are_legal_without_an_engine() {
    // How many the host has is for `plan` to say (R1).
    assert_eq!(
        check_manifest(&format!("{HEAD}resources: {{max_cpu_fraction: 3}}\n")),
        [""; 0]
    );
}
