//! How clients start MCP servers: `npx`, `uvx`, `docker run`.

use super::{Source, split_npm};

/// What a client's command stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) source: Source,
    /// Program, or an empty text for the package's own, and arguments.
    pub(super) command: Vec<String>,
    /// Variables that the command hands on.
    pub(super) variables: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Reads a command; what it cannot read is said. Arguments end in an image that everybody may see, so one with a secret in
/// it is refused (C2), and no message has a value.
pub(super) fn read(program: &str, arguments: &[String]) -> Result<Started, String> {
    let started = source(program, arguments)?;
    if let Some(what) = secret(&started.command) {
        return Err(format!(
            "{what} looks like a secret, and arguments are written into a Dockerfile; if the server takes it from its \
             environment, move it to the entry's `env`"
        ));
    }
    Ok(started)
}

/// An argument with a secret in it, by a name that is none.
fn secret(command: &[String]) -> Option<String> {
    const WORDS: &[&str] = &[
        "apikey",
        "auth",
        "bearer",
        "credential",
        "key",
        "passwd",
        "password",
        "pat",
        "pwd",
        "secret",
        "token",
    ];
    let secret_name = |name: &str| {
        name.split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()))
    };
    for (at, word) in command.iter().enumerate() {
        if let Some((_, rest)) = word.split_once("://")
            && let Some((user, _)) = rest
                .split(['/', '?', '#'])
                .next()
                .unwrap_or_default()
                .rsplit_once('@')
            && user.contains(':')
        {
            return Some("the password in a URL among its arguments".to_owned());
        }
        let name = word.split('=').next().unwrap_or_default();
        let has_value = word.contains('=')
            || name.starts_with('-')
                && command
                    .get(at + 1)
                    .is_some_and(|next| !next.starts_with('-'));
        if has_value && secret_name(name) {
            return Some(format!("the value of its argument `{name}`"));
        }
    }
    None
}

fn source(program: &str, arguments: &[String]) -> Result<Started, String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name
        .strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .unwrap_or(name);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (name, words.as_slice()) {
        ("npx", rest) => package(
            rest,
            &["-y", "--yes", "-q", "--quiet"],
            &["-p", "--package"],
            npm,
        ),
        ("npm", ["exec", rest @ ..]) => {
            package(rest, &["-y", "--yes", "--"], &["-p", "--package"], npm)
        }
        ("bunx", rest) => package(rest, &["-y", "--bun"], &["-p", "--package"], npm),
        ("pnpm", ["dlx", rest @ ..]) => package(rest, &[], &["--package"], npm),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) => {
            package(rest, &["-q", "--quiet"], &["--from"], pypi)
        }
        ("pipx", ["run", rest @ ..]) => package(rest, &[], &["--spec"], pypi),
        // A shell that a client on Windows needs.
        ("cmd", ["/c", program, ..]) => source(program, arguments.get(2..).unwrap_or_default()),
        ("docker" | "podman", ["run", rest @ ..]) => image(rest),
        _ => Err(format!(
            "`{name}` starts a program of the client's own machine; npx, uvx, pipx and docker run can be imported"
        )),
    }
}

fn npm(text: &str) -> Source {
    let (package, version) = split_npm(text);
    Source::Npm {
        package: package.to_owned(),
        version: version.map(str::to_owned),
    }
}

fn pypi(text: &str) -> Source {
    let (package, version) = text
        .split_once("==")
        .or_else(|| text.split_once('@'))
        .map_or((text, None), |(package, version)| (package, Some(version)));
    Source::Pypi {
        package: package.to_owned(),
        version: version.map(str::to_owned),
    }
}

