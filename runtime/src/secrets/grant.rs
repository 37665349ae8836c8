//! What stored values were granted to: an instance with its image, its network rules and the names of its credentials
//! (product.md 29, S4).

use selu_compiler::model::{Credential, Network};
use selu_compiler::plan::hash::sha256;
use selu_compiler::plan::{PlannedImage, PlannedInstance};
use serde_json::json;

/// What an instance is, as far as a grant goes; `None` while its image is not pinned. Another description, limit or tool
/// takes nothing back.
pub fn grant(instance: &PlannedInstance) -> Option<String> {
    let PlannedImage {
        written,
        digest,
        source,
        kind: _,
        reference: _,
        pull: _,
        built_from_source: _,
    } = &instance.image;
    // A local image has another id after each build of the same folder (product.md 19).
    let content = source.as_ref().or(digest.as_ref())?;
    let Network { mode, hosts } = &instance.network_rules;
    let credentials: Vec<_> = instance
        .credentials
        .iter()
        .map(|credential| {
            let Credential {
                name,
                scope,
                required: _,
                description: _,
            } = credential;
            json!([name, scope])
        })
        .collect();
    let rules = json!([1, written, content, mode, hosts, credentials]);
    Some(sha256(rules.to_string().as_bytes()))
}
