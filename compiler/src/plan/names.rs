//! Names of the objects on an engine.
//!
//! Ids hold no `_`, so the parts of a name cannot run into each other; the nameless agent is the one exception and is
//! itself `_`, which no id can be.

use sha2::{Digest, Sha256};

use crate::model::InstanceKey;

/// The session of a resident (X1).
pub const RESIDENT_SESSION: &str = "default";

/// What the names of an instance's residents begin with; the generation follows.
pub fn resident_prefix(project: &str, instance: &InstanceKey) -> String {
    format!(
        "selu_{project}_{}_{}_",
        instance.agent(),
        instance.capability()
    )
}

/// The name of a resident and of its network.
pub fn resident(project: &str, instance: &InstanceKey, generation: u64) -> String {
    format!("{}{generation}", resident_prefix(project, instance))
}

/// The generation in a resident's or its network's name; `None` for any other name.
pub fn generation(name: &str, project: &str, instance: &InstanceKey) -> Option<u64> {
    let digits = name.strip_prefix(&resident_prefix(project, instance))?;
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    canonical.then(|| digits.parse().ok()).flatten()
}

/// The name of the project's gateway, of its network and of its volume.
pub fn gateway(project: &str) -> String {
    format!("selu_{project}_gateway")
}

/// The name of the volume that keeps what the gateway carried.
pub fn egress(project: &str) -> String {
    format!("selu_{project}_egress")
}

/// The name of a volume (X3). A workspace belongs to a session, a cache to a user: what a volume does not depend on is
/// the empty string, which neither a user nor a session can be.
pub fn volume(
    project: &str,
    instance: &InstanceKey,
    user: &str,
    session: &str,
    path: &str,
) -> String {
    let mut hash = Sha256::new();
    for part in [project, instance.as_str(), user, session, path] {
        // The length in front keeps ("a", "bc") and ("ab", "c") apart (S3).
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    format!("selu_{}", super::hash::hex(&hash.finalize()[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_read_back_from_its_name_and_from_no_other() {
        let key = InstanceKey::new("weather", "api");
        let name = resident("p", &key, 12);
        assert_eq!(name, "selu_p_weather_api_12");
        assert_eq!(generation(&name, "p", &key), Some(12));
        for other in [
            "selu_p_weather_api_",
            "selu_p_weather_api_012",
            "selu_p_weather_api_+1",
            "selu_p_weather_api-v2_1",
            "selu_q_weather_api_1",
        ] {
            assert_eq!(generation(other, "p", &key), None, "{other}");
        }
    }

    #[test]
    fn volume_names_depend_on_each_part_and_on_where_it_ends() {
        let key = InstanceKey::new("a", "b");
        let names = [
            volume("p", &key, "", "default", "/workspace"),
            volume("q", &key, "", "default", "/workspace"),
            volume(
                "p",
                &InstanceKey::new("a", "c"),
                "",
                "default",
                "/workspace",
            ),
            volume("p", &key, "u", "default", "/workspace"),
            volume("p", &key, "", "other", "/workspace"),
            volume("p", &key, "", "default", "/cache"),
            volume("p", &key, "de", "fault", "/workspace"),
        ];
        for (index, name) in names.iter().enumerate() {
            assert_eq!(name.len(), "selu_".len() + 32);
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
