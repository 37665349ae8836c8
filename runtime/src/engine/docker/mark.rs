//! The mark that tells a container of ours from one with our labels (security.md S12).
//!
//! Labels of a container can come from its image, which somebody else wrote, or from a container that was committed. So
//! each of ours also bears a hash over the engine's own id, its project and its name: no image's author can know the
//! first, and no copy can have the last. Whoever can compute it has the engine already. Networks and volumes need none:
//! nothing gives them labels but the call that makes them.

use std::collections::HashMap;

use bollard::models::ContainerInspectResponse;
use selu_compiler::plan::hash::sha256_hex;
use selu_compiler::plan::label;

use super::Docker;
use crate::engine::{EngineError, EngineResult};

/// The label that holds it.
const OWNER: &str = "dev.selu.owner";

/// Marks of one engine.
pub(super) struct Marks<'a> {
    /// The engine's id.
    pub(super) engine: &'a str,
}

impl Marks<'_> {
    fn of(&self, project: &str, name: &str) -> String {
        // The lengths in front keep ("a", "bc") and ("ab", "c") apart (S3).
        let parts = [self.engine, project, name];
        let text: String = parts
            .iter()
            .map(|part| format!("{}:{part}", part.len()))
            .collect();
        format!("v1:{}", sha256_hex(text.as_bytes()))
    }

    /// Adds the mark to the labels of a container that is to be made under a name.
    pub(super) fn put(&self, name: &str, labels: &mut HashMap<String, String>) {
        if let Some(project) = labels.get(label::PROJECT) {
            let mark = self.of(project, name);
            labels.insert(OWNER.to_owned(), mark);
        }
    }

    /// Whether these labels were given to a container of this name by us, on this engine.
    pub(super) fn fits(&self, name: &str, labels: &HashMap<String, String>) -> bool {
        let project = labels.get(label::PROJECT);
        project.is_some_and(|project| labels.get(OWNER) == Some(&self.of(project, name)))
    }

    /// Takes the mark off a container, and with a wrong one every label of ours: they say nothing then.
    pub(super) fn take(&self, answer: &mut ContainerInspectResponse) {
        let name = answer.name.as_deref().unwrap_or_default();
        let name = name.strip_prefix('/').unwrap_or(name);
        let labels = answer
            .config
            .as_mut()
            .and_then(|config| config.labels.as_mut());
        let Some(labels) = labels else { return };
        if self.fits(name, labels) {
            labels.remove(OWNER);
        } else {
            labels.retain(|key, _| !key.starts_with(label::PREFIX));
        }
    }
}

impl Docker {
    /// The engine's own id, asked for once.
    pub(super) async fn engine_id(&self) -> EngineResult<&str> {
        let asked = self.id.get_or_try_init(|| async {
            let call = "ask for information";
            let info = self.call(call, self.limits.look, self.api.info()).await?;
            info.id
                .filter(|id| !id.is_empty())
                .ok_or_else(|| EngineError::Protocol {
                    call: call.to_owned(),
                    message: "the engine does not say which one it is".to_owned(),
                })
        });
        asked.await.map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(project: &str) -> HashMap<String, String> {
        HashMap::from([(label::PROJECT.to_owned(), project.to_owned())])
    }

    #[test]
    fn a_mark_is_of_one_engine_one_project_and_one_name() {
        let here = Marks { engine: "A:B" };
        let mut own = labels("demo");
        here.put("selu_demo_a_b_1", &mut own);
        assert!(here.fits("selu_demo_a_b_1", &own));
        assert!(!here.fits("selu_demo_a_b_2", &own), "a copy by commit");
        assert!(!Marks { engine: "A:C" }.fits("selu_demo_a_b_1", &own));
        assert!(!here.fits("selu_demo_a_b_1", &labels("demo")), "unmarked");
        own.insert(label::PROJECT.to_owned(), "other".to_owned());
        assert!(!here.fits("selu_demo_a_b_1", &own));
        let shifted = [("ab", "c"), ("a", "bc")].map(|(project, name)| here.of(project, name));
        assert_ne!(shifted[0], shifted[1]);
    }

    #[test]
    fn without_the_mark_no_label_of_ours_counts_and_those_of_others_stay() {
        let marks = Marks { engine: "A:B" };
        let read = |name: &str, labels: HashMap<String, String>| {
            let mut answer = ContainerInspectResponse {
                name: Some(format!("/{name}")),
                config: Some(bollard::models::ContainerConfig {
                    labels: Some(labels),
                    ..Default::default()
                }),
                ..Default::default()
            };
            marks.take(&mut answer);
            answer.config.unwrap().labels.unwrap()
        };
        let mut own = labels("demo");
        own.insert("maintainer".to_owned(), "somebody".to_owned());
        let plain = own.clone();
        marks.put("selu_demo_hold", &mut own);
        assert_eq!(read("selu_demo_hold", own.clone()), plain);
        let kept = HashMap::from([("maintainer".to_owned(), "somebody".to_owned())]);
        assert_eq!(read("selu_demo_hold", plain), kept);
        assert_eq!(read("selu_demo_other", own), kept);
    }
}
