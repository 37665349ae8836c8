use super::image;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Registry, repository, tag and digest, written with `|`; or the code of the error.
fn read(text: &str) -> String {
    let (image, problems) = image(text);
    match image {
        Some(image) => {
            assert_eq!(image.written, text);
            assert!(problems.iter().all(|problem| !problem.is_error()));
            format!(
                "{}|{}|{}|{}",
                image.registry,
                image.repository,
                image.tag.unwrap_or_default(),
                image.digest.unwrap_or_default()
            )
        }
        None => {
            assert_eq!(problems.len(), 1, "{text}");
            assert!(problems[0].is_error());
            problems[0].code.name.to_owned()
        }
    }
}

fn warnings(text: &str) -> Vec<&'static str> {
    image(text)
        .1
        .iter()
        .map(|problem| problem.code.name)
        .collect()
}

#[test]
fn names_are_filled_in_as_docker_does() {
    for (text, expected) in [
        ("redis:7", "docker.io|library/redis|7|"),
        ("redis", "docker.io|library/redis|latest|"),
        ("docker.io/redis:7", "docker.io|library/redis|7|"),
        ("index.docker.io/redis:7", "docker.io|library/redis|7|"),
        ("mcp/fetch:1", "docker.io|mcp/fetch|1|"),
        ("myhost/x:1", "docker.io|myhost/x|1|"),
        ("ghcr.io/acme/a/b:V1", "ghcr.io|acme/a/b|V1|"),
        ("GHCR.io/acme/b:1", "ghcr.io|acme/b|1|"),
        ("a__b/c--d.e_f:1", "docker.io|a__b/c--d.e_f|1|"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn a_port_is_not_a_tag_b02() {
    for (text, expected) in [
        ("localhost:5000/service", "localhost:5000|service|latest|"),
        ("localhost/service:2", "localhost|service|2|"),
        ("reg.lan:5000/team/cap:2", "reg.lan:5000|team/cap|2|"),
        ("[::1]:5000/x:1", "[::1]:5000|x|1|"),
        ("[::1]/x:1", "[::1]|x|1|"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    assert_eq!(
        read(&format!("127.0.0.1:5000/x@{DIGEST}")),
        format!("127.0.0.1:5000|x||{DIGEST}")
    );
}

#[test]
fn a_tag_beside_a_digest_is_kept_i3() {
    assert_eq!(
        read(&format!("redis:7@{DIGEST}")),
        format!("docker.io|library/redis|7|{DIGEST}")
    );
}

#[test]
fn capital_letters_in_the_path_are_named_and_mended_b03() {
    for (text, better) in [
        ("ghcr.io/Acme/Cap:V1", "ghcr.io/acme/cap:V1"),
        ("Acme/cap:1", "acme/cap:1"),
        ("Redis", "redis"),
    ] {
        let (read, problems) = image(text);
        assert_eq!(read, None);
        assert_eq!(problems[0].suggestion.as_deref(), Some(better));
        assert!(problems[0].message.contains("capital letter"), "{text}");
    }
}

#[test]
fn what_is_no_reference_is_an_error() {
    let long_tag = format!("redis:{}", "t".repeat(129));
    let long_name = format!("{}:1", "n".repeat(256));
    let hex = "0123456789abcdef".repeat(4);
    for text in [
        "",
        "redis:",
        "redis:-1",
        "redis:.1",
        "redis:1:2",
        "redis:a b",
        " redis:1",
        "redis@",
        "redis@sha256:abc",
        "redis@1.2.3",
        "redis@sha512:0123",
        ":1",
        "/redis",
        "redis/",
        "a//b",
        "a/-b",
        "a-/b",
        "a..b",
        "a___b",
        "a._b",
        "ghcr.io/",
        "ghcr.io:0/x",
        "ghcr.io:70000/x",
        "ghcr.io:x/y",
        "-ghcr.io/x",
        "gh..io/x",
        "[::1]:5000",
        "[::1",
        "[xyz]/a",
        "[::1]5000/a",
        "https://ghcr.io/acme/cap:1",
        "docker://redis:7",
        "@acme/weather:1.0.0",
        "mcp-server==1.0",
        "1.10",
        "réseau:1",
        &long_tag,
        &long_name,
        &hex,
    ] {
        assert_eq!(read(text), "image-invalid", "{text}");
    }
}

#[test]
fn a_package_is_told_from_an_image_i0() {
    assert!(
        image("@notainc/gyazo-mcp-server:0.1.0").1[0]
            .message
            .contains("npm")
    );
    assert!(image("mcp-server-git==1.0").1[0].message.contains("PyPI"));
}

#[test]
fn what_moves_is_a_warning_i2() {
    assert_eq!(warnings("redis"), ["image-untagged"]);
    assert_eq!(warnings("redis:latest"), ["image-latest"]);
    assert_eq!(warnings("redis:latest-alpine"), ["image-latest"]);
    assert_eq!(
        warnings(&format!("redis:latest@{DIGEST}")),
        ["image-latest"]
    );
    assert_eq!(warnings("redis:7"), [""; 0]);
    assert_eq!(warnings("redis:greatest"), [""; 0]);
    assert_eq!(warnings(&format!("redis@{DIGEST}")), [""; 0]);
}
