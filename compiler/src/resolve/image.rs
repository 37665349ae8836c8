//! Images by what cannot move (I3, product.md 18 and 19).

use crate::diag::codes::plan as code;
use crate::diag::{Code, Diagnostic};
use crate::lock::LockedImage;
use crate::model::{Capability, InstanceKey, Origin};
use crate::observed::{ImageFacts, Observed, RegistryAnswer};
use crate::plan::{ImageKind, PlannedImage, label};

/// A pinned image and what is known of its content.
pub(super) struct Pinned<'a> {
    pub(super) image: PlannedImage,
    /// Of exactly the pinned image; `None` while it is not on the engine.
    pub(super) content: Option<&'a ImageFacts>,
}

/// The lock's pin, where it is one for the image as it is written now.
pub(super) fn lock_pin<'a>(
    capability: &Capability,
    locked: Option<&'a LockedImage>,
) -> Option<&'a LockedImage> {
    locked.filter(|locked| locked.written == capability.image.written)
}

/// Decides which image an instance runs. Without `observed`, as far as manifest and lock say.
pub(super) fn pin<'a>(
    key: &InstanceKey,
    capability: &Capability,
    locked: Option<&LockedImage>,
    observed: Option<&'a Observed>,
    findings: &mut Vec<Diagnostic>,
) -> Pinned<'a> {
    let locked = lock_pin(capability, locked);
    let facts = observed.and_then(|observed| observed.images.get(&capability.image.written));
    let mut pinning = Pinning {
        key,
        capability,
        facts,
        observed,
        findings,
    };
    let locked_digest = locked
        .filter(|locked| locked.kind == ImageKind::Registry)
        .and_then(|locked| locked.digest.as_deref());
    // A written digest beats everything, then the lock; a tag is followed only where nothing is pinned yet.
    if let Some(digest) = &capability.image.digest {
        pinning.registry(digest)
    } else if let Some(digest) = locked_digest {
        pinning.report_moved_tag(digest);
        pinning.registry(digest)
    } else if let Some(locked) = locked.filter(|locked| locked.kind == ImageKind::Local) {
        pinning.locked_local(locked)
    } else {
        pinning.unlocked()
    }
}

struct Pinning<'a, 'b> {
    key: &'b InstanceKey,
    capability: &'b Capability,
    facts: Option<&'a ImageFacts>,
    observed: Option<&'a Observed>,
    findings: &'b mut Vec<Diagnostic>,
}

