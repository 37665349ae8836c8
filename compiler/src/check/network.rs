//! Egress rules (N1–N6). A list with one wrong entry is no list: it never falls open (D19).

pub mod host;

use std::collections::BTreeMap;

use self::host::Entry;
use crate::diag::Problem;
use crate::diag::codes::network as codes;
use crate::model::{Network, NetworkMode};

/// Checks and normalises egress rules; `None` when any entry is wrong, whatever the mode. Pointers are `/mode`,
/// `/hosts` and `/hosts/<index>`.
pub fn network(mode: NetworkMode, hosts: &[String]) -> (Option<Network>, Vec<Problem>) {
    let mut problems = Vec::new();
    mode_warnings(mode, hosts, &mut problems);

    // The first place of each entry, in the order that the plan has.
    let mut entries: BTreeMap<Entry, usize> = BTreeMap::new();
    let mut wrong = false;
    for (index, text) in hosts.iter().enumerate() {
        let pointer = format!("/hosts/{index}");
        let entry = match host::parse(text) {
            Ok(entry) => entry,
            Err(problem) => {
                wrong = true;
                problems.push(problem.at(pointer));
                continue;
            }
        };
        if let Some(first) = entries.get(&entry) {
            problems.push(
                Problem::new(
                    &codes::HOST_COVERED,
                    format!("`{text}` is already listed as `hosts[{first}]`"),
                )
                .at(pointer),
            );
            continue;
        }
        problems.extend(entry.remarks().into_iter().map(|p| p.at(pointer.clone())));
        entries.insert(entry, index);
    }
    for (entry, index) in &entries {
        if let Some(wider) = entry.wider().into_iter().find(|w| entries.contains_key(w)) {
            problems.push(
                Problem::new(
                    &codes::HOST_COVERED,
                    format!("`{entry}` adds nothing: `{wider}` covers it"),
                )
                .at(format!("/hosts/{index}")),
            );
        }
    }

    if wrong {
        return (None, problems);
    }
    let mut hosts: Vec<String> = match mode {
        NetworkMode::Allowlist => entries.keys().map(ToString::to_string).collect(),
        NetworkMode::None | NetworkMode::Any => Vec::new(),
    };
    hosts.sort();
    (Some(Network { mode, hosts }), problems)
}

/// What mode and list say about each other (M5).
fn mode_warnings(mode: NetworkMode, hosts: &[String], problems: &mut Vec<Problem>) {
    match mode {
        NetworkMode::None if !hosts.is_empty() => problems.push(
            Problem::new(
                &codes::NONE_WITH_HOSTS,
                "the hosts have no effect: `mode: none` allows nothing",
            )
            .help("write `mode: allowlist`, or remove `hosts`")
            .at("/hosts"),
        ),
        NetworkMode::Allowlist if hosts.is_empty() => problems.push(
            Problem::new(
                &codes::ALLOWLIST_EMPTY,
                "the allowlist has no hosts: it allows nothing, as `mode: none` does",
            )
            .at("/mode"),
        ),
        NetworkMode::Any => {
            problems.push(
                Problem::new(
                    &codes::ANY,
                    "`mode: any` allows every public name on every TCP port",
                )
                .at("/mode"),
            );
            if !hosts.is_empty() {
                problems.push(
                    Problem::new(
                        &codes::ANY_WITH_HOSTS,
                        "the hosts have no effect: `mode: any` allows every public name",
                    )
                    .help("write `mode: allowlist`, or remove `hosts`")
                    .at("/hosts"),
                );
            }
        }
        NetworkMode::None | NetworkMode::Allowlist => {}
    }
}

#[cfg(test)]
mod tests;
