//! What the templates see: strings that are already safe to print.

use serde::Serialize;

use super::escape;
use crate::diff::{Action, Cause, Change, ChangeSet, Reason, Subject};
use crate::model::{
    Class, Credential, CredentialScope, Filesystem, InstanceKey, Limits, Network, NetworkMode,
    Routing, Sharing, SharingMode,
};
use crate::plan::{ImageKind, Plan, PlannedImage, PlannedInstance, PolicyOrigin};

#[derive(Serialize)]
pub(super) struct View {
    project: String,
    agents: Vec<AgentView>,
    instances: Vec<InstanceView>,
    others: Vec<ChangeView>,
    /// What it means for rights.
    rights: Vec<String>,
    summary: String,
}

#[derive(Serialize)]
struct AgentView {
    id: String,
    name: String,
    routing: &'static str,
    offered: String,
}

#[derive(Serialize)]
struct InstanceView {
    change: ChangeView,
    place: String,
    facts: Vec<FactView>,
    tools: Vec<ToolView>,
}

/// A line `label value`, the value possibly of several lines.
#[derive(Serialize)]
struct FactView {
    label: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct ToolView {
    name: String,
    policy: String,
    origin: &'static str,
    note: &'static str,
}

#[derive(Serialize)]
struct ChangeView {
    sign: &'static str,
    title: String,
    verb: &'static str,
    /// Nothing but the headline.
    brief: bool,
    /// Whether an empty line goes before it.
    gap: bool,
    intent: Vec<ReasonView>,
    drift: Vec<ReasonView>,
}

#[derive(Serialize)]
struct ReasonView {
    path: String,
    old: String,
    new: String,
    forces: bool,
}

impl View {
    pub(super) fn new(plan: &Plan, changes: Option<&ChangeSet>, rights: Vec<String>) -> Self {
        let all = changes.map_or(&[][..], |changes| &changes.changes);
        let agents = plan
            .agents
            .iter()
            .filter(|(id, _)| *id != InstanceKey::NAMELESS)
            .map(|(id, agent)| AgentView {
                id: escape(id),
                name: escape(&agent.name),
                routing: match agent.routing {
                    Routing::Auto => "auto",
                    Routing::Inline => "inline",
                    Routing::Delegate => "delegate",
                },
                offered: offered(plan, id),
            })
            .collect();
        let mut instances: Vec<InstanceView> = plan
            .instances
            .iter()
            .map(|(key, instance)| {
                let change = all.iter().find(
                    |change| matches!(&change.subject, Subject::Instance(other) if other == key),
                );
                InstanceView {
                    change: match change {
                        Some(change) => change_view(change),
                        None => ChangeView {
                            sign: " ",
                            title: escape(key.as_str()),
                            verb: "",
                            brief: false,
                            gap: true,
                            intent: Vec::new(),
                            drift: Vec::new(),
                        },
                    },
                    place: format!(
                        "{}:{}",
                        escape(instance.origin.file.as_str()),
                        instance.origin.line
                    ),
                    facts: facts(instance),
                    tools: tools(instance),
                }
            })
            .collect();
        let mut others: Vec<ChangeView> = all
            .iter()
            .filter(|change| !matches!(change.subject, Subject::Instance(_)))
            .map(change_view)
            .collect();
        close_gaps(instances.iter_mut().map(|instance| &mut instance.change));
        close_gaps(others.iter_mut());
        Self {
            project: escape(&plan.project),
            agents,
            instances,
            others,
            rights,
            summary: match changes {
                Some(changes) => summary(changes),
                None => "Offline: nothing was compared with an engine.".to_owned(),
            },
        }
    }
}

/// How much the tools of an agent give a model to read (I16).
fn offered(plan: &Plan, agent: &str) -> String {
    let tools = plan
        .instances
        .iter()
        .filter(|(key, _)| key.agent() == agent)
        .flat_map(|(key, instance)| instance.tools.iter().map(move |tool| (key, tool)));
    let (mut count, mut bytes) = (0_usize, 0_usize);
    for (key, (name, tool)) in tools {
        count += 1;
        // The name that a model sees is `<capability>__<tool>`.
        bytes += key.capability().len() + 2 + name.len();
        bytes += tool.description.len() + tool.input_schema.to_string().len();
    }
    match count {
        0 => "no tools are known".to_owned(),
        1 => format!("1 tool, {bytes} bytes for the model to read"),
        many => format!("{many} tools, {bytes} bytes for the model to read"),
    }
}

/// Headlines without anything below them stand close together.
fn close_gaps<'a>(changes: impl Iterator<Item = &'a mut ChangeView>) {
    let mut after_brief = false;
    for change in changes {
        change.gap = !(change.brief && after_brief);
        after_brief = change.brief;
    }
}