/// A runner of packages: its switches, then the package, then the server's arguments. With an option that names the
/// package, the first word is the program.
fn package(
    words: &[&str],
    switches: &[&str],
    options: &[&str],
    source: fn(&str) -> Source,
) -> Result<Started, String> {
    let mut words = words.iter().copied();
    let mut named = None;
    let first = loop {
        let Some(word) = words.next() else {
            return Err("it names no package".to_owned());
        };
        if switches.contains(&word) {
            continue;
        }
        if let Some(option) = options.iter().find(|option| {
            word.strip_prefix(**option)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        }) {
            let value = word
                .strip_prefix(*option)
                .and_then(|rest| rest.strip_prefix('='));
            named = value.or_else(|| words.next());
            continue;
        }
        if word.starts_with('-') {
            let option = word.split('=').next().unwrap_or_default();
            return Err(format!("the option `{option}` is not known here"));
        }
        break word;
    };
    let (text, program) = match named {
        Some(package) => (package, first.to_owned()),
        None => (first, String::new()),
    };
    let source = source(text);
    let (name, version) = match &source {
        Source::Npm { package, version } | Source::Pypi { package, version } => (package, version),
        Source::Image { image: other } | Source::Url { url: other, .. } => (other, &None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
    if name.is_empty()
        || name.contains("..")
        || name.starts_with(['/', '.'])
        || !name.chars().all(plain)
    {
        // A place may have a password in it.
        let begin = text.split("://").next().unwrap_or_default();
        return Err(format!("`{begin}` is no package of a registry"));
    }
    if version
        .as_deref()
        .is_some_and(|version| !version.chars().all(|c| plain(c) || c == '+'))
    {
        return Err(format!("`{text}` has a version that is a range"));
    }
    let notes = if version
        .as_deref()
        .is_none_or(|version| !version.starts_with(|c: char| c.is_ascii_digit()))
    {
        vec![format!(
            "{name} has no fixed version; write one into its Dockerfile (P5)"
        )]
    } else {
        Vec::new()
    };
    Ok(Started {
        source,
        command: std::iter::once(program)
            .chain(words.map(str::to_owned))
            .collect(),
        variables: Vec::new(),
        notes,
    })
}

/// `docker run` with the options that clients use.
fn image(words: &[&str]) -> Result<Started, String> {
    let mut words = words.iter().copied();
    let (mut variables, mut notes) = (Vec::new(), Vec::new());
    let image = loop {
        let Some(word) = words.next() else {
            return Err("it names no image".to_owned());
        };
        if !word.starts_with('-') {
            break word;
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        match option {
            "-i" | "--interactive" | "-t" | "-it" | "--rm" | "--init" | "--pull"
                if value.is_some() || option != "--pull" => {}
            "-e" | "--env" => {
                let pair = value
                    .map(|value| value.to_owned())
                    .or_else(|| words.next().map(str::to_owned));
                // With a value it is a setting or a secret; neither is copied.
                let pair = pair.unwrap_or_default();
                let name = pair.split('=').next().unwrap_or_default().to_owned();
                variables.push(name);
            }
            "-v" | "--volume" | "--mount" | "--network" | "--net" | "--name" | "-p"
            | "--publish" | "-u" | "--user" | "-w" | "--workdir" | "--platform" | "--add-host"
            | "--pull" => {
                if value.is_none() {
                    words.next();
                }
                notes.push(format!(
                    "`{option}` is left out: the manifest decides what a container may have"
                ));
            }
            _ => {
                return Err(format!(
                    "the option `{option}` of docker run is not known here"
                ));
            }
        }
    };
    Ok(Started {
        source: Source::Image {
            image: image.to_owned(),
        },
        command: std::iter::once(String::new())
            .chain(words.map(str::to_owned))
            .collect(),
        variables,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Started, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        read(&words[0], &words[1..])
    }

    #[test]
    fn the_usual_commands_of_clients_are_read() {
        for (line, source, command) in [
            (
                "npx -y @scope/server@1.2.3 /data",
                npm("@scope/server@1.2.3"),
                vec!["", "/data"],
            ),
            (
                "npx --package=@scope/server@1.2.3 serve",
                npm("@scope/server@1.2.3"),
                vec!["serve"],
            ),
            (
                "uvx mcp-server-time==1.0.0 --local UTC",
                pypi("mcp-server-time==1.0.0"),
                vec!["", "--local", "UTC"],
            ),
            (
                "/usr/bin/uvx --from pkg@2.0.0 serve",
                pypi("pkg==2.0.0"),
                vec!["serve"],
            ),
            ("cmd /c npx -y server@1.0.0", npm("server@1.0.0"), vec![""]),
            (
                "docker run -i --rm -e TOKEN -v /a:/b ghcr.io/x/y:1 stdio",
                Source::Image {
                    image: "ghcr.io/x/y:1".to_owned(),
                },
                vec!["", "stdio"],
            ),
        ] {
            let started = of(line).unwrap();
            assert_eq!(
                (started.source, started.command),
                (source, command.into_iter().map(str::to_owned).collect()),
                "{line}"
            );
        }
        assert_eq!(
            of("docker run -e A -e B=1 --env=C image")
                .unwrap()
                .variables,
            ["A", "B", "C"]
        );
    }

    #[test]
    fn what_is_of_the_clients_machine_or_no_package_is_refused() {
        for line in [
            "node /home/me/server.js",
            "python -m server",
            "npx",
            "npx -y ./local",
            "npx --odd server",
            "npx github:x/y",
            "uvx pkg>=1.0",
            "docker run --privileged image",
            "docker build .",
        ] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_argument_with_a_secret_is_refused_without_its_value_c2() {
        for line in [
            "npx -y server@1.0.0 --api-key c4n4ry",
            "npx -y server@1.0.0 --apikey=c4n4ry",
            "npx -y server@1.0.0 --GITHUB_TOKEN=c4n4ry",
            "uvx server==1.0.0 --password c4n4ry",
            "uvx server==1.0.0 postgresql://me:c4n4ry@db/x",
            "docker run -i image --key=c4n4ry",
            "docker run -i image API_KEY=c4n4ry",
            "npx --token=c4n4ry server@1.0.0",
            "npx -y git+https://me:c4n4ry@example.com/x",
        ] {
            let said = of(line).unwrap_err();
            assert!(!said.contains("c4n4ry"), "{said}");
        }
        for line in [
            "npx -y server@1.0.0 --no-auth",
            "npx -y server@1.0.0 --keyboard us --monkey=1",
            "uvx server==1.0.0 https://example.com/a@b:c",
            "npx -y server@1.0.0 /data/keys",
        ] {
            of(line).unwrap();
        }
    }

    #[test]
    fn a_version_that_moves_is_noted() {
        assert_eq!(of("npx server@1.0.0").unwrap().notes.len(), 0);
        for line in ["npx server", "npx server@latest", "uvx server"] {
            assert_eq!(of(line).unwrap().notes.len(), 1, "{line}");
        }
    }
}
