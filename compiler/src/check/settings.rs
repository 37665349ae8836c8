//! selu.toml: Raw → [`Settings`].

mod limits;
mod reach;
mod review;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::shape::{self, Unknown, nearest};
use crate::diag::codes::{manifest, settings as codes};
use crate::diag::levels::Level;
use crate::diag::{self, Code, Diagnostic, Place};
use crate::model::settings::RawSettings;
use crate::model::{InstanceKey, Network, Origin, Settings, is_id, schemas};
use crate::source::SourceFile;
use crate::yaml::node::{Data, Entry, Map, Node, Span};
use crate::yaml::scalar::{Kind, Scalar};
use crate::yaml::{Document, escape};

/// selu.toml with the places of what can only be judged once the project is known.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) settings: Settings,
    /// `[project] name`.
    pub(super) name: Option<String>,
    targets: Vec<Target>,
    /// Permissions whose instance's rules are still to be looked at.
    permissions: Vec<reach::Permission>,
}

/// An instance, or one of its tools, that a setting names.
struct Target {
    instance: InstanceKey,
    tool: Option<String>,
    place: Place,
    /// What it is if there is no such instance or tool.
    code: &'static Code,
}

/// Checks selu.toml by itself.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Diagnostic>) -> Outcome {
    let lines = Lines::new(&file.text);
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    if !errors.is_empty() {
        // What follows a broken line is often read wrongly; its findings would mislead.
        for error in errors {
            let span = lines.span(error.span().unwrap_or_default());
            let place = Place {
                origin: Origin {
                    file: file.path.clone(),
                    line: span.line,
                    column: span.column,
                },
                length: span.length,
                path: String::new(),
            };
            findings.push(Diagnostic::new(
                &codes::SYNTAX,
                place,
                format!("this is not TOML: {}", error.message()),
            ));
        }
        return Outcome::default();
    }
    let document = Document {
        file: file.path.clone(),
        root: Node {
            data: table_data(table.get_ref(), &lines),
            span: lines.span(0..0),
        },
        folded: Vec::new(),
    };
    let raw: RawSettings = shape::read(&document, schemas::settings(), Unknown::Settings, findings);
    Check {
        document: &document,
        findings,
        outcome: Outcome::default(),
    }
    .run(raw)
}

struct Check<'a> {
    document: &'a Document,
    findings: &'a mut Vec<Diagnostic>,
    outcome: Outcome,
}

