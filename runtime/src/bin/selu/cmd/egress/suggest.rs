//! What a capability tried, as the smallest `network` block that allows it.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use selu_compiler::check::network::host::{self, Entry};
use selu_compiler::model::{InstanceKey, Network};
use selu_compiler::report::escape;
use selu_runtime::egress::record::{Event, Line, Phase};
use serde_json::{Map, Value, json};

/// What is said beside an entry whose port nobody asked for: a name that the DNS refuses is never connected to.
pub(super) const PORT_UNKNOWN: &str = " # only its name was asked for: the port is a guess";

/// The guess.
const LIKELY_PORT: u16 = 443;

/// Names of one domain with the same port that are written as one wildcard.
const MANY: usize = 6;

/// Names that a remark lists.
const LISTED: usize = 3;

/// A block, and what is to be said about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// Entry → remark.
    hosts: BTreeMap<String, String>,
    /// Targets that no entry of this list would allow → why they were refused.
    left_out: BTreeMap<String, String>,
    /// Entries of the present list that nothing needed.
    unused: Vec<String>,
}

/// The entry that would allow what an event is about; `None` if that is nothing that an entry can say.
pub(super) fn entry(event: &Event) -> Option<String> {
    let host = match (&event.name, event.address) {
        (Some(name), _) => name.clone(),
        (None, Some(address)) if address.is_ipv6() => format!("[{address}]"),
        (None, address) => address?.to_string(),
    };
    let port = event.port.unwrap_or(LIKELY_PORT);
    let entry = host::parse(&format!("{host}:{port}")).ok()?;
    Some(entry.to_string())
}

impl Suggestion {
    /// From what was recorded of one instance, and its present rules.
    pub(super) fn of(lines: &[Line], present: Option<&Network>) -> Self {
        let (mut tried, mut guessed) = (BTreeSet::new(), BTreeSet::new());
        let mut suggestion = Self::default();
        for Line { event, .. } in lines {
            let code = event.reason.as_ref().map(|why| why.code.as_str());
            let refusal = match (event.phase, code) {
                (Phase::Lost, _) => continue,
                (Phase::Opened | Phase::Closed | Phase::Named, _) => None,
                (
                    Phase::Denied,
                    Some(
                        "not-listed" | "port-not-listed" | "no-such-name" | "lookup-failed"
                        | "connect-failed" | "timed-out",
                    ),
                ) => None,
                (Phase::Denied, _) => event.reason.as_ref(),
            };
            match (refusal, entry(event)) {
                (None, Some(entry)) if event.port.is_some() => {
                    tried.insert(entry);
                }
                (None, Some(entry)) => {
                    guessed.insert(entry);
                }
                (None, None) => {}
                (Some(why), entry) => {
                    let about = entry.or_else(|| event.name.as_deref().map(escape));
                    if let Some(about) = about {
                        suggestion.left_out.insert(about, escape(&why.text));
                    }
                }
            }
        }
        guessed.retain(|entry| !has_host_of(&tried, entry));
        let with = |remark: &'static str| move |entry| (entry, remark.to_owned());
        let tried = tried.into_iter().map(with(""));
        suggestion.hosts = tried
            .chain(guessed.into_iter().map(with(PORT_UNKNOWN)))
            .collect();
        suggestion.gather_siblings();
        suggestion
            .left_out
            .retain(|about, _| !suggestion.hosts.contains_key(about));
        suggestion.unused = present
            .map(|network| unused(&network.hosts, &suggestion.hosts))
            .unwrap_or_default();
        suggestion
    }

    /// Writes many names of one domain as one wildcard, if the domain has one owner.
    fn gather_siblings(&mut self) {
        let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in self.hosts.keys() {
            let Some((label, rest)) = entry.split_once('.') else {
                continue;
            };
            let wildcard = format!("*.{rest}");
            let sound = host::parse(&wildcard).is_ok_and(|entry| {
                matches!(entry.host, host::Host::Below(_)) && !entry.has_many_owners()
            });
            if sound {
                families.entry(wildcard).or_default().push(label.to_owned());
            }
        }
        for (wildcard, labels) in families
            .into_iter()
            .filter(|(_, labels)| labels.len() >= MANY)
        {
            for label in &labels {
                self.hosts.remove(&format!("{label}.{}", &wildcard[2..]));
            }
            let listed: Vec<&str> = labels.iter().take(LISTED).map(String::as_str).collect();
            let remark = format!(
                " # for {} names: {}, …; list them instead if there are no others",
                labels.len(),
                listed.join(", ")
            );
            self.hosts.insert(wildcard, remark);
        }
    }

