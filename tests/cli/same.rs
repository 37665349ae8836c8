//! The same bytes from the binary, whatever the system, the language and the editor do: twenty runs, each in another order of
//! the directory, under another language and time zone, with other line ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{Desk, Ran};

const RUNS: usize = 20;
const LANGUAGES: [&str; 4] = ["C", "de_DE.UTF-8", "tr_TR.UTF-8", "ja_JP.UTF-8"];
const ZONES: [&str; 5] = [
    "UTC",
    "Pacific/Kiritimati",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Pacific/Pago_Pago",
];

/// How an editor writes the same text.
const ENDS: [(&str, &str); 4] = [
    ("", "\n"),
    ("", "\r\n"),
    ("\u{feff}", "\n"),
    ("\u{feff}", "\r\n"),
];

/// Two agents and two shared capabilities; with `fault`, things to say about each.
fn project(fault: bool) -> Vec<(String, String)> {
    let mut files = vec![(
        "selu.toml".to_owned(),
        "[project]\nname = \"same\"\n[policy]\n\"istanbul/iii/liste\" = \"ask\"\n".to_owned(),
    )];
    for agent in ["istanbul", "izmir"] {
        let folder = format!("agents/{agent}");
        files.push((
            format!("{folder}/agent.yaml"),
            format!("id: {agent}\nname: İ\ncapabilities: [{{id: hizmet}}, {{id: dosya}}]\n"),
        ));
        files.push((format!("{folder}/agent.md"), "Bir.\nIki.\n".to_owned()));
        files.push((
            format!("{folder}/capabilities/iii/manifest.yaml"),
            manifest("iii", fault),
        ));
        files.push((
            format!("{folder}/capabilities/iii/prompt.md"),
            "Once\nupon\n".to_owned(),
        ));
    }
    for id in ["hizmet", "dosya"] {
        files.push((
            format!("capabilities/{id}/manifest.yaml"),
            manifest(id, fault),
        ));
    }
    files
}

fn manifest(id: &str, fault: bool) -> String {
    let policy = if fault { "alow" } else { "allow" };
    format!(
        "id: {id}\nimage: a/b:1\nlicence: x\nresources: {{max_cpu_fraction: 0.57}}\ntools:\n  - name: liste\n    description: |\n      Bir\n      iki\n    input_schema: {{type: object}}\n    recommended_policy: {policy}\n"
    )
}

/// Writes the files in the order of this run, and gives the order in which the system then lists `agents/izmir`.
fn write(root: &Path, mut files: Vec<(String, String)>, run: usize) -> Vec<String> {
    // A fixed sequence (Knuth's MMIX), so that a failure comes back.
    let mut state = run as u64;
    for at in (1..files.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        files.swap(at, (state >> 33) as usize % (at + 1));
    }
    let (mark, end) = ENDS[run % ENDS.len()];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{mark}{}", text.replace('\n', end))).unwrap();
    }
    let entries = fs::read_dir(root.join("agents/izmir")).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// What each command prints, one outcome for all runs, and in how many orders the system listed a folder.
fn outcomes(fault: bool, commands: &[&[&str]]) -> (Vec<BTreeSet<String>>, usize) {
    // A file system in memory lists what was made last first; most others list by a hash of the name.
    let memory = Path::new("/dev/shm");
    let mut found = vec![BTreeSet::new(); commands.len()];
    let mut orders = BTreeSet::new();
    for run in 0..RUNS {
        let folder = tempfile::tempdir_in(memory)
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        orders.insert(write(folder.path(), project(fault), run));
        for (arguments, found) in commands.iter().zip(&mut found) {
            let mut command = Desk::new().command(arguments);
            let language = LANGUAGES[run % LANGUAGES.len()];
            command
                .current_dir(folder.path())
                .env("LC_ALL", language)
                .env("LANG", language)
                .env("TZ", ZONES[run % ZONES.len()]);
            let ran = Ran::from(command.output().unwrap());
            found.insert(format!("{:?}\n{}\n{}", ran.code, ran.out, ran.err));
        }
    }
    (found, orders.len())
}

#[test]
fn twenty_runs_in_other_orders_languages_zones_and_line_ends_print_the_same_bytes() {
    let right: [&[&str]; 3] = [
        &["check"],
        &["plan", "--offline"],
        &["plan", "--offline", "--format", "json"],
    ];
    let wrong: [&[&str]; 4] = [
        &["check"],
        &["check", "--format", "json"],
        &["check", "--format", "sarif"],
        &["check", "--format", "github"],
    ];
    for (fault, commands) in [(false, &right[..]), (true, &wrong[..])] {
        let (found, orders) = outcomes(fault, commands);
        for (arguments, found) in commands.iter().zip(&found) {
            assert_eq!(found.len(), 1, "{arguments:?}: {found:#?}");
            let code = if fault { "Some(1)" } else { "Some(0)" };
            assert!(
                found.iter().all(|outcome| outcome.starts_with(code)),
                "{found:#?}"
            );
        }
        if Path::new("/dev/shm").is_dir() {
            assert!(orders > 1, "the system listed all in one order");
        }
    }
}