/// `Plan: 2 to create, 1 to replace.`
pub(super) fn summary(changes: &ChangeSet) -> String {
    let count = |action: Action| {
        changes
            .changes
            .iter()
            .filter(|change| change.action == action)
            .count()
    };
    let parts: Vec<String> = [
        (Action::Create, "create"),
        (Action::Update, "update"),
        (Action::Replace, "replace"),
        (Action::Start, "start"),
        (Action::Delete, "delete"),
    ]
    .into_iter()
    .map(|(action, verb)| (count(action), verb))
    .filter(|(count, _)| *count > 0)
    .map(|(count, verb)| format!("{count} to {verb}"))
    .collect();
    let same = count(Action::NoOp);
    match (parts.is_empty(), same) {
        (true, _) => "Plan: nothing to do.".to_owned(),
        (false, 0) => format!("Plan: {}.", parts.join(", ")),
        (false, same) => format!("Plan: {}; {same} unchanged.", parts.join(", ")),
    }
}

/// 570,000,000 nano-CPUs are `0.57`.
pub(crate) fn cores(nano_cpus: u64) -> String {
    let (whole, part) = (nano_cpus / 1_000_000_000, nano_cpus % 1_000_000_000);
    let part = format!("{part:09}");
    match part.trim_end_matches('0') {
        "" => whole.to_string(),
        digits => format!("{whole}.{digits}"),
    }
}

/// Limits in one line, in the units that people use.
pub(crate) fn limits_line(limits: &Limits) -> String {
    let Limits {
        memory_mb,
        nano_cpus,
        cpu_seconds,
        pids,
    } = limits;
    format!(
        "{memory_mb} MiB memory, {} CPU, {cpu_seconds} s CPU a call, {pids} processes",
        cores(*nano_cpus)
    )
}

fn change_view(change: &Change) -> ChangeView {
    let title = match &change.subject {
        Subject::Gateway(name) => format!("gateway {}", escape(name)),
        Subject::Instance(key) => escape(key.as_str()),
        Subject::Container(name) => format!("container {}", escape(name)),
        Subject::Network(name) => format!("network {}", escape(name)),
    };
    let (sign, verb) = match change.action {
        Action::Create => ("+", "will be created"),
        Action::Update => ("~", "will be changed in place"),
        Action::Replace => ("±", "will be replaced"),
        Action::Start => (">", "will be started"),
        Action::Delete => ("-", "will be deleted: it is ours, and not planned any more"),
        Action::NoOp => (" ", "is as planned"),
    };
    let of = |cause: Cause| {
        change
            .reasons
            .iter()
            .filter(|reason| reason.cause == cause)
            .map(reason_view)
            .collect()
    };
    ChangeView {
        sign,
        title,
        verb,
        brief: matches!(change.action, Action::NoOp | Action::Delete),
        gap: true,
        intent: of(Cause::Intent),
        drift: of(Cause::Drift),
    }
}

fn reason_view(reason: &Reason) -> ReasonView {
    let text = |value: &Option<String>| match value {
        None => "(absent)".to_owned(),
        Some(value) if value.is_empty() => "(empty)".to_owned(),
        Some(value) => in_units(&reason.path, value).unwrap_or_else(|| escape(value)),
    };
    ReasonView {
        path: escape(&reason.path),
        old: text(&reason.old),
        new: text(&reason.new),
        forces: reason.forces_replace,
    }
}

/// Bytes and billionths of a core as people write them.
fn in_units(path: &str, value: &str) -> Option<String> {
    let number: u64 = value.parse().ok()?;
    const MIB: u64 = 1 << 20;
    match path.rsplit('.').next()? {
        "nano_cpus" => Some(format!("{} CPU", cores(number))),
        field if field.ends_with("_bytes") && number > 0 && number.is_multiple_of(MIB) => {
            Some(format!("{} MiB", number / MIB))
        }
        _ => None,
    }
}

