//! A check that takes what did not change from the last one finds what a whole check finds.

use std::fs;

use camino::Utf8Path;
use selu_compiler::check::{Cache, check, check_again};
use selu_compiler::diag::render;
use selu_compiler::source::{self, Refreshed, SourceSet};

use crate::fixture::{Fixture, PROJECT, WEATHER, lines};

fn project() -> Fixture {
    let mut files = Vec::from(PROJECT);
    files.extend([
        (
            "agents/helper/capabilities/maps/manifest.yaml",
            "id: maps\nimage: a/b:1\n",
        ),
        (
            "agents/helper/capabilities/maps/container/Dockerfile",
            "FROM scratch\n",
        ),
        (
            "capabilities/idle/manifest.yaml",
            "id: idle\nimage: a/b:1\n",
        ),
        ("agents/helper/i18n/de.yaml", "agent: {name: Helfer}\n"),
    ]);
    Fixture::new(files)
}

fn refresh(sources: &mut SourceSet, path: &str) -> Refreshed {
    source::refresh(sources, Utf8Path::new(path))
}

const MANIFEST: &str = "agents/helper/capabilities/weather/manifest.yaml";

#[test]
fn after_any_edit_the_findings_are_those_of_a_whole_check() {
    let fixture = project();
    let mut cache = Cache::default();
    let broken = WEATHER.replace("allow", "alow");
    let steps: [(&str, Option<&str>, usize); 8] = [
        ("selu.toml", Some("[project]\nname = \"demo\"\n"), 3),
        (MANIFEST, Some(&broken), 1),
        ("agents/helper/agent.yaml", Some("id: helper\nname: 1\n"), 0),
        (MANIFEST, Some(WEATHER), 1),
        (
            "agents/helper/capabilities/maps/prompt.md",
            Some("Ask.\n"),
            1,
        ),
        (
            "agents/helper/capabilities/maps/container/Dockerfile",
            Some("FROM a\n"),
            1,
        ),
        ("capabilities/idle/manifest.yaml", None, 1),
        (
            "capabilities/idle/manifest.yaml",
            Some("id: maps\nimage: a/b:1\n"),
            1,
        ),
    ];
    for (path, text, fresh) in steps {
        match text {
            Some(text) => fixture.write(path, text.as_bytes()),
            None => fs::remove_file(fixture.root().join(path)).unwrap(),
        }
        let sources = fixture.read();
        let (whole, again) = (check(&sources), check_again(&sources, &mut cache));
        assert_eq!(lines(&again), lines(&whole), "{path}");
        assert_eq!(again.project, whole.project, "{path}");
        assert_eq!(cache.fresh(), fresh, "{path}");
    }
}

#[test]
fn after_any_edit_the_report_is_that_of_a_whole_rendering() {
    let fixture = project();
    let mut texts = render::Texts::default();
    let mut look = render::Look::default();
    let other = "agents/other/agent.yaml";
    let manifest = |text: &str| (MANIFEST, text.to_owned());
    let steps = [
        manifest(&WEATHER.replace("allow", "alow")),
        // The same finding, further down.
        manifest(&format!("# Weather.\n{}", WEATHER.replace("allow", "alow"))),
        // The same finding at the same place, in a line that ends otherwise.
        manifest(&format!(
            "# Weather.\n{} # really\n",
            WEATHER.replace("allow", "alow").trim_end()
        )),
        (other, "id: helper\nname: Other\n".to_owned()),
        // A line of another file that a finding shows besides its own.
        (
            "agents/helper/agent.yaml",
            "id: helper # the first\nname: Helper\n".to_owned(),
        ),
        (other, "id: other\nname: Other\n".to_owned()),
        manifest(WEATHER),
    ];
    for (path, text) in steps {
        fixture.write(path, text.as_bytes());
        let sources = fixture.read();
        let found = check(&sources).diagnostics;
        let mut reports = |look: &render::Look| {
            let whole = render::text_for(&found, &sources, look);
            assert_eq!(texts.again(&found, &sources, look), whole, "{path}: {text}");
            // Nothing changed.
            assert_eq!(texts.again(&found, &sources, look), whole, "{path}: {text}");
            whole
        };
        let plain = reports(&look);
        look.color = !look.color;
        assert_ne!(reports(&look), plain);
    }
}

#[test]
fn a_file_that_is_read_again_alone_gives_what_reading_everything_gives() {
    let fixture = project();
    let mut sources = fixture.read();
    for (path, text) in [
        (MANIFEST, "id: weather\r\nimage: A\r\n"),
        ("agents/helper/agent.md", "You help more.\n"),
        ("agents/helper/agent.yaml", "id: helper\nname: Other\n"),
        ("agents/helper/i18n/de.yaml", "agent: {name: Assistent}\n"),
        (
            "agents/helper/capabilities/maps/container/Dockerfile",
            "FROM b\n",
        ),
        ("agents/helper/capabilities/maps/container/new.py", "pass\n"),
        (
            "capabilities/idle/manifest.yaml",
            "id: idle\nimage: c/d:1\n",
        ),
    ] {
        fixture.write(path, text.as_bytes());
        assert_eq!(refresh(&mut sources, path), Refreshed::Changed, "{path}");
        assert_eq!(refresh(&mut sources, path), Refreshed::Same, "{path}");
        let whole = fixture.read();
        assert!(sources.files().eq(whole.files()), "{path}");
        let hashes = |set: &source::SourceSet| -> Vec<_> {
            let folders = set.agents.iter().flat_map(|agent| &agent.capabilities);
            folders.map(|folder| folder.container.clone()).collect()
        };
        assert_eq!(hashes(&sources), hashes(&whole), "{path}");
    }
}

#[test]
fn what_cannot_be_read_alone_is_left_to_a_whole_reading() {
    let fixture = project();
    let mut sources = fixture.read();
    for (path, bytes) in [
        (MANIFEST, &b"id: \xff\n"[..]),
        ("agents/helper/agent.de.md", b"Du hilfst.\n"),
        ("notes.txt", b"\n"),
    ] {
        let before: Vec<_> = sources.files().cloned().collect();
        fixture.write(path, bytes);
        assert_eq!(refresh(&mut sources, path), Refreshed::Unknown, "{path}");
        assert!(sources.files().eq(&before), "{path}");
    }
    // What was a finding is read with everything, so that the finding goes away.
    let mut sources = fixture.read();
    assert!(!sources.findings.is_empty());
    fixture.write(MANIFEST, WEATHER.as_bytes());
    assert_eq!(refresh(&mut sources, MANIFEST), Refreshed::Unknown);
}
