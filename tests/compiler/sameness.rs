//! The same meaning gives the same bytes: whatever the order of the directory, the line ends, the byte-order mark, the
//! language and the time zone of the machine (product.md 1).

use std::fs;

use selu_compiler::check;
use selu_compiler::diag::render;

use crate::fixture::{Fixture, WEATHER};

/// A project with findings of every severity and more than one of everything that is listed.
fn files() -> Vec<(String, String)> {
    let mut files = vec![(
        "selu.toml".to_owned(),
        "[project]\nname = \"demo\"\n".to_owned(),
    )];
    for agent in ["a", "b", "c", "d", "e"] {
        let folder = format!("agents/{agent}");
        files.push((
            format!("{folder}/agent.yaml"),
            format!("id: {agent}\nname: Ä\nmood: odd\n"),
        ));
        files.push((
            format!("{folder}/agent.md"),
            "Help.\n\nWith care.\n".to_owned(),
        ));
        for capability in ["x", "y", "z"] {
            files.push((
                format!("{folder}/capabilities/{capability}/manifest.yaml"),
                WEATHER.replace("id: weather", &format!("id: {capability}"))
                    + "network:\n  mode: allowlist\n  hosts: [b.example, \"*.example\"]\n",
            ));
            files.push((
                format!("{folder}/capabilities/{capability}/prompt.md"),
                "Ask first.\n".to_owned(),
            ));
        }
    }
    files
}

/// All that a compile says, but for the folder's name.
fn said(fixture: &Fixture) -> String {
    let sources = fixture.read();
    let checked = check::check(&sources);
    let project = checked.project.as_ref();
    assert!(project.is_some() && !checked.diagnostics.is_empty());
    format!(
        "{}\n{project:#?}",
        render::text(&checked.diagnostics, &sources, false)
    )
    .replace(fixture.root().as_str(), "ROOT")
}

/// Another order for every number.
fn shuffled(number: u64, mut files: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for index in (1..files.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        files.swap(index, (state % (index as u64 + 1)) as usize);
    }
    files
}

#[test]
fn twenty_directories_written_in_any_order_say_the_same() {
    let write = |files: &[(String, String)]| {
        Fixture::new(
            files
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str())),
        )
    };
    let expected = said(&write(&files()));
    let mut orders = std::collections::HashSet::new();
    for number in 1..=20 {
        let fixture = write(&shuffled(number, files()));
        let order: Vec<_> = fs::read_dir(fixture.root().join("agents"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        orders.insert(order);
        assert_eq!(said(&fixture), expected, "order {number}");
    }
    println!("{} orders of a directory were seen", orders.len());
}

#[test]
fn line_ends_and_byte_order_marks_change_nothing_that_is_said() {
    let plain = Fixture::new([]);
    let windows = Fixture::new([]);
    for (path, text) in files() {
        plain.write(&path, text.as_bytes());
        windows.write(
            &path,
            format!("\u{FEFF}{}", text.replace('\n', "\r\n")).as_bytes(),
        );
    }
    assert_eq!(said(&windows), said(&plain));
}
