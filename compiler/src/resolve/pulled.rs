//! A plan once its images are there: an image that was pulled brings labels and VOLUMEs along, which nobody knew before.

use super::image;
use crate::diag::Diagnostic;
use crate::observed::Observed;
use crate::plan::hash::MadeLimits;
use crate::plan::{Plan, PlannedContainer, label, spec};

/// The plan with what [`Observed::images`] has by now for images that were to be pulled, and findings about them. Only
/// their residents change; nothing is decided anew.
pub fn pulled(plan: &Plan, observed: &Observed) -> (Plan, Vec<Diagnostic>) {
    let mut plan = plan.clone();
    let mut findings = Vec::new();
    for (key, instance) in &mut plan.instances {
        let image = &mut instance.image;
        let facts = image
            .reference
            .as_ref()
            .filter(|_| image.pull)
            .and_then(|reference| observed.images.get(reference))
            .filter(|facts| facts.id.is_some());
        let (Some(facts), Some(resident)) = (facts, &mut instance.resident) else {
            continue;
        };
        image.pull = false;
        findings.extend(image::reserved_labels(
            key,
            &image.written,
            &instance.origin,
            facts,
        ));
        let PlannedContainer {
            spec, spec_hash, ..
        } = resident;
        spec::hide_image_volumes(&mut spec.tmpfs, &spec.volumes, facts);
        for name in facts.labels.keys() {
            spec.labels.entry(name.clone()).or_default();
        }
        let rules = spec.labels.get(label::RULES).map(String::as_str);
        if let Some(hash) = MadeLimits::of(spec).hash(spec, rules) {
            spec.labels.insert(label::SPEC.to_owned(), hash.clone());
            *spec_hash = hash;
        }
    }
    (plan, findings)
}
