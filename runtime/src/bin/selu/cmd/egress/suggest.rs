//! What a capability tried, as the smallest `network` block that allows it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use camino::Utf8Path;
use selu_compiler::check::network::host::{self, Entry, Host};
use selu_compiler::model::{InstanceKey, Network};
use selu_compiler::report::escape;
use selu_runtime::egress::record::{Event, Line, Phase};
use selu_runtime::egress::{AddressKind, address_kind};

use serde_json::{Map, Value, json};

use super::rows::target;

/// What is said beside an entry whose port nobody asked for: a name that the DNS refuses is never connected to.
const PORT_UNKNOWN: &str = "only its name was asked for: the port is a guess";

/// What is said beside an address of somebody's own network (N8).
const PRIVATE: &str = "a private address: it needs a permission in selu.toml as well";

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
    hosts: BTreeMap<String, Option<String>>,
    /// Targets that no entry of this list would allow → why they were refused.
    left_out: BTreeMap<String, String>,
    /// Entries of the present list that nothing needed.
    unused: Vec<String>,
}

/// The entry that would allow what an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Advice {
    /// As it is written into a manifest.
    pub(super) entry: String,
    /// What is to be known of it.
    pub(super) remark: Option<String>,
    /// Whether its port is not known.
    pub(super) guessed: bool,
}

impl Advice {
    /// `None` if the event is about nothing that a list can allow.
    pub(super) fn on(event: &Event, present: Option<&Network>) -> Option<Self> {
        let (host, private) = match (&event.name, event.address) {
            (Some(name), _) => (name.clone(), false),
            (None, address) => {
                let address = address?;
                let private = match address_kind(address) {
                    AddressKind::Global => false,
                    AddressKind::Private => true,
                    AddressKind::Special => return None,
                };
                let host = match address {
                    IpAddr::V4(address) => address.to_string(),
                    IpAddr::V6(address) => format!("[{address}]"),
                };
                (host, private)
            }
        };
        let port = event.port.unwrap_or(LIKELY_PORT);
        let mut entry = host::parse(&format!("{host}:{port}")).ok()?;
        let present: Vec<Entry> = present
            .iter()
            .flat_map(|network| &network.hosts)
            .filter_map(|text| host::parse(text).ok())
            .collect();
        let mut guessed = event.port.is_none();
        // The present list may say which port is meant.
        if guessed && let Some(listed) = present.iter().find(|listed| allows_host(listed, &entry)) {
            entry.port = listed.port;
            guessed = false;
        }
        let apex = |listed: &&Entry| match (&listed.host, &entry.host) {
            (Host::Below(apex), Host::Name(name)) => apex == name,
            _ => false,
        };
        let remark = if let Some(wildcard) = present.iter().find(apex) {
            Some(format!("`{wildcard}` does not cover it"))
        } else if private {
            Some(PRIVATE.to_owned())
        } else {
            guessed.then(|| PORT_UNKNOWN.to_owned())
        };
        Some(Self {
            entry: entry.to_string(),
            remark,
            guessed,
        })
    }

    /// As a line of a list.
    pub(super) fn line(entry: &str, remark: Option<&String>) -> String {
        let remark = remark.map(|remark| format!(" # {remark}"));
        format!("    - \"{entry}\"{}\n", remark.unwrap_or_default())
    }
}

/// Whether an entry allows the host of another one, at some port.
fn allows_host(entry: &Entry, other: &Entry) -> bool {
    let at_its_port = Entry {
        host: other.host.clone(),
        port: entry.port,
    };
    entry.covers(&at_its_port)
}

/// Takes out guesses about hosts whose ports are known.
pub(super) fn without_guesses(
    advice: impl IntoIterator<Item = Advice>,
) -> BTreeMap<String, Option<String>> {
    let (guesses, known): (Vec<Advice>, Vec<Advice>) =
        advice.into_iter().partition(|advice| advice.guessed);
    let host = |entry: &str| host::parse(entry).ok().map(|entry| entry.host);
    let hosts: Vec<_> = known.iter().map(|advice| host(&advice.entry)).collect();
    let guesses = guesses
        .into_iter()
        .filter(|guess| !hosts.contains(&host(&guess.entry)));
    let mut entries: BTreeMap<_, _> = guesses
        .map(|advice| (advice.entry, advice.remark))
        .collect();
    entries.extend(
        known
            .into_iter()
            .map(|advice| (advice.entry, advice.remark)),
    );
    entries
}

impl Suggestion {
    /// From what was recorded of one instance, and its present rules.
    pub(super) fn of(lines: &[Line], present: Option<&Network>) -> Self {
        let mut tried = Vec::new();
        let mut suggestion = Self::default();
        for Line { event, .. } in lines {
            let code = event.reason.as_ref().map(|why| why.code.as_str());
            let wanted = match event.phase {
                Phase::Lost => continue,
                Phase::Opened | Phase::Closed | Phase::Named => true,
                Phase::Denied => matches!(
                    code,
                    Some(
                        "not-listed"
                            | "port-not-listed"
                            | "no-such-name"
                            | "lookup-failed"
                            | "connect-failed"
                            | "timed-out"
                    )
                ),
            };
            match Advice::on(event, present).filter(|_| wanted) {
                Some(advice) => tried.push(advice),
                None => {
                    if let (Some(target), Some(why)) = (target(event), &event.reason) {
                        let why = match wanted {
                            true => "no entry can allow it".to_owned(),
                            false => escape(&why.text),
                        };
                        suggestion.left_out.insert(target, why);
                    }
                }
            }
        }
        suggestion.hosts = without_guesses(tried);
        suggestion.gather_siblings();
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
                matches!(entry.host, Host::Below(_)) && !entry.has_many_owners()
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
                "for {} names: {}, …; list them instead if there are no others",
                labels.len(),
                listed.join(", ")
            );
            self.hosts.insert(wildcard, Some(remark));
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
            text.push_str(&Advice::line(entry, remark.as_ref()));
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
        let remark = |(entry, remark): (&String, &Option<String>)| {
            let text = remark.as_ref()?;
            Some(json!({ "host": entry, "text": text }))
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

/// Entries of the present list that allow nothing of what is suggested.
fn unused(present: &[String], suggested: &BTreeMap<String, Option<String>>) -> Vec<String> {
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
        let text = |(entry, remark): (String, Option<String>)| match remark {
            Some(remark) => format!("{entry} # {remark}"),
            None => entry,
        };
        hosts.map(text).collect()
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
            line(
                Phase::Denied,
                "93.184.216.34",
                Some(5432),
                Some("not-listed"),
            ),
            line(
                Phase::Denied,
                "2606:2800:220::7",
                Some(80),
                Some("not-listed"),
            ),
        ];
        assert_eq!(
            hosts(&lines),
            [
                "93.184.216.34:5432".to_owned(),
                "[2606:2800:220::7]:80".to_owned(),
                "a.example.net:80".to_owned(),
                "b.example.com:22".to_owned(),
                "b.example.com:443".to_owned(),
                format!("c.example.org:443 # {PORT_UNKNOWN}"),
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
        assert_eq!(text.matches("# left out: ").count(), 4, "{text}");
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
