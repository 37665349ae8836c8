//! Commands that install or run packages, and which of those have no version of their own.

use super::dockerfile::Variables;
use super::{At, Word, shell};

/// A package whose version is open.
pub(super) struct Finding {
    pub(super) word: Word,
    pub(super) loose: Loose,
    /// What it would look like with a version.
    pub(super) pinned: String,
}

/// In which way a version is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loose {
    /// None is given.
    Unversioned,
    /// A tag such as `latest`.
    Moving,
    /// A range such as `^1.2`.
    Range,
}

/// How a package manager writes a package with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `name@1.2.3`, npm and its like.
    Npm,
    /// `name==1.2.3`.
    Pip,
    /// `name@1.2.3` or `name==1.2.3`, uv's runner.
    Uvx,
    /// `name@1.2.3`, or `--version`.
    Cargo,
    /// `name:1.2.3`, or `--version`.
    Gem,
    /// `path@v1.2.3`.
    Go,
}

/// Whether every plain word of a command is a package, or the first is and the rest are its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Install,
    Run,
}

/// Program, words after it, what they do.
type Rule = (&'static str, &'static [&'static str], Form, Kind);

const RULES: &[Rule] = &[
    ("npm", &["install"], Form::Npm, Kind::Install),
    ("npm", &["i"], Form::Npm, Kind::Install),
    ("npm", &["add"], Form::Npm, Kind::Install),
    ("npm", &["exec"], Form::Npm, Kind::Run),
    ("npm", &["x"], Form::Npm, Kind::Run),
    ("npx", &[], Form::Npm, Kind::Run),
    ("pnpm", &["add"], Form::Npm, Kind::Install),
    ("pnpm", &["install"], Form::Npm, Kind::Install),
    ("pnpm", &["i"], Form::Npm, Kind::Install),
    ("pnpm", &["dlx"], Form::Npm, Kind::Run),
    ("pnpx", &[], Form::Npm, Kind::Run),
    ("yarn", &["add"], Form::Npm, Kind::Install),
    ("yarn", &["global", "add"], Form::Npm, Kind::Install),
    ("yarn", &["dlx"], Form::Npm, Kind::Run),
    ("bun", &["add"], Form::Npm, Kind::Install),
    ("bun", &["install"], Form::Npm, Kind::Install),
    ("bun", &["x"], Form::Npm, Kind::Run),
    ("bunx", &[], Form::Npm, Kind::Run),
    ("pip", &["install"], Form::Pip, Kind::Install),
    (
        "python",
        &["-m", "pip", "install"],
        Form::Pip,
        Kind::Install,
    ),
    ("pipx", &["install"], Form::Pip, Kind::Install),
    ("pipx", &["run"], Form::Pip, Kind::Run),
    ("uv", &["pip", "install"], Form::Pip, Kind::Install),
    ("uv", &["add"], Form::Pip, Kind::Install),
    ("uv", &["tool", "install"], Form::Uvx, Kind::Install),
    ("uv", &["tool", "run"], Form::Uvx, Kind::Run),
    ("uvx", &[], Form::Uvx, Kind::Run),
    ("cargo", &["install"], Form::Cargo, Kind::Install),
    ("gem", &["install"], Form::Gem, Kind::Install),
    ("go", &["install"], Form::Go, Kind::Install),
    ("go", &["run"], Form::Go, Kind::Run),
];

/// Programs that run another one.
const WRAPPERS: [&str; 8] = [
    "sudo",
    "exec",
    "env",
    "time",
    "command",
    "tini",
    "dumb-init",
    "--",
];

/// Options whose value is the next word.
const WITH_VALUE: [&str; 36] = [
    "--abi",
    "--bin",
    "--branch",
    "--cache",
    "--cache-dir",
    "--call",
    "--config",
    "--features",
    "--find-links",
    "--git",
    "--implementation",
    "--index",
    "--index-url",
    "--extra-index-url",
    "--install-dir",
    "--loglevel",
    "--only-binary",
    "--no-binary",
    "--path",
    "--platform",
    "--prefix",
    "--python",
    "--python-version",
    "--registry",
    "--rev",
    "--root",
    "--src",
    "--tag",
    "--target",
    "--trusted-host",
    "--userconfig",
    "--workspace",
    "-C",
    "-f",
    "-i",
    "-t",
];

/// Options that name a package.
const PACKAGE: [&str; 5] = ["--package", "-p", "--from", "--spec", "--with"];

/// Files of packages, and folders that are installed as they lie there.
const FROM_FILES: [&str; 5] = ["-r", "--requirement", "-e", "--editable", "--requirements"];

/// Options that fix the versions of everything that is installed, or where it comes from.
const FIXED: [&str; 8] = [
    "--version",
    "--vers",
    "-v",
    "--git",
    "--path",
    "-c",
    "--constraint",
    "--require-hashes",
];

/// What a command installs with an open version.
pub(super) fn of_command(words: &[Word]) -> Vec<Finding> {
    let wrapped = words
        .iter()
        .position(|word| {
            !WRAPPERS.contains(&word.text.as_str())
                && shell::assignment(&word.text).is_none()
                && !word.text.starts_with("--mount=")
                && !word.text.starts_with("--network=")
        })
        .unwrap_or(words.len());
    let Some((program, rest)) = words[wrapped..].split_first() else {
        return Vec::new();
    };
    let program = program.text.rsplit('/').next().unwrap_or_default();
    // `python3.12` and `pip3` are the same as without the number.
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if matches!(program, "sh" | "bash" | "ash" | "dash") {
        return script(rest);
    }
    let rule = RULES.iter().find_map(|(name, after, form, kind)| {
        let follows = *name == program
            && after.len() <= rest.len()
            && after
                .iter()
                .zip(rest)
                .all(|(wanted, word)| word.text == *wanted);
        follows.then(|| (*form, *kind, &rest[after.len()..]))
    });
    match rule {
        Some((form, kind, arguments)) => packages(form, kind, arguments),
        None => Vec::new(),
    }
}

/// `sh -c "…"`: the script's findings, at the place of the whole script.
fn script(rest: &[Word]) -> Vec<Finding> {
    let Some(at) = rest
        .iter()
        .position(|word| word.text.starts_with('-') && word.text.ends_with('c'))
    else {
        return Vec::new();
    };
    let Some(script) = rest.get(at + 1) else {
        return Vec::new();
    };
    let written: Vec<(char, At)> = script.text.chars().map(|c| (c, script.at)).collect();
    let mut findings: Vec<Finding> = shell::commands(&written, &Variables::new())
        .iter()
        .flat_map(|words| of_command(words))
        .collect();
    for finding in &mut findings {
        finding.word.length = script.length;
    }
    findings
}

fn packages(form: Form, kind: Kind, arguments: &[Word]) -> Vec<Finding> {
    let option = |word: &Word| {
        let text = word.text.as_str();
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(n, v)| (n, Some(v)));
        (name.to_owned(), value.map(str::to_owned))
    };
    if arguments
        .iter()
        .any(|word| FIXED.contains(&option(word).0.as_str()) && !is_run_option(form, word))
    {
        return Vec::new();
    }
    let mut found: Vec<Word> = Vec::new();
    let mut words = arguments.iter();
    let mut named = false;
    while let Some(word) = words.next() {
        if word.text.starts_with('-') && word.text.len() > 1 {
            let (name, value) = option(word);
            if kind == Kind::Run && PACKAGE.contains(&name.as_str()) {
                // What `--with` adds stands beside the program's own package.
                named |= name != "--with";
                match value {
                    Some(text) => found.push(Word {
                        text,
                        ..word.clone()
                    }),
                    None => found.extend(words.next().cloned()),
                }
            } else if value.is_none() && takes_a_value(form, &name) {
                words.next();
            }
            continue;
        }
        match kind {
            Kind::Install => found.push(word.clone()),
            Kind::Run => {
                if !named {
                    found.push(word.clone());
                }
                break;
            }
        }
    }
    found
        .into_iter()
        .filter(|word| !word.open)
        .filter_map(|word| {
            let loose = judge(form, &word.text)?;
            let pinned = pinned(form, &word.text);
            Some(Finding {
                word,
                loose,
                pinned,
            })
        })
        .collect()
}

fn takes_a_value(form: Form, option: &str) -> bool {
    // Of npm `-p` is a switch.
    (option == "-p" && form != Form::Npm)
        || WITH_VALUE.contains(&option)
        || FROM_FILES.contains(&option)
}

/// `npx -c` and `uvx -v` mean something else than the versions of cargo and gem.
fn is_run_option(form: Form, word: &Word) -> bool {
    match form {
        Form::Npm => true,
        Form::Cargo | Form::Gem => word.text == "-c",
        Form::Pip | Form::Uvx => matches!(word.text.as_str(), "-v" | "--version"),
        Form::Go => true,
    }
}

/// In which way a package's version is open; `None` where it is fixed, or comes from a file or an address.
fn judge(form: Form, text: &str) -> Option<Loose> {
    let is_file = text.starts_with(['.', '/', '~'])
        || text.contains("://")
        || text.starts_with("file:")
        || text.ends_with(".whl")
        || text.ends_with(".tgz")
        || text.ends_with(".tar.gz");
    if text.is_empty() || is_file {
        return None;
    }
    match form {
        Form::Npm => npm(split_at(text).1),
        Form::Pip => pip(text),
        Form::Uvx if text.contains(['=', '<', '>', '~', '!']) => pip(text),
        Form::Uvx | Form::Go => match split_at(text).1 {
            // A path without a version is a module of the source tree.
            None if form == Form::Go
                && !text
                    .split('/')
                    .next()
                    .is_some_and(|host| host.contains('.')) =>
            {
                None
            }
            None | Some("") => Some(Loose::Unversioned),
            Some(version) if is_version(version, 1) => None,
            Some(_) => Some(Loose::Moving),
        },
        Form::Cargo => split_at(text).1.is_none().then_some(Loose::Unversioned),
        Form::Gem => (!text.contains(':')).then_some(Loose::Unversioned),
    }
}

/// Name and version of `name@version` and `@scope/name@version`.
fn split_at(text: &str) -> (&str, Option<&str>) {
    match text.rfind('@').filter(|at| *at > 0) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn npm(version: Option<&str>) -> Option<Loose> {
    let version = version.unwrap_or_default();
    if version.is_empty() {
        return Some(Loose::Unversioned);
    }
    // `alias@npm:name@version`, a repository, an address.
    if version.contains([':', '/']) || is_version(version, 3) {
        return None;
    }
    let begins_a_range =
        version.starts_with(|c: char| c.is_ascii_digit() || "^~<>=*xXv".contains(c));
    Some(if begins_a_range {
        Loose::Range
    } else {
        Loose::Moving
    })
}

/// A version with at least so many numbers, and whatever a pre-release or build adds.
fn is_version(text: &str, numbers: usize) -> bool {
    let text = text.strip_prefix(['v', '=']).unwrap_or(text);
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() >= numbers
        && parts
            .iter()
            .all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

fn pip(text: &str) -> Option<Loose> {
    let requirement = text.split(';').next().unwrap_or_default().trim();
    let name_end = requirement
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(requirement.len());
    let rest = requirement[name_end..].trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']').map_or("", |(_, rest)| rest),
        None => rest,
    }
    .trim_start();
    if rest.is_empty() {
        return Some(Loose::Unversioned);
    }
    let exact = rest
        .split(',')
        .any(|part| part.trim().starts_with("==") && !part.contains('*'));
    (!exact && !rest.starts_with('@')).then_some(Loose::Range)
}

/// The package as it would be with a version.
fn pinned(form: Form, text: &str) -> String {
    let name = |end: &[char]| {
        let from = usize::from(text.starts_with('@'));
        let end = text[from..].find(end).map_or(text.len(), |at| from + at);
        text[..end].trim_end().to_owned()
    };
    match form {
        Form::Npm | Form::Cargo | Form::Uvx => {
            format!("{}@1.2.3", name(&['@', '=', '<', '>', '~', '!']))
        }
        Form::Go => format!("{}@v1.2.3", name(&['@'])),
        Form::Pip => format!("{}==1.2.3", name(&['=', '<', '>', '~', '!', ';', ' '])),
        Form::Gem => format!("{text}:1.2.3"),
    }
}

/// What a requirements file leaves open.
pub(super) fn requirements(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, number) in text.lines().zip(1_u32..) {
        let body = match line.find(" #") {
            Some(at) => &line[..at],
            None => line,
        };
        let indent = body.chars().take_while(|c| c.is_whitespace()).count();
        let body = body.trim().trim_end_matches('\\').trim_end();
        if body.is_empty() || body.starts_with(['#', '-']) {
            continue;
        }
        let body = body.split(" --").next().unwrap_or_default().trim_end();
        if let Some(loose) = judge(Form::Pip, body) {
            findings.push(Finding {
                word: Word {
                    text: body.to_owned(),
                    open: false,
                    at: At {
                        line: number,
                        column: u32::try_from(indent).unwrap_or(u32::MAX).saturating_add(1),
                    },
                    length: u32::try_from(body.chars().count()).unwrap_or(u32::MAX),
                },
                loose,
                pinned: pinned(Form::Pip, body),
            });
        }
    }
    findings
}
