//! Image references (I0–I2), in OCI's grammar and normalised as Docker does.

use std::net::Ipv6Addr;

use crate::diag::codes::image as codes;
use crate::diag::{Problem, shown};
use crate::model::ImageReference;

/// The longest registry and path together.
const NAME_MAX: usize = 255;

/// The longest tag.
const TAG_MAX: usize = 128;

/// Reads an image reference; `None` when any problem is an error.
pub fn image(text: &str) -> (Option<ImageReference>, Vec<Problem>) {
    match parse(text) {
        Ok(reference) => {
            let problems = warnings(text, &reference);
            let tag = match (reference.tag, reference.digest) {
                (None, None) => Some("latest".to_owned()),
                (tag, _) => tag.map(str::to_owned),
            };
            let image = ImageReference {
                written: text.to_owned(),
                registry: reference.registry,
                repository: reference.repository,
                tag,
                digest: reference.digest.map(str::to_owned),
            };
            (Some(image), problems)
        }
        Err(problem) => (None, vec![problem]),
    }
}

/// A reference taken apart, before defaults.
struct Parts<'a> {
    registry: String,
    repository: String,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

/// Legal, but not what a lock can hold on to (I2).
fn warnings(text: &str, reference: &Parts<'_>) -> Vec<Problem> {
    let problem = match (reference.tag, reference.digest) {
        (None, None) => Problem::new(
            &codes::UNTAGGED,
            format!("`{text}` has neither tag nor digest, which means `:latest`"),
        ),
        (Some(tag), digest) if moves(tag) => {
            let message = format!("the tag `{tag}` is another image tomorrow");
            let problem = Problem::new(&codes::LATEST, message);
            if digest.is_some() {
                problem.help("the digest wins: write the version that it is as the tag, or no tag")
            } else {
                problem
            }
        }
        _ => return Vec::new(),
    };
    vec![problem]
}

/// Whether a tag is `latest` in any form, such as `latest-alpine`.
fn moves(tag: &str) -> bool {
    tag.split(['-', '_', '.'])
        .any(|part| part.eq_ignore_ascii_case("latest"))
}

fn parse(text: &str) -> Result<Parts<'_>, Problem> {
    refuse_other_languages(text)?;
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(check_digest(digest)?)),
        None => (text, None),
    };
    // A colon after the last slash begins the tag; one before it, a registry's port.
    let slash = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest.get(slash..).and_then(|last| last.find(':')) {
        // `[::1]` has no slash yet: an address alone is no image.
        Some(_) if rest.starts_with('[') && slash == 0 => {
            return Err(invalid(format!(
                "`{}` is an address without a path",
                shown(text)
            )));
        }
        Some(at) => {
            let (name, tag) = rest.split_at(slash + at);
            (name, Some(check_tag(&tag[1..])?))
        }
        None => (rest, None),
    };
    if name.is_empty() {
        return Err(invalid(format!("`{}` has no name", shown(text))));
    }
    if name.len() > NAME_MAX {
        return Err(invalid(format!(
            "the name has {} characters, at most {NAME_MAX} are allowed",
            name.len()
        )));
    }
    let (registry, path) = split_registry(name);
    check_path(text, path, registry.is_some())?;
    let registry = match registry {
        Some(registry) => check_registry(registry)?,
        None => "docker.io".to_owned(),
    };
    let repository = if registry == "docker.io" && !path.contains('/') {
        format!("library/{path}")
    } else {
        path.to_owned()
    };
    Ok(Parts {
        registry,
        repository,
        tag,
        digest,
    })
}

/// What people write who mean something else: URLs, packages of npm and PyPI, versions (A03).
fn refuse_other_languages(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(invalid("the image is empty"));
    }
    if let Some(c) = text.chars().find(|c| c.is_whitespace() || c.is_control()) {
        let better: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && !c.is_control())
            .collect();
        return Err(invalid(format!(
            "`{}` holds `{}`: a reference has no blanks",
            shown(text),
            c.escape_debug()
        ))
        .suggest(better));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        // What stands before `@` in a URL may be a secret.
        if rest
            .split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
        {
            return Err(invalid(format!(
                "the image is a URL (`{}://`) with user info: a reference has neither",
                shown(scheme)
            )));
        }
        return Err(invalid(format!(
            "`{}` is a URL: a reference has no scheme",
            shown(text)
        ))
        .suggest(rest.trim_end_matches('/')));
    }
    if text.starts_with('@') {
        return Err(invalid(format!(
            "`{}` is the name of an npm package, not of an image",
            shown(text)
        ))
        .help("name the image that contains the package"));
    }
    if text.contains("==") || text.contains("~=") || text.contains(">=") {
        return Err(invalid(format!(
            "`{}` is the name of a PyPI package, not of an image",
            shown(text)
        ))
        .help("name the image that contains the package"));
    }
    if text.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(invalid(format!(
            "`{}` is a version, not the name of a repository",
            shown(text)
        )));
    }
    Ok(())
}