    /// As it is written into a manifest.
    pub(super) fn text(&self, instance: &InstanceKey, manifest: Option<&Utf8Path>) -> String {
        let file = manifest.map(|file| format!(", for {}", escape(file.as_str())));
        let mut text = format!(
            "# what {instance} tried{}\nnetwork:\n",
            file.unwrap_or_default()
        );
        if self.hosts.is_empty() {
            text.push_str("  mode: none\n");
        } else {
            text.push_str("  mode: allowlist\n  hosts:\n");
        }
        for (entry, remark) in &self.hosts {
            text.push_str(&format!("    - \"{entry}\"{remark}\n"));
        }
        for (about, why) in &self.left_out {
            text.push_str(&format!("# left out: {about}: {why}\n"));
        }
        for entry in &self.unused {
            text.push_str(&format!("# not needed in this time, but listed: {entry}\n"));
        }
        text
    }

    /// For programs.
    pub(super) fn data(&self, manifest: Option<&Utf8Path>) -> Map<String, Value> {
        let mode = match self.hosts.is_empty() {
            true => "none",
            false => "allowlist",
        };
        let hosts: Vec<&String> = self.hosts.keys().collect();
        let remark = |(entry, remark): (&String, &String)| {
            let text = remark.trim_start_matches(" # ");
            (!text.is_empty()).then(|| json!({ "host": entry, "text": text }))
        };
        let remarks: Vec<Value> = self.hosts.iter().filter_map(remark).collect();
        let left_out = self.left_out.iter();
        let left_out: Vec<Value> = left_out
            .map(|(about, why)| json!({ "target": about, "reason": why }))
            .collect();
        Map::from_iter([
            ("manifest".to_owned(), json!(manifest)),
            (
                "network".to_owned(),
                json!({ "mode": mode, "hosts": hosts }),
            ),
            ("remarks".to_owned(), remarks.into()),
            ("left_out".to_owned(), left_out.into()),
            ("unused".to_owned(), json!(self.unused)),
        ])
    }
}

/// Whether an entry with the same host is there, whatever its port.
fn has_host_of(entries: &BTreeSet<String>, entry: &str) -> bool {
    let host = |entry: &str| host::parse(entry).ok().map(|entry| entry.host);
    let wanted = host(entry);
    entries.iter().any(|entry| host(entry) == wanted)
}

