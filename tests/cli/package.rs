//! `selu package`: what an installer gets is what the project says, to the byte on every machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use selu_compiler::lock::Lock;
use selu_compiler::plan::hash::sha256_hex;
use selu_compiler::{check, resolve, source};

use super::{Desk, Ran};

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// An agent with a capability of its own and a shared one, locked, as it lies in a checkout.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("selu.toml", "[project]\nname = \"demo\"\n");
    desk.write(
        "agents/weather/agent.yaml",
        "id: weather\nname: Weather\ni18n: {default_locale: en, supported_locales: [en, de]}\ncapabilities: [{id: maps}]\n",
    );
    desk.write("agents/weather/agent.md", "You know the weather.\n");
    desk.write("agents/weather/agent.de.md", "Du kennst das Wetter.\n");
    desk.write(
        "agents/weather/i18n/en.yaml",
        "agent: {name: Weather, description: Tells the weather}\n",
    );
    desk.write(
        "agents/weather/i18n/de.yaml",
        "agent: {name: Wetter, description: Sagt das Wetter}\n",
    );
    desk.write("agents/weather/README.md", "Not for an installer.\n");
    let own = "agents/weather/capabilities/api";
    desk.write(&format!("{own}/prompt.md"), "Ask for the city first.\n");
    desk.write(&format!("{own}/prompt.de.md"), "Frag nach der Stadt.\n");
    desk.write(&format!("{own}/container/Dockerfile"), "FROM scratch\n");
    manifests(&desk, &format!("@{DIGEST}"));
    let root = camino::Utf8Path::from_path(desk.path()).unwrap();
    let project = check::check(&source::read(root)).project.unwrap();
    let plan = resolve::resolve(&project, None, None).plan.unwrap();
    let mut lock = Lock::merge(None, &plan, &BTreeMap::new(), &project.settings).lock;
    // As if a registry had said which digest a tag means.
    manifests(&desk, "");
    for instance in lock.instances.values_mut() {
        instance.image.written = instance.image.written.replace(&format!("@{DIGEST}"), "");
    }
    desk.write("selu.lock", &lock.write(None));
    desk.run(&["lock", "--check"]).exits(0);
    desk
}

fn manifests(desk: &Desk, digest: &str) {
    let tools = "tools:\n  - name: forecast\n    description: Tells it\n    recommended_policy: allow\n    input_schema: {type: object}\n";
    desk.write(
        "agents/weather/capabilities/api/manifest.yaml",
        &format!(
            "# The weather\r\nid: api\r\nimage: ghcr.io/acme/weather:1{digest}   # ours\r\n{tools}"
        ),
    );
    desk.write(
        "capabilities/maps/manifest.yaml",
        &format!("{{id: maps, image: 'maps:2{digest}', tools: []}}\n"),
    );
}