/// Docker's rule: what stands before the first slash is a registry if it looks like a host.
///
/// Docker takes `Acme/cap` for a registry called `Acme`, for its capital letter alone; nobody means that, so that here
/// it stays a path, and the capital letter is the error (B03).
fn split_registry(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            (Some(host), path)
        }
        _ => (None, name),
    }
}

fn check_registry(text: &str) -> Result<String, Problem> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let Some((address, after)) = bracketed.split_once(']') else {
                return Err(invalid(format!(
                    "`{}` lacks its closing bracket",
                    shown(text)
                )));
            };
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(invalid(format!(
                    "`{}` is not an IPv6 address",
                    shown(address)
                )));
            }
            let port = match (after, after.strip_prefix(':')) {
                ("", _) => None,
                (_, Some(port)) => Some(port),
                _ => {
                    return Err(invalid(format!(
                        "`{}` is not the host of a registry: only `:port` may follow the bracket",
                        shown(text)
                    )));
                }
            };
            (format!("[{}]", address.to_ascii_lowercase()), port)
        }
        None => {
            let (host, port) = match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            };
            let label = |label: &str| {
                !label.is_empty()
                    && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                    && !label.starts_with('-')
                    && !label.ends_with('-')
            };
            if !host.split('.').all(label) {
                return Err(invalid(format!(
                    "`{}` is not the host of a registry",
                    shown(host)
                )));
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    let host = match host.as_str() {
        // Docker's own old name for its registry.
        "index.docker.io" => "docker.io".to_owned(),
        _ => host,
    };
    match port {
        None => Ok(host),
        Some(port) => {
            let number = port
                .bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| port.parse::<u16>().ok())
                .flatten();
            match number {
                Some(1..) => Ok(format!("{host}:{port}")),
                _ => Err(invalid(format!(
                    "`{}` is not the port of a registry: a number from 1 to 65535",
                    shown(port)
                ))),
            }
        }
    }
}

/// Path components: `[a-z0-9]+` joined by one of `.`, `_`, `__` or any number of `-`.
fn check_path(text: &str, path: &str, has_registry: bool) -> Result<(), Problem> {
    if let Some(upper) = path.chars().find(char::is_ascii_uppercase) {
        // Only the path: tags and digests keep their case.
        let better = text.replacen(path, &path.to_ascii_lowercase(), 1);
        return Err(invalid(format!(
            "`{}` has the capital letter `{upper}` in its path: paths are in lower case",
            shown(text)
        ))
        .help(format!("write `{}`", shown(&better)))
        .suggest(better));
    }
    if !has_registry && path.len() == 64 && path.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(invalid(
            "64 hex digits are the id of an image, which differs from build to build; write its name",
        ));
    }
    for component in path.split('/') {
        if component.is_empty() {
            return Err(invalid(format!(
                "`{}` has an empty part in its path",
                shown(text)
            )));
        }
        if let Some(c) = component
            .chars()
            .find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(*c)))
        {
            return Err(invalid(format!(
                "`{}` holds `{}`: a path has small letters, digits, `.`, `_` and `-`",
                shown(text),
                c.escape_debug()
            )));
        }
        if !separators_are_right(component) {
            return Err(invalid(format!(
                "`{}` is not a part of a path: `.`, `_`, `__` and `-` stand between letters or digits only",
                shown(component)
            )));
        }
    }
    Ok(())
}

fn separators_are_right(component: &str) -> bool {
    let mut separator = String::new();
    let mut begun = false;
    for c in component.chars() {
        if "._-".contains(c) {
            if !begun {
                return false;
            }
            separator.push(c);
        } else {
            let legal = matches!(separator.as_str(), "" | "." | "_" | "__")
                || separator.chars().all(|c| c == '-');
            if !legal {
                return false;
            }
            separator.clear();
            begun = true;
        }
    }
    separator.is_empty()
}

fn check_tag(tag: &str) -> Result<&str, Problem> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if tag.is_empty() {
        return Err(invalid("the tag after `:` is empty"));
    }
    let legal = tag.starts_with(word) && tag.chars().all(|c| word(c) || c == '.' || c == '-');
    if !legal || tag.len() > TAG_MAX {
        return Err(invalid(format!(
            "`{}` is not a tag: at most {TAG_MAX} letters, digits, `_`, `.` and `-`, beginning with none of the last two",
            shown(tag)
        )));
    }
    Ok(tag)
}

fn check_digest(digest: &str) -> Result<&str, Problem> {
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    let legal = hex.len() == 64
        && hex
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if legal {
        return Ok(digest);
    }
    Err(invalid(format!(
        "`{}` is not a digest: `sha256:` and 64 hex digits in lower case",
        shown(digest)
    )))
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new(&codes::INVALID, message)
}

#[cfg(test)]
mod tests;