/// Entries of the present list that allow nothing of what is suggested.
fn unused(present: &[String], suggested: &BTreeMap<String, String>) -> Vec<String> {
    let suggested: Vec<Entry> = suggested
        .keys()
        .filter_map(|text| host::parse(text).ok())
        .collect();
    let needed = |text: &&String| {
        host::parse(text).is_ok_and(|entry| {
            suggested
                .iter()
                .any(|one| entry.covers(one) || one.covers(&entry))
        })
    };
    present
        .iter()
        .filter(|text| !needed(text))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use selu_compiler::model::NetworkMode;
    use selu_runtime::egress::record::{Via, Why};

    use super::*;

    fn line(phase: Phase, host: &str, port: Option<u16>, code: Option<&str>) -> Line {
        let address = host.parse().ok();
        Line {
            run: 1,
            times: 1,
            carried: false,
            event: Event {
                time_ms: 1,
                instance: InstanceKey::new("weather", "api"),
                network: "selu_demo_weather_api_1".to_owned(),
                id: 1,
                via: Via::Tcp,
                phase,
                name: address.is_none().then(|| host.to_owned()),
                address,
                port,
                reason: code.map(|code| Why {
                    code: code.to_owned(),
                    text: format!("because of {code}\u{1b}[2J"),
                }),
                sent: 0,
                received: 0,
                millis: 0,
            },
        }
    }

    fn hosts(lines: &[Line]) -> Vec<String> {
        let suggestion = Suggestion::of(lines, None);
        let hosts = suggestion.hosts.into_iter();
        hosts.map(|(entry, remark)| entry + &remark).collect()
    }

    #[test]
    fn what_was_reached_and_what_the_rules_refused_is_listed_by_name_and_port() {
        let lines = [
            line(Phase::Opened, "b.example.com", Some(443), None),
            line(Phase::Closed, "b.example.com", Some(443), None),
            line(
                Phase::Denied,
                "b.example.com",
                Some(22),
                Some("port-not-listed"),
            ),
            line(Phase::Denied, "a.example.net", Some(80), Some("not-listed")),
            line(Phase::Denied, "a.example.net", None, Some("not-listed")),
            line(Phase::Denied, "c.example.org", None, Some("not-listed")),
            line(Phase::Denied, "203.0.113.7", Some(5432), Some("not-listed")),
            line(Phase::Denied, "2001:db8::7", Some(80), Some("not-listed")),
        ];
        assert_eq!(
            hosts(&lines),
            [
                "203.0.113.7:5432".to_owned(),
                "[2001:db8::7]:80".to_owned(),
                "a.example.net:80".to_owned(),
                "b.example.com:22".to_owned(),
                "b.example.com:443".to_owned(),
                format!("c.example.org:443{PORT_UNKNOWN}"),
            ]
        );
    }

    #[test]
    fn what_no_list_can_allow_is_left_out_and_said() {
        let lines = [
            line(
                Phase::Denied,
                "169.254.169.254",
                Some(80),
                Some("not-global"),
            ),
            line(
                Phase::Denied,
                "a.example.com",
                Some(443),
                Some("sni-mismatch"),
            ),
            line(
                Phase::Denied,
                "evil\u{1b}[2J.example.com",
                None,
                Some("name-too-long"),
            ),
            line(Phase::Denied, "https://x/", Some(443), Some("not-listed")),
        ];
        let suggestion = Suggestion::of(&lines, None);
        let text = suggestion.text(&InstanceKey::new("weather", "api"), None);
        assert!(
            text.starts_with("# what weather/api tried\nnetwork:\n  mode: none\n"),
            "{text}"
        );
        assert_eq!(text.matches("# left out: ").count(), 3, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn many_names_of_one_owners_domain_become_a_wildcard_and_few_do_not() {
        let of = |names: usize, domain: &str| -> Vec<Line> {
            (0..names)
                .map(|n| {
                    line(
                        Phase::Denied,
                        &format!("n{n}.{domain}"),
                        Some(443),
                        Some("not-listed"),
                    )
                })
                .collect()
        };
        assert_eq!(hosts(&of(MANY - 1, "cdn.example.com")).len(), MANY - 1);
        let many = hosts(&of(MANY, "cdn.example.com"));
        assert_eq!(many.len(), 1);
        assert!(
            many[0].starts_with("*.cdn.example.com:443 # for 6 names: n0, n1, n2, …"),
            "{many:?}"
        );
        assert_eq!(hosts(&of(MANY, "co.uk")).len(), MANY, "of many owners");
        assert_eq!(
            hosts(&of(MANY, "github.io")).len(),
            MANY,
            "of many customers"
        );
        let mut ports = of(MANY / 2, "cdn.example.com");
        ports.extend((0..MANY / 2).map(|n| {
            line(
                Phase::Opened,
                &format!("m{n}.cdn.example.com"),
                Some(80),
                None,
            )
        }));
        assert_eq!(hosts(&ports).len(), ports.len(), "of two ports");
    }

    #[test]
    fn entries_that_nothing_needed_are_named() {
        let network = Network {
            mode: NetworkMode::Allowlist,
            hosts: ["*.example.com:443", "old.example.net:443"]
                .map(str::to_owned)
                .to_vec(),
        };
        let lines = [line(Phase::Opened, "a.example.com", Some(443), None)];
        let suggestion = Suggestion::of(&lines, Some(&network));
        assert_eq!(suggestion.unused, ["old.example.net:443"]);
        assert!(suggestion.hosts.contains_key("a.example.com:443"));
    }

    #[test]
    fn what_is_suggested_is_a_manifest_that_the_compiler_takes() {
        let mut lines: Vec<Line> = (0..MANY)
            .map(|n| {
                line(
                    Phase::Opened,
                    &format!("n{n}.cdn.example.com"),
                    Some(443),
                    None,
                )
            })
            .collect();
        lines.push(line(
            Phase::Denied,
            "C.example.org.",
            None,
            Some("not-listed"),
        ));
        lines.push(line(Phase::Denied, "10.0.0.1", Some(1), Some("own-range")));
        let text = Suggestion::of(&lines, None).text(&InstanceKey::new("weather", "api"), None);
        let folder = tempfile::tempdir().unwrap();
        let manifest = format!(
            "id: api\nimage: weather@sha256:{}\ntools: []\n{text}",
            "0".repeat(64)
        );
        std::fs::write(folder.path().join("manifest.yaml"), manifest).unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let checked = selu_compiler::check::check(&selu_compiler::source::read(root));
        let about_network: Vec<_> = checked
            .diagnostics
            .iter()
            .filter(|found| found.message.contains("example"))
            .collect();
        assert!(about_network.is_empty(), "{about_network:?}");
        let project = checked.project.unwrap();
        let (_, _, capability) = project.instances().next().unwrap();
        assert_eq!(
            capability.network.hosts,
            ["*.cdn.example.com:443", "c.example.org:443"]
        );
    }
}