fn unpacked(desk: &Desk, archive: &str) -> Desk {
    let into = Desk::new();
    let ran = Command::new("tar")
        .args(["-xzf"])
        .arg(desk.path().join(archive))
        .arg("-C")
        .arg(into.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    into
}

fn listed(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            listed(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
    found.sort();
}

#[test]
fn an_archive_has_the_agents_files_its_images_by_digest_and_nothing_that_builds_them() {
    let desk = desk();
    let ran = desk
        .run(&[
            "package",
            "weather",
            "--release",
            "1.2.0",
            "--url",
            "https://example.org/w.tar.gz",
        ])
        .exits(0);
    let entry = ran.json();
    let bytes = std::fs::read(desk.path().join("weather.tar.gz")).unwrap();
    assert_eq!(
        entry,
        serde_json::json!({
            "id": "weather",
            "name": "Weather",
            "description": "Tells the weather",
            "name_localizations": { "en": "Weather", "de": "Wetter" },
            "description_localizations": { "en": "Tells the weather", "de": "Sagt das Wetter" },
            "version": "1.2.0",
            "archive_url": "https://example.org/w.tar.gz",
            "archive_sha256": sha256_hex(&bytes),
            "capability_images": [
                format!("docker.io/library/maps@{DIGEST}"),
                format!("ghcr.io/acme/weather@{DIGEST}"),
            ],
        })
    );
    let into = unpacked(&desk, "weather.tar.gz");
    let mut files = Vec::new();
    listed(into.path(), "", &mut files);
    assert_eq!(
        files,
        [
            "weather/agent.de.md",
            "weather/agent.md",
            "weather/agent.yaml",
            "weather/capabilities/api/manifest.yaml",
            "weather/capabilities/api/prompt.de.md",
            "weather/capabilities/api/prompt.md",
            "weather/capabilities/maps/manifest.yaml",
            "weather/i18n/de.yaml",
            "weather/i18n/en.yaml",
        ]
    );
    // Every byte but the image is as it was written.
    let manifest = std::fs::read_to_string(into.path().join(files[3].as_str())).unwrap();
    assert!(
        manifest.starts_with(&format!(
            "# The weather\nid: api\nimage: \"ghcr.io/acme/weather@{DIGEST}\"   # ours\ntools:\n"
        )),
        "{manifest}"
    );
    into.run(&["check", "weather"]).exits(0);
}

#[test]
fn the_bytes_depend_on_neither_time_nor_locale_nor_line_ends_nor_modes() {
    let desk = desk();
    desk.run(&["package", "weather", "--out", "first.tar.gz"])
        .exits(0);
    let agent = desk.path().join("agents/weather/agent.md");
    std::fs::write(&agent, "\u{FEFF}You know the weather.\r\n").unwrap();
    let touched = Command::new("touch")
        .args(["-d", "2001-02-03"])
        .arg(&agent)
        .status();
    assert!(touched.unwrap().success());
    let chmod = Command::new("chmod").arg("600").arg(&agent).status();
    assert!(chmod.unwrap().success());
    let output = desk
        .command(&["package", "weather", "--out", "second.tar.gz"])
        .env("LC_ALL", "tr_TR.UTF-8")
        .env("TZ", "Asia/Kathmandu")
        .output();
    Ran::from(output.unwrap()).exits(0);
    let read = |name: &str| std::fs::read(desk.path().join(name)).unwrap();
    assert!(read("first.tar.gz") == read("second.tar.gz"));
}

#[test]
fn what_no_installer_could_use_is_refused_with_the_way_out() {
    let desk = desk();
    desk.run(&["package", "wether"])
        .exits(1)
        .says("did you mean `weather`?");

    std::fs::remove_file(desk.path().join("selu.lock")).unwrap();
    desk.run(&["package", "weather"])
        .exits(1)
        .says("no selu.lock yet")
        .says("`selu lock`");
    assert!(!desk.path().join("weather.tar.gz").exists());
}

#[test]
fn an_image_that_exists_only_here_is_refused_with_the_way_out() {
    let desk = Desk::with_project();
    desk.write(
        "agents/weather/capabilities/api/container/Dockerfile",
        "FROM scratch\n",
    );
    let root = camino::Utf8Path::from_path(desk.path()).unwrap();
    let project = check::check(&source::read(root)).project.unwrap();
    let mut plan = resolve::resolve(&project, None, None).plan.unwrap();
    for instance in plan.instances.values_mut() {
        let capability = &project.agents["weather"].capabilities["api"];
        instance.image.kind = selu_compiler::plan::ImageKind::Local;
        instance.image.source = Some(capability.container.as_ref().unwrap().hash.clone());
    }
    let lock = Lock::merge(None, &plan, &BTreeMap::new(), &project.settings).lock;
    desk.write("selu.lock", &lock.write(None));
    desk.run(&["lock", "--check"]).exits(0);
    desk.run(&["package", "weather"])
        .exits(1)
        .says("weather/api (weather:1)")
        .says("docker push");
    assert!(!desk.path().join("weather.tar.gz").exists());
}

#[test]
fn an_image_behind_an_alias_is_refused_and_what_stays_behind_is_said() {
    let desk = desk();
    let path = "agents/weather/capabilities/api/manifest.yaml";
    let text = std::fs::read_to_string(desk.path().join(path)).unwrap();
    let aliased = text.replace(
        "image: ghcr.io/acme/weather:1 ",
        "x-image: &i ghcr.io/acme/weather:1\r\nimage: *i ",
    );
    desk.write(path, &aliased);
    desk.run(&["package", "weather"])
        .exits(1)
        .says("without an alias");
    desk.write(path, &text);
    desk.write(
        "selu.toml",
        "[project]\nname = \"demo\"\n[policy]\n\"weather/api/forecast\" = \"allow\"\n",
    );
    let lock = std::fs::read_to_string(desk.path().join("selu.lock")).unwrap();
    desk.write(
        "selu.lock",
        &lock.replace(
            "policy_origin = \"manifest\"",
            "policy_origin = \"override\"",
        ),
    );
    desk.run(&["package", "weather"])
        .exits(0)
        .says("policy `allow` of weather/api/forecast");
}
