//! Which engine this is, and whether it keeps what a plan promises (product.md 17, security.md S13).
//!
//! Calls carry no version in their path, so an engine answers by its own newest one; answers are read by name, and what a
//! newer engine adds is not looked at. Older ones than 20.10 lack what is needed and are refused.

use bollard::models::{SystemInfo, SystemVersion};
use selu_compiler::observed::EngineFacts;

use crate::engine::{EngineError, EngineResult};

/// Docker 20.10's.
const OLDEST: (u32, u32) = (1, 41);

/// What an engine says of itself; an error by its name if it is none that is supported.
pub(super) fn facts(version: SystemVersion, info: SystemInfo) -> EngineResult<EngineFacts> {
    let components = version.components.unwrap_or_default();
    let podman = components
        .iter()
        .any(|component| component.name.contains("Podman"));
    let api = version.api_version.unwrap_or_default();
    let name = format!(
        "{} {} (API {api})",
        if podman { "Podman" } else { "Docker" },
        version.version.unwrap_or_default(),
    );
    let options = info.security_options.unwrap_or_default();
    let rootless = options
        .iter()
        .any(|option| option.split(',').any(|part| part == "name=rootless"));
    let id = info.id.unwrap_or_default();
    let why = match api_number(&api) {
        _ if podman => Some("its networks and limits were never proven to keep a container in"),
        _ if rootless => Some(
            "it runs rootless, where limits depend on the user's session and its networks are not the host's to guard",
        ),
        None => Some("it does not say which API it speaks"),
        Some(number) if number < OLDEST => Some("it is older than Docker 20.10 (API 1.41)"),
        Some(_) if id.is_empty() => Some(
            "it does not say which engine it is, by which containers are told from copies of them",
        ),
        Some(_) => None,
    };
    if let Some(why) = why {
        return Err(EngineError::Unsupported { engine: name, why });
    }
    Ok(EngineFacts {
        id,
        version: name,
        cpus: info
            .ncpu
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(0),
        architecture: version.arch.unwrap_or_default(),
        warnings: info.warnings.unwrap_or_default(),
    })
}

fn api_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// From answers as engines give them, shortened to what identifies them.
    fn read(version: Value, info: Value) -> EngineResult<EngineFacts> {
        let version = serde_json::from_value(version).unwrap();
        facts(version, serde_json::from_value(info).unwrap())
    }

    fn docker(api: &str, options: &[&str]) -> EngineResult<EngineFacts> {
        read(
            json!({
                "Platform": { "Name": "Docker Engine - Community" },
                "Components": [
                    { "Name": "Engine", "Version": "20.10.24", "Details": { "ApiVersion": api } },
                    { "Name": "containerd", "Version": "1.6.20" },
                ],
                "Version": "20.10.24", "ApiVersion": api, "MinAPIVersion": "1.12",
                "Os": "linux", "Arch": "amd64", "KernelVersion": "6.1.0",
            }),
            json!({ "ID": "X:Y", "NCPU": 2, "SecurityOptions": options }),
        )
    }

    #[test]
    fn dockers_from_20_10_on_are_taken_however_new_their_api_is() {
        let apparmor = ["name=apparmor", "name=seccomp,profile=default"];
        for api in ["1.41", "1.47", "1.52", "1.99", "2.0"] {
            let found = docker(api, &apparmor).unwrap();
            assert_eq!(found.version, format!("Docker 20.10.24 (API {api})"));
            assert_eq!((found.cpus, found.architecture.as_str()), (2, "amd64"));
        }
    }

    #[test]
    fn what_is_older_or_says_nothing_of_its_api_is_refused_by_name() {
        for (api, said) in [
            ("1.40", "older than"),
            ("1.9", "older than"),
            ("", "which API"),
            ("x", "which API"),
        ] {
            let error = docker(api, &[]).unwrap_err().to_string();
            assert!(
                error.contains("Docker 20.10.24") && error.contains(said),
                "{error}"
            );
        }
    }

    #[test]
    fn rootless_docker_is_refused_by_name() {
        let options = [
            "name=seccomp,profile=default",
            "name=rootless",
            "name=cgroupns",
        ];
        let error = docker("1.47", &options).unwrap_err().to_string();
        assert!(
            error.contains("Docker 20.10.24 (API 1.47)") && error.contains("rootless"),
            "{error}"
        );
    }

    #[test]
    fn podman_is_refused_by_name_rootless_or_not() {
        for options in [
            json!(["name=seccomp,profile=default"]),
            json!(["name=rootless"]),
        ] {
            let answer = read(
                json!({
                    "Platform": { "Name": "linux/amd64/debian-12" },
                    "Components": [{
                        "Name": "Podman Engine", "Version": "4.9.3",
                        "Details": { "APIVersion": "4.9.3", "MinAPIVersion": "4.0.0" },
                    }],
                    "Version": "4.9.3", "ApiVersion": "1.41", "MinAPIVersion": "1.24",
                    "Os": "linux", "Arch": "amd64",
                }),
                json!({ "ID": "abc", "NCPU": 4, "SecurityOptions": options }),
            );
            let error = answer.unwrap_err().to_string();
            assert!(
                error.contains("Podman 4.9.3 (API 1.41) is not supported"),
                "{error}"
            );
        }
    }
}