impl Check<'_> {
    fn run(mut self, raw: RawSettings) -> Outcome {
        self.outcome.name = raw.project.and_then(|project| project.name);
        if let Some(name) = &self.outcome.name
            && !is_id(name)
        {
            let message = format!(
                "{name:?} is not a project's name: lower-case letters, digits and inner hyphens, at most 63 characters"
            );
            let place = self.document.place("/project/name");
            self.findings
                .push(Diagnostic::new(&manifest::BAD_ID, place, message));
        }
        let engine = raw.engine.unwrap_or_default();
        if let Some(host) = engine.host {
            self.host(host);
        }
        if let Some(subnets) = engine.subnets {
            self.subnets(&subnets);
        }
        self.resolvers(engine.resolvers.unwrap_or_default());
        for (key, policy) in raw.policy.unwrap_or_default() {
            let pointer = format!("/policy/{}", escape(&key));
            let place = self.document.key_place(&pointer);
            let Some((instance, tool)) = InstanceKey::parse_tool(&key) else {
                self.bad_key(place, &key, "agent/capability/tool");
                continue;
            };
            self.outcome.targets.push(Target {
                instance: instance.clone(),
                tool: Some(tool.to_owned()),
                place: place.clone(),
                code: &codes::NOT_AN_INSTANCE,
            });
            if let Some(policy) = policy {
                let key = (instance, tool.to_owned());
                self.outcome
                    .settings
                    .policies
                    .insert(key, (policy, place.origin));
            }
        }
        for (key, build) in raw.build.unwrap_or_default() {
            let pointer = format!("/build/{}", escape(&key));
            let place = self.document.key_place(&pointer);
            let Some(instance) = InstanceKey::parse(&key) else {
                self.bad_key(place, &key, "agent/capability");
                continue;
            };
            self.outcome.targets.push(Target {
                instance: instance.clone(),
                tool: None,
                place,
                code: &codes::NOT_AN_INSTANCE,
            });
            let Some(prepare) = build.and_then(|build| build.prepare) else {
                continue;
            };
            let words: Vec<String> = prepare.into_iter().flatten().collect();
            if words
                .first()
                .is_none_or(|command| command.trim().is_empty())
            {
                self.findings.push(Diagnostic::new(
                    &codes::BAD_PREPARE,
                    self.document.place(&format!("{pointer}/prepare")),
                    "`prepare` is a command and its words, and it is empty",
                ));
            } else {
                self.outcome.settings.prepare.insert(instance, words);
            }
        }
        for (key, reach) in raw.network.unwrap_or_default() {
            self.private(&key, reach.and_then(|reach| reach.private));
        }
        self.limits(raw.limits.unwrap_or_default());
        if let Some(on_change) = raw.discovery.and_then(|discovery| discovery.on_change) {
            self.outcome.settings.on_change = on_change;
        }
        let idle_stop = raw.runtime.and_then(|runtime| runtime.idle_stop);
        self.outcome.settings.idle_stop = idle_stop.unwrap_or_default();
        self.levels(raw.diagnostics.unwrap_or_default());
        self.review(raw.review.unwrap_or_default());
        self.outcome
    }

    fn levels(&mut self, raw: BTreeMap<String, Option<Level>>) {
        let mut first: HashMap<&str, Place> = HashMap::new();
        for (key, level) in raw {
            let pointer = format!("/diagnostics/{}", escape(&key));
            let place = self.document.key_place(&pointer);
            let Some(code) = diag::codes::find(&key) else {
                let message = format!("there is no code `{}`", diag::shown(&key));
                let mut finding = Diagnostic::new(&codes::UNKNOWN_CODE, place, message);
                if let Some(near) = diag::codes::nearest(&key) {
                    finding = finding
                        .help(format!("did you mean `{near}`?"))
                        .suggest(near);
                }
                self.findings.push(finding);
                continue;
            };
            if let Some(first) = first.get(code.id) {
                let message = format!("`{}` and `{}` are the same code", code.id, code.name);
                self.findings.push(
                    Diagnostic::new(&codes::LEVEL_TWICE, place, message)
                        .related(first.clone(), "the other one"),
                );
                continue;
            }
            first.insert(code.id, place);
            let kept = level.is_none_or(|level| self.outcome.settings.levels.set(code, level));
            if !kept {
                let message = format!("`{}` is an error and stays one", code.name);
                let place = self.document.place(&pointer);
                self.findings
                    .push(Diagnostic::new(&codes::ERROR_LOWERED, place, message));
            }
        }
    }

    fn bad_key(&mut self, place: Place, key: &str, form: &str) {
        self.findings.push(Diagnostic::new(
            &codes::BAD_KEY,
            place,
            format!("{key:?} is not of the form \"{form}\""),
        ));
    }

    fn host(&mut self, host: String) {
        let schemes = ["unix", "tcp", "http", "https", "ssh", "npipe"];
        let known = host
            .split_once("://")
            .is_some_and(|(scheme, rest)| schemes.contains(&scheme) && !rest.is_empty());
        if known {
            self.outcome.settings.engine_host = Some(host);
            return;
        }
        let mut finding = Diagnostic::new(
            &codes::BAD_HOST,
            self.document.place("/engine/host"),
            format!("{host:?} is not an engine's address"),
        );
        if host.starts_with('/') {
            finding = finding
                .help(format!("write \"unix://{host}\""))
                .suggest(format!("\"unix://{host}\""));
        }
        self.findings.push(finding);
    }

    fn subnets(&mut self, text: &str) {
        let problem = match text.parse::<ipnet::Ipv4Net>() {
            Err(_) => "it is not an IPv4 range",
            Ok(net) if net.addr() != net.network() => "it names a host, not the start of a range",
            Ok(net) if !net.addr().is_private() || !net.broadcast().is_private() => {
                "it is not private"
            }
            Ok(net) if !(8..=24).contains(&net.prefix_len()) => "its prefix is not from 8 to 24",
            Ok(net) => {
                self.outcome.settings.subnets = Some(net);
                return;
            }
        };
        self.findings.push(
            Diagnostic::new(
                &codes::BAD_SUBNETS,
                self.document.place("/engine/subnets"),
                format!("{text:?} cannot serve container networks: {problem}"),
            )
            .help("write a private range such as \"10.213.0.0/16\""),
        );
    }
}

