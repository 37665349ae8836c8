//! The same bytes for the same directory: on any number of threads, and in whatever order the system lists it.

use std::fs;
use std::num::NonZero;

use camino::{Utf8Path, Utf8PathBuf};
use selu_compiler::diag::render;
use selu_compiler::{check, source};

/// Three agents with 30 capabilities each, and 30 shared ones, without fault or with every kind of trouble that a thread
/// may meet, in files and in the layout.
fn project(faults: bool) -> Vec<(String, String)> {
    let settings = "[project]\nname = \"same\"\n";
    let mut files = vec![("selu.toml".to_owned(), settings.to_owned())];
    let shared: String = (0..30).map(|at| format!("  - id: shared-{at}\n")).collect();
    for agent in 0..3 {
        let folder = format!("agents/agent-{agent}");
        files.push((
            format!("{folder}/agent.yaml"),
            format!("id: agent-{agent}\nname: Agent\ncapabilities:\n{shared}"),
        ));
        for at in 0..30 {
            let id = format!("own-{at}");
            capability(
                &mut files,
                &format!("{folder}/capabilities/{id}"),
                &id,
                at,
                faults,
            );
        }
    }
    for at in 0..30 {
        let id = format!("shared-{at}");
        capability(&mut files, &format!("capabilities/{id}"), &id, at, faults);
    }
    files
}

fn capability(files: &mut Vec<(String, String)>, folder: &str, id: &str, at: usize, faults: bool) {
    let (name, rest) = match (faults, at % 10) {
        (true, 1) => ("manifest.yaml", "no_such_field: 1"),
        (true, 2) => ("manifest.yaml", "id: twice"),
        (true, 3) => (
            "manifest.yaml",
            "network: {mode: allowlist, hosts: ['https://x', 'a.b:99999']}",
        ),
        (true, 4) => (
            "manifest.yaml",
            "tools: [{name: a b, description: '', input_schema: {type: strin}}]",
        ),
        (true, 5) => (
            "manifest.yaml",
            "credentials: [{name: PATH, scope: system}, {name: PATH, scope: sytem}]",
        ),
        (true, 6) => ("manifest.yaml", "tools: ["),
        (true, 7) => ("manifest.yml", ""),
        (_, 8) => (
            "manifest.yaml",
            "tools: [{name: t, description: d, input_schema: {type: object, required: [x]}}]",
        ),
        _ => ("manifest.yaml", ""),
    };
    let text = format!("id: {id}\nimage: example.com/{id}:1\n{rest}\n");
    files.push((format!("{folder}/{name}"), text));
    files.push((format!("{folder}/prompt.md"), format!("Prompt {at}\n")));
}

fn write(root: &Utf8Path, files: &[(String, String)]) {
    for (path, content) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Everything that comes out.
fn outcome(threads: usize, root: &Utf8Path) -> String {
    let threads = NonZero::new(threads).unwrap();
    let sources = source::read_on(threads, root);
    let checked = check::check_on(threads, &sources);
    format!(
        "{}\n{:?}\n{:?}",
        render::json(&checked.diagnostics),
        checked.project,
        sources.files().map(|file| &file.path).collect::<Vec<_>>()
    )
    .replace(root.as_str(), "ROOT")
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    for faults in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        write(root, &project(faults));
        let one = outcome(1, root);
        assert_eq!(one.contains("\nNone\n"), faults, "{one}");
        for threads in [2, 3, 16] {
            assert_eq!(outcome(threads, root), one, "on {threads} threads");
        }
    }
}

#[test]
fn twenty_orders_of_the_directory_give_the_same_bytes() {
    // A file system in memory lists what was made last first; most others list by a hash of the name.
    let place = ["/dev/shm", "/tmp"]
        .into_iter()
        .find(|place| tempfile::tempdir_in(place).is_ok())
        .unwrap();
    let mut files = project(true);
    let mut first: Option<String> = None;
    let mut listed = std::collections::BTreeSet::new();
    let mut state = 7_u64;
    for _ in 0..20 {
        for at in (1..files.len()).rev() {
            // A fixed sequence (Knuth's MMIX), so that a failure comes back.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            files.swap(at, (state >> 33) as usize % (at + 1));
        }
        let folder = tempfile::tempdir_in(place).unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        write(&root, &files);
        let names: Vec<_> = fs::read_dir(root.join("capabilities"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        listed.insert(names);
        let outcome = outcome(2, &root);
        assert_eq!(&outcome, first.get_or_insert_with(|| outcome.clone()));
    }
    if place == "/dev/shm" {
        assert!(listed.len() > 1, "the system listed all in one order");
    }
}