impl<'a> Pinning<'a, '_> {
    fn registry(&mut self, digest: &str) -> Pinned<'a> {
        let reference = self.capability.image.at(digest);
        // Asked for by the pin itself, or by the tag while it still means the same.
        let content = self
            .observed
            .and_then(|observed| observed.images.get(&reference))
            .or_else(|| {
                self.facts
                    .filter(|facts| facts.digest.as_deref() == Some(digest))
            })
            .filter(|facts| facts.id.is_some());
        self.check_labels(content);
        if content.is_none() {
            self.check_registry(&reference);
        }
        Pinned {
            image: PlannedImage {
                written: self.capability.image.written.clone(),
                kind: ImageKind::Registry,
                digest: Some(digest.to_owned()),
                source: None,
                reference: Some(reference),
                pull: self.observed.is_some() && content.is_none(),
                built_from_source: None,
            },
            content,
        }
    }

    /// What would fail at the pull is found before.
    fn check_registry(&mut self, reference: &str) {
        let Some(observed) = self.observed else {
            return;
        };
        let (code, what) = match observed.registries.get(reference) {
            None => return,
            Some(RegistryAnswer::Silent { why }) => (
                &code::REGISTRY_SILENT,
                format!("{reference} is not on the engine yet, and {why}"),
            ),
            Some(RegistryAnswer::Gone { tag_now }) => {
                let written = &self.capability.image.written;
                let now = match tag_now {
                    Some(digest) => {
                        format!("{written} is {digest} now, which `selu lock --upgrade` takes")
                    }
                    None => format!("nor anything else as {written}"),
                };
                let what = format!("the registry no longer has {reference}; {now}");
                (&code::DIGEST_GONE, what)
            }
            Some(RegistryAnswer::Has { platforms }) => {
                let own = &observed.engine.architecture;
                if platforms.is_empty() || platforms.iter().any(|one| runs_on(one, own)) {
                    return;
                }
                let what = format!(
                    "{reference} is for {} and the engine is linux/{own}",
                    platforms.join(", ")
                );
                (&code::PLATFORM_MISSING, what)
            }
        };
        self.find(code, format!("{}: {what}", self.key));
    }

    fn report_moved_tag(&mut self, locked: &str) {
        let Some(facts) = self.facts else { return };
        // One image may have several digests in one repository, its index's and its own.
        let pinned = self.capability.image.at(locked);
        let pinned = self
            .observed
            .and_then(|observed| observed.images.get(&pinned));
        if facts.id.is_some() && pinned.is_some_and(|pinned| pinned.id == facts.id) {
            return;
        }
        let now = match (&facts.digest, &facts.id) {
            (Some(digest), _) if digest == locked => return,
            (Some(digest), _) => format!("{digest} now"),
            (None, Some(id)) => format!("the local image {id} on this engine"),
            (None, None) => return,
        };
        let message = format!(
            "{}: {} is {now}; the plan keeps {locked} from the lock",
            self.key, self.capability.image.written
        );
        self.find(&code::TAG_MOVED, message);
    }

    /// Local in the lock stays local: a registry that knows the name by now is not followed either.
    fn locked_local(&mut self, locked: &LockedImage) -> Pinned<'a> {
        if self.observed.is_none() {
            return self.local_offline(locked);
        }
        if self.capability.container.is_some() {
            return match self.facts.filter(|facts| facts.id.is_some()) {
                Some(facts) => self.local(facts),
                None => self.missing(),
            };
        }
        let Some(wanted) = locked.digest.as_deref() else {
            // Locked by the source of a folder that is gone: there is nothing to hold on to.
            return self.unlocked();
        };
        let same = self
            .facts
            .filter(|facts| facts.id.as_deref() == Some(wanted));
        let by_id = self
            .observed
            .and_then(|observed| observed.images.get(wanted));
        match same.or(by_id).filter(|facts| facts.id.is_some()) {
            Some(facts) => self.local(facts),
            None => {
                let now = match self.facts.and_then(|facts| facts.id.as_deref()) {
                    Some(id) => format!("has {id} under that name"),
                    None => "has no image of that name".to_owned(),
                };
                let message = format!(
                    "{}: the lock holds the local image {} as {wanted}; the engine {now}",
                    self.key, self.capability.image.written,
                );
                self.find(&code::LOCKED_IMAGE_GONE, message);
                self.unknown()
            }
        }
    }

    fn local_offline(&self, locked: &LockedImage) -> Pinned<'a> {
        let source = self.folder_hash();
        Pinned {
            image: PlannedImage {
                written: self.capability.image.written.clone(),
                kind: ImageKind::Local,
                digest: locked.digest.clone(),
                source,
                reference: None,
                pull: false,
                built_from_source: None,
            },
            content: None,
        }
    }

    fn unlocked(&mut self) -> Pinned<'a> {
        if self.observed.is_none() {
            return self.unknown();
        }
        match self.facts {
            Some(ImageFacts {
                digest: Some(digest),
                ..
            }) => self.registry(digest),
            Some(facts) if facts.id.is_some() => self.local(facts),
            _ => self.missing(),
        }
    }

    fn local(&mut self, facts: &'a ImageFacts) -> Pinned<'a> {
        self.check_labels(Some(facts));
        let source = self.folder_hash();
        let built = facts.labels.get(label::SOURCE);
        let built_from_source = source.as_ref().map(|source| built == Some(source));
        match (&source, built) {
            (None, _) => {
                let message = format!(
                    "{}: {} exists only on this engine and has no container folder",
                    self.key, self.capability.image.written
                );
                self.find(&code::UNREPRODUCIBLE_IMAGE, message);
            }
            (Some(source), built) if built != Some(source) => {
                let built = match built {
                    Some(other) => format!("says that it was built from {other}"),
                    None => "does not say what it was built from".to_owned(),
                };
                let message = format!(
                    "{}: {} is not built from this source: the folder is {source}, the image {built}",
                    self.key, self.capability.image.written
                );
                self.find(&code::NOT_BUILT_FROM_SOURCE, message);
            }
            _ => {}
        }
        Pinned {
            image: PlannedImage {
                written: self.capability.image.written.clone(),
                kind: ImageKind::Local,
                digest: facts.id.clone(),
                source,
                reference: facts.id.clone(),
                pull: false,
                built_from_source,
            },
            content: Some(facts),
        }
    }

    fn missing(&mut self) -> Pinned<'a> {
        let written = &self.capability.image.written;
        let message = match &self.capability.container {
            Some(folder) => format!(
                "{}: the engine has no image {written}; build it from {} with `selu build {}`",
                self.key, folder.path, self.key
            ),
            None => format!(
                "{}: neither the engine nor registry {} has {written}; check the name and the registry's login",
                self.key, self.capability.image.registry
            ),
        };
        self.find(&code::IMAGE_MISSING, message);
        self.unknown()
    }

    fn unknown(&self) -> Pinned<'a> {
        Pinned {
            image: PlannedImage {
                written: self.capability.image.written.clone(),
                kind: ImageKind::Unknown,
                digest: None,
                source: None,
                reference: None,
                pull: false,
                built_from_source: None,
            },
            content: None,
        }
    }

    fn check_labels(&mut self, facts: Option<&ImageFacts>) {
        let written = &self.capability.image.written;
        let origin = &self.capability.origin;
        let found = facts.map(|facts| reserved_labels(self.key, written, origin, facts));
        self.findings.extend(found.into_iter().flatten());
    }

    fn folder_hash(&self) -> Option<String> {
        self.capability
            .container
            .as_ref()
            .map(|folder| folder.hash.clone())
    }

    fn find(&mut self, code: &'static Code, message: String) {
        let Capability {
            origin, image_at, ..
        } = self.capability;
        let place = super::place_at(origin, *image_at, "image");
        self.findings.push(Diagnostic::new(code, place, message));
    }
}

/// Whether an engine runs images of a platform: its own, and the 32 bits of its own kind.
fn runs_on(platform: &str, architecture: &str) -> bool {
    platform.strip_prefix("linux/").is_some_and(|own| {
        own == architecture || matches!((architecture, own), ("amd64", "386") | ("arm64", "arm"))
    })
}

/// Labels that only objects of ours may bear (W6).
pub(super) fn reserved_labels(
    key: &InstanceKey,
    written: &str,
    origin: &Origin,
    facts: &ImageFacts,
) -> Vec<Diagnostic> {
    let reserved = |name: &&String| name.starts_with(label::PREFIX) && *name != label::SOURCE;
    facts
        .labels
        .keys()
        .filter(reserved)
        .map(|name| {
            let message = format!(
                "{key}: image {written} bears the label `{name}`, which is reserved for objects of ours"
            );
            Diagnostic::new(&code::RESERVED_LABEL, super::place(origin, "image"), message)
        })
        .collect()
}
