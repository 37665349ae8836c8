//! The directory (L1, L4) and the folder that builds an image (product.md 19).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use camino::Utf8Path;
use selu_compiler::source::{self, ContextError, ContextFile, RootKind};

use crate::fixture::{Fixture, PROJECT, WEATHER, lines};

#[test]
fn the_three_roots_compile() {
    let project = Fixture::new(PROJECT);
    let agent = Fixture::new([
        ("agent.yaml", "id: helper\nname: Helper\n"),
        ("agent.md", "You help.\n"),
        ("capabilities/weather/manifest.yaml", WEATHER),
    ]);
    let capability = Fixture::new([("manifest.yaml", WEATHER)]);
    for (fixture, kind, key) in [
        (project, RootKind::Project, "helper/weather"),
        (agent, RootKind::Agent, "helper/weather"),
        (capability, RootKind::Capability, "_/weather"),
    ] {
        assert_eq!(fixture.read().kind, Some(kind));
        let project = fixture.check().project.unwrap();
        let keys: Vec<String> = project
            .instances()
            .map(|(key, ..)| key.to_string())
            .collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn a_wrong_directory_is_an_error_that_says_what_was_looked_for() {
    let text = Fixture::new([("notes.txt", "")]).text();
    assert!(
        text.contains("there is no project here: looked for agents/, selu.toml, agent.yaml and manifest.yaml in ROOT"),
        "{text}"
    );
    let missing = source::read(Utf8Path::new("/there/is/no/such/directory"));
    assert_eq!(missing.findings[0].code.name, "no-project");
    assert_eq!(missing.kind, None);
}

#[test]
fn a_folder_of_a_project_names_the_project_above_it() {
    let fixture = Fixture::new(PROJECT);
    let inside = source::read(&fixture.root().join("agents"));
    let help = inside.findings[0].help.clone().unwrap();
    assert!(
        help.starts_with("there is a project above it, in /"),
        "{help}"
    );
}

#[test]
fn a_project_whose_agents_are_gone_says_so() {
    let fixture = Fixture::new([("selu.toml", "[project]\nname = \"demo\"\n")]);
    assert_eq!(fixture.lines(), ["agents:0:0 warning no-agents"]);
}

#[test]
fn one_bad_folder_fails_the_compile_with_the_findings_of_all_others() {
    let fixture = Fixture::new(PROJECT);
    fixture.write("agents/helper/capabilities/files/prompt.md", b"Ask.\n");
    fixture.write(
        "agents/helper/capabilities/mail/manifest.yaml",
        b"id: mail\nimage: Bad\n",
    );
    fixture.write("agents/helper/capabilities/old.bak/manifest.yaml", b"[");
    fixture.write("agents/helper/capabilities/.git/config", b"[");
    fixture.write("agents/helper/capabilities/node_modules/x.js", b"[");
    let checked = fixture.check();
    assert_eq!(
        lines(&checked),
        [
            "agents/helper/capabilities/files:0:0 error capability-without-manifest",
            "agents/helper/capabilities/mail/manifest.yaml:2:8 error image-invalid",
        ]
    );
    assert!(checked.project.is_none());
}

#[test]
fn links_within_the_root_are_followed_and_others_are_errors() {
    let fixture = Fixture::new(PROJECT);
    let folder = fixture.root().join("agents/helper/capabilities");
    symlink("weather", folder.join("again")).unwrap();
    assert_eq!(
        fixture.lines(),
        [
            "agents/helper/capabilities/again/manifest.yaml:1:5 warning folder-name-differs",
            "agents/helper/capabilities/weather/manifest.yaml:1:5 error capability-in-both-places",
        ]
    );
    fs::remove_file(folder.join("again")).unwrap();
    symlink("/usr", folder.join("out")).unwrap();
    symlink("../..", folder.join("round")).unwrap();
    symlink("self", folder.join("self")).unwrap();
    symlink("nowhere", folder.join("dangling")).unwrap();
    assert_eq!(
        fixture.lines(),
        ["dangling", "out", "round", "self"]
            .map(|name| format!("agents/helper/capabilities/{name}:0:0 error bad-symlink"))
    );
}

#[test]
fn the_folders_of_the_layout_themselves_may_not_lead_out() {
    let fixture = Fixture::new(PROJECT);
    symlink("/usr", fixture.root().join("capabilities")).unwrap();
    let agent = fixture.root().join("agents/helper");
    fs::rename(agent.join("capabilities"), fixture.root().join("elsewhere")).unwrap();
    symlink("/usr", agent.join("capabilities")).unwrap();
    symlink("/etc/hostname", fixture.root().join("selu.toml")).unwrap();
    assert_eq!(
        fixture.lines(),
        ["agents/helper/capabilities", "capabilities", "selu.toml"]
            .map(|name| format!("{name}:0:0 error bad-symlink"))
    );
    let file = Fixture::new([("agents", "")]);
    assert_eq!(file.lines(), ["agents:0:0 error not-a-regular-file"]);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error_and_is_not_waited_for() {
    let fixture = Fixture::new([("manifest.yaml", WEATHER)]);
    let made = std::process::Command::new("mkfifo")
        .arg(fixture.root().join("prompt.md"))
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(fixture.lines(), ["prompt.md:0:0 error not-a-regular-file"]);
}

#[test]
fn a_byte_that_is_not_utf_8_has_line_column_and_value() {
    let fixture = Fixture::new([]);
    fixture.write(
        "manifest.yaml",
        b"id: weather\nimage: a/b:1\nx-note: \xc3\xbc gr\xfc\xdfe\n",
    );
    let text = fixture.text();
    assert!(text.contains("manifest.yaml:3:13"), "{text}");
    assert!(text.contains("the byte 0xFC is not UTF-8"), "{text}");
}

#[test]
fn a_name_that_is_not_utf_8_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new(PROJECT);
    let name = std::ffi::OsStr::from_bytes(b"gr\xfc");
    fs::create_dir(
        fixture
            .root()
            .join("agents/helper/capabilities")
            .as_std_path()
            .join(name),
    )
    .unwrap();
    assert_eq!(
        fixture.lines(),
        ["agents/helper/capabilities:0:0 error not-utf-8"]
    );
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let fixture = Fixture::new([]);
    fixture.write("manifest.yaml", &vec![b'#'; 8 * 1024 * 1024 + 1]);
    assert_eq!(fixture.lines(), ["manifest.yaml:0:0 error file-too-large"]);
}

#[test]
fn an_unreadable_file_is_an_error() {
    let fixture = Fixture::new([("manifest.yaml", WEATHER)]);
    let path = fixture.root().join("manifest.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        println!("skipped: this user reads everything");
        return;
    }
    assert_eq!(fixture.lines(), ["manifest.yaml:0:0 error unreadable"]);
}

/// Paths of a context's files.
fn paths(fixture: &Fixture, folder: &str) -> Vec<String> {
    source::container_files(&fixture.root(), Utf8Path::new(folder))
        .unwrap()
        .into_iter()
        .map(|file| file.path.into_string())
        .collect()
}

#[test]
fn a_context_is_container_or_the_folder_of_a_dockerfile_beside_the_manifest() {
    let own = Fixture::new([
        ("manifest.yaml", WEATHER),
        ("prompt.md", "Ask.\n"),
        ("prompt.de.md", "Frag.\n"),
        ("Dockerfile", "FROM scratch\n"),
        ("server/main.py", "print()\n"),
        ("server/prompt.md", "part of the image\n"),
    ]);
    assert_eq!(
        paths(&own, ""),
        ["Dockerfile", "server/main.py", "server/prompt.md"]
    );
    let project = own.check().project.unwrap();
    let folder = project
        .instances()
        .next()
        .unwrap()
        .2
        .container
        .clone()
        .unwrap();
    assert_eq!(folder.path, "");

    let apart = Fixture::new([
        ("manifest.yaml", WEATHER),
        ("container/Dockerfile", "FROM scratch\n"),
    ]);
    assert_eq!(paths(&apart, "container"), ["Dockerfile"]);
    let project = apart.check().project.unwrap();
    let folder = project
        .instances()
        .next()
        .unwrap()
        .2
        .container
        .clone()
        .unwrap();
    assert_eq!(folder.path, "container");
    assert!(folder.hash.starts_with("sha256:") && folder.hash.len() == 71);
}

#[test]
fn dockerignore_counts_for_files_links_and_folders() {
    let fixture = Fixture::new([
        ("c/Dockerfile", "FROM scratch\n"),
        (
            "c/.dockerignore",
            "Dockerfile\n.dockerignore\n**/*.pyc\nvenv\n!venv/keep.txt\nlink\n",
        ),
        ("c/a.py", ""),
        ("c/b/x.pyc", ""),
        ("c/venv/lib.py", ""),
        ("c/venv/keep.txt", ""),
    ]);
    symlink("/usr", fixture.root().join("c/link")).unwrap();
    assert_eq!(
        paths(&fixture, "c"),
        [".dockerignore", "Dockerfile", "a.py", "venv/keep.txt"]
    );
    symlink("/usr", fixture.root().join("c/other")).unwrap();
    let error = source::container_files(&fixture.root(), Utf8Path::new("c")).unwrap_err();
    assert!(matches!(error, ContextError::NotAFile { .. }), "{error}");
    assert_eq!(error.path(), "c/other");
}

#[test]
fn a_folder_hash_depends_on_paths_modes_and_contents_and_on_nothing_else() {
    let file = |path: &str, executable, bytes: &[u8]| ContextFile {
        path: path.into(),
        executable,
        bytes: bytes.to_vec(),
    };
    let files = [file("a", false, b"1"), file("b", true, b"2")];
    let hash = source::folder_hash(&files);
    // Fixed for good: locks of other machines hold it.
    assert_eq!(
        hash,
        "sha256:6d8d4eddf9d79484f44a02185e1f2b9eb145b11972f7410eb0128733b99626b7"
    );
    let reversed = [files[1].clone(), files[0].clone()];
    assert_eq!(source::folder_hash(&reversed), hash);
    for other in [
        [file("a", true, b"1"), file("b", true, b"2")],
        [file("a", false, b"1"), file("b", true, b"3")],
        [file("a", false, b"1"), file("c", true, b"2")],
        [file("a", false, b"1b"), file("", true, b"2")],
    ] {
        assert_ne!(source::folder_hash(&other), hash);
    }
}

#[test]
fn only_the_owners_executable_bit_counts() {
    let fixture = Fixture::new([("c/run.sh", "exit\n")]);
    let path = fixture.root().join("c/run.sh");
    let hash = |mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        source::folder_hash(&source::container_files(&fixture.root(), Utf8Path::new("c")).unwrap())
    };
    assert_eq!(hash(0o644), hash(0o600));
    assert_eq!(hash(0o755), hash(0o700));
    assert_ne!(hash(0o644), hash(0o755));
}