/// What is known of an instance.
pub(super) struct Known<'a> {
    /// Its tools.
    pub(super) tools: Tools<'a>,
    /// Its network rules; `None` because of an error.
    pub(super) network: Option<&'a Network>,
}

/// What is known of an instance's tools.
pub(super) enum Tools<'a> {
    /// Static: all of them.
    Static(Vec<&'a str>),
    /// Dynamic, or not known because of an error.
    Open,
}

impl Outcome {
    /// Whether any setting names an instance.
    pub(super) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Says which settings name nothing that exists.
    pub(super) fn targets(
        &mut self,
        instances: &HashMap<InstanceKey, Known<'_>>,
        findings: &mut Vec<Diagnostic>,
    ) {
        self.permit(instances, findings);
        // A suggestion looks at every name there is; many of them would take long and help nobody.
        const SUGGESTIONS: usize = 20;
        let mut suggestions = 0;
        for Target {
            instance,
            tool,
            place,
            code,
        } in &self.targets
        {
            let known = |wanted: bool| {
                instances
                    .keys()
                    .filter(move |_| wanted)
                    .map(InstanceKey::as_str)
            };
            let tools = instances.get(instance).map(|known| &known.tools);
            let (message, near) = match (tools, tool) {
                (None, _) => (
                    format!("there is no instance `{instance}`"),
                    nearest(instance.as_str(), known(suggestions < SUGGESTIONS)),
                ),
                (Some(Tools::Static(tools)), Some(tool)) if !tools.contains(&tool.as_str()) => (
                    format!("`{instance}` has no tool `{tool}`"),
                    nearest(tool, tools.iter().copied()),
                ),
                _ => continue,
            };
            let finding = Diagnostic::new(code, place.clone(), message);
            suggestions += 1;
            findings.push(match near {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding,
            });
        }
    }
}

fn table_data(table: &DeTable<'_>, lines: &Lines<'_>) -> Data {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().clone().into_owned(),
            key_span: lines.span(key.span()),
            value: node(value, lines),
        })
        .collect();
    entries.sort_by_key(|entry| (entry.key_span.line, entry.key_span.column));
    Data::Map(Map::new(entries))
}

fn node(value: &Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    let scalar = |text: String, kind| {
        Data::Scalar(Scalar {
            text,
            kind,
            plain: false,
        })
    };
    let data = match value.get_ref() {
        DeValue::String(text) => scalar(text.clone().into_owned(), Kind::String),
        DeValue::Boolean(value) => scalar(value.to_string(), Kind::Bool),
        DeValue::Integer(number) => scalar(number.to_string(), Kind::Int),
        DeValue::Float(number) => scalar(number.to_string(), Kind::Float),
        // No setting is a date. Taken for a number, it is refused wherever a text is expected.
        DeValue::Datetime(date) => scalar(date.to_string(), Kind::Float),
        DeValue::Array(items) => Data::List(items.iter().map(|item| node(item, lines)).collect()),
        DeValue::Table(table) => table_data(table, lines),
    };
    Node {
        data,
        span: lines.span(value.span()),
    }
}

/// Byte offsets → lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(newlines).collect(),
        }
    }

    fn span(&self, range: Range<usize>) -> Span {
        let start = range.start.min(self.text.len());
        let line = self.starts.partition_point(|line| *line <= start).max(1);
        let begin = self.starts[line - 1];
        let end = self.text[begin..]
            .find('\n')
            .map_or(self.text.len(), |at| begin + at)
            .min(range.end.max(start));
        let characters = |from: usize, to: usize| {
            self.text.get(from..to).map_or(0, |text| {
                u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
            })
        };
        Span {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: characters(begin, start) + 1,
            length: characters(start, end).max(1),
        }
    }
}
