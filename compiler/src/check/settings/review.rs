//! `[review]`: which changes need a person.

use super::Check;
use crate::diag::Diagnostic;
use crate::diag::codes::settings as codes;
use crate::model::InstanceKey;
use crate::model::settings::{RawAccepted, RawReview};
use crate::review::rules::Accepted;

impl Check<'_> {
    pub(super) fn review(&mut self, raw: RawReview) {
        let RawReview {
            person,
            max_tools,
            image_source,
            accepted,
        } = raw;
        let rules = &mut self.outcome.settings.review;
        rules.person = person.map(|kinds| kinds.into_iter().flatten().collect());
        rules.max_tools = max_tools;
        rules.image_source = image_source.unwrap_or_default();
        for (index, raw) in accepted.unwrap_or_default().into_iter().enumerate() {
            let pointer = format!("/review/accepted/{index}");
            let RawAccepted {
                instance,
                tool,
                path,
                new,
                reason,
            } = raw.unwrap_or_default();
            let instance = match instance.map(|text| (InstanceKey::parse(&text), text)) {
                None => None,
                Some((Some(key), _)) => Some(key),
                Some((None, text)) => {
                    let place = self.document.place(&format!("{pointer}/instance"));
                    self.bad_key(place, &text, "agent/capability");
                    continue;
                }
            };
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            let (Some(path), Some(reason)) = (path, reason) else {
                self.findings.push(Diagnostic::new(
                    &codes::ACCEPTED_WITHOUT_REASON,
                    self.document.place(&pointer),
                    "an accepted change has a `path`, and a `reason` that says why it is right",
                ));
                continue;
            };
            self.outcome.settings.review.accepted.insert(Accepted {
                instance,
                tool,
                path,
                new,
                reason,
            });
        }
    }
}