fn facts(instance: &PlannedInstance) -> Vec<FactView> {
    let mut facts = Vec::new();
    let mut fact = |label: &str, lines: Vec<String>| {
        facts.push(FactView {
            label: format!("{label:<12}"),
            lines,
        });
    };
    fact("image", image(&instance.image));
    let mut limits = vec![limits_line(&instance.limits)];
    let overridden = instance.limit_overrides.iter().map(|(limit, origin)| {
        let limit = match limit.as_str() {
            "memory_mb" => "memory",
            "nano_cpus" => "CPU",
            "cpu_seconds" => "CPU time",
            "pids" => "processes",
            other => other,
        };
        let place = format!("{}:{}", escape(origin.file.as_str()), origin.line);
        format!("{} as set in {place}", escape(limit))
    });
    limits.extend(overridden);
    fact("limits", limits);
    fact(
        "network",
        network(&instance.network_rules, &instance.private),
    );
    let mut writable = match instance.filesystem {
        Filesystem::None => "nothing is writable".to_owned(),
        Filesystem::Temp => "/tmp, 64 MiB, emptied at restart".to_owned(),
        Filesystem::Workspace => "/workspace, a volume".to_owned(),
    };
    if instance.cache {
        writable.push_str("; /cache, a volume");
    }
    fact("filesystem", vec![writable]);
    let Sharing {
        mode,
        max_concurrent,
        idle_timeout_seconds: _,
    } = &instance.sharing;
    if *mode == SharingMode::Shared {
        fact(
            "sharing",
            vec![format!(
                "one container for all, {max_concurrent} calls at once"
            )],
        );
    }
    if instance.class == Class::Environment {
        fact("class", vec!["environment".to_owned()]);
    }
    if let Some(tool) = &instance.discovery_tool {
        let known = match instance.tools.len() {
            0 => "none is known yet".to_owned(),
            1 => "1 is locked".to_owned(),
            many => format!("{many} are locked"),
        };
        let line = format!("tools are listed live by `{}`; {known}", escape(tool));
        fact("discovery", vec![line]);
    }
    if !instance.credentials.is_empty() {
        fact(
            "credentials",
            instance.credentials.iter().map(credential).collect(),
        );
    }
    facts
}

fn image(image: &PlannedImage) -> Vec<String> {
    let written = escape(&image.written);
    let mut lines = vec![written];
    let digest = image.digest.as_deref().map(escape);
    match (image.kind, digest) {
        (ImageKind::Registry, Some(digest)) => {
            let pull = if image.pull { ", to be pulled" } else { "" };
            lines.push(format!("{digest}{pull}"));
        }
        (ImageKind::Local, Some(id)) => lines.push(format!("local, {id}")),
        (ImageKind::Local, None) => lines.push("local".to_owned()),
        (ImageKind::Registry | ImageKind::Unknown, _) => {
            lines.push("not known without an engine".to_owned());
        }
    }
    if let (ImageKind::Local, Some(source)) = (image.kind, &image.source) {
        let state = match image.built_from_source {
            Some(true) => "built from",
            Some(false) => "NOT built from",
            None => "source",
        };
        lines.push(format!("{state} {}", escape(source)));
    }
    lines
}

fn network(rules: &Network, private: &[String]) -> Vec<String> {
    let mut lines = match rules.mode {
        NetworkMode::None => vec!["none: nothing outside is reachable".to_owned()],
        NetworkMode::Any => vec![
            "any: every public name on any TCP port; no bare address, no private one, no UDP"
                .to_owned(),
        ],
        NetworkMode::Allowlist => {
            let mut lines = vec!["only these, over TCP:".to_owned()];
            lines.extend(
                rules
                    .hosts
                    .iter()
                    .map(|host| format!("  {}{}", escape(host), remarks(host))),
            );
            lines
        }
    };
    if !private.is_empty() {
        lines.push("private addresses, too, by selu.toml, for:".to_owned());
        lines.extend(private.iter().map(|host| format!("  {}", escape(host))));
    }
    lines
}

/// What an entry means beyond its words (N2, N4).
fn remarks(host: &str) -> &'static str {
    // An IPv6 literal is bracketed, so a colon after the last bracket begins a port.
    let after_literal = host.rfind(']').map_or(0, |at| at + 1);
    let name = match host[after_literal..].find(':') {
        Some(at) => &host[..after_literal + at],
        None => host,
    };
    let is_literal = host.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
    match (is_literal, name.len() == host.len()) {
        (true, true) => " (any port; an address: through the gateway's proxy only)",
        (true, false) => " (an address: through the gateway's proxy only)",
        (false, true) => " (any port)",
        (false, false) => "",
    }
}

fn credential(credential: &Credential) -> String {
    let Credential {
        name,
        scope,
        required,
        description: _,
    } = credential;
    let scope = match scope {
        CredentialScope::System => "system",
        CredentialScope::User => "one per user",
    };
    let optional = if *required { "" } else { ", optional" };
    format!("{} ({scope}{optional})", escape(name))
}

fn tools(instance: &PlannedInstance) -> Vec<ToolView> {
    let width = instance
        .tools
        .keys()
        .map(|name| escape(name).chars().count())
        .max()
        .unwrap_or(0);
    instance
        .tools
        .iter()
        .map(|(name, tool)| ToolView {
            name: format!("{:<width$}", escape(name)),
            policy: format!("{:<5}", tool.policy.to_string()),
            origin: match tool.policy_origin {
                PolicyOrigin::Override => "set in selu.toml",
                PolicyOrigin::Manifest => "from the manifest",
                PolicyOrigin::Discovered => "recommended at discovery",
                PolicyOrigin::Default => "nobody said otherwise",
            },
            note: if tool.terminal_on_success {
                ", ends the loop"
            } else {
                ""
            },
        })
        .collect()
}
