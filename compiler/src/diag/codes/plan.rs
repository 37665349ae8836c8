//! Planning against an engine: SELU1101–SELU1199.

use crate::diag::{Code, Severity};

/// The project has no name, or one that cannot own anything.
pub static PROJECT_WITHOUT_NAME: Code = Code {
    id: "SELU1101",
    name: "project-without-name",
    severity: Severity::Error,
    rules: &["product.md 10"],
    cause: "Every object on an engine is owned by a project, and this one has no valid name to own anything by.",
    cure: "Set the project's name in selu.toml, or pass --project NAME: lower-case letters, digits and hyphens, at most 63.",
    example: "# a directory with agents/ and no selu.toml",
};

/// Someone else has a name that we need.
pub static NAME_TAKEN: Code = Code {
    id: "SELU1102",
    name: "name-taken",
    severity: Severity::Error,
    rules: &["product.md 10", "X3"],
    cause: "A container, network or volume of a name that this plan needs exists and belongs to someone else; nothing that is not ours is ever changed or removed.",
    cure: "Remove or rename that object, or give this project another name.",
    example: "# docker volume create selu_weather_gateway",
};

/// Neither the engine nor a registry has it.
pub static IMAGE_MISSING: Code = Code {
    id: "SELU1103",
    name: "image-missing",
    severity: Severity::Error,
    rules: &["I3", "product.md 18", "product.md 19"],
    cause: "The engine does not have the image and no registry that was asked knows it.",
    cure: "Build it with `selu build` where the capability has a container folder; otherwise correct the name, log in to the registry, or push it.",
    example: "image: ghcr.io/acme/wether:1.2",
};

/// An image forges ownership.
pub static RESERVED_LABEL: Code = Code {
    id: "SELU1104",
    name: "reserved-image-label",
    severity: Severity::Error,
    rules: &["W6"],
    cause: "The image bears a `dev.selu.*` label: a container inherits it and could pass for an object of ours. Only `dev.selu.source`, which `selu build` writes, is allowed.",
    cure: "Remove the label from the Dockerfile and rebuild the image.",
    example: "image: acme/tool:1 # its Dockerfile says LABEL dev.selu.project=other",
};

/// More cores than there are.
pub static CPU_ABOVE_ENGINE: Code = Code {
    id: "SELU1105",
    name: "cpu-limit-above-engine",
    severity: Severity::Error,
    rules: &["R1"],
    cause: "The CPU limit is above the cores of the engine's host, and the engine refuses to create such a container.",
    cure: "Lower resources.max_cpu_fraction, or use an engine with more cores.",
    example: "resources: {max_cpu_fraction: 64}",
};

/// The tag is not what was locked.
pub static TAG_MOVED: Code = Code {
    id: "SELU1106",
    name: "tag-moved",
    severity: Severity::Warning,
    rules: &["I3", "product.md 18"],
    cause: "The tag means another image than when it was locked. The lock is followed, not the tag.",
    cure: "To take the new image, run `selu lock --upgrade` for this instance and review the change.",
    example: "image: redis:7",
};

/// The folder changed since the build.
pub static NOT_BUILT_FROM_SOURCE: Code = Code {
    id: "SELU1107",
    name: "not-built-from-source",
    severity: Severity::Warning,
    rules: &["product.md 19"],
    cause: "The image on the engine does not say that it was built from the container folder as it is now, so what runs may differ from what is reviewed.",
    cure: "Run `selu build` for this instance.",
    example: "image: selu-cap-bring:latest # container/server.py edited after the build",
};

/// Nobody else can get this image.
pub static UNREPRODUCIBLE_IMAGE: Code = Code {
    id: "SELU1108",
    name: "unreproducible-image",
    severity: Severity::Warning,
    rules: &["product.md 19"],
    cause: "The image exists only on this engine and has no container folder: it is locked by its id, which no other machine can reproduce.",
    cure: "Push it to a registry, or keep what builds it in the capability's container folder.",
    example: "image: handmade:latest",
};

/// A locked image id is not there any more.
pub static LOCKED_IMAGE_GONE: Code = Code {
    id: "SELU1109",
    name: "locked-image-gone",
    severity: Severity::Error,
    rules: &["I3", "product.md 18", "product.md 19"],
    cause: "The lock holds a local image that this engine does not have; another image of the same name is not taken in its place.",
    cure: "Bring back the locked image, build it with `selu build` where there is a container folder, or accept the new one with `selu lock --upgrade`.",
    example: "image: handmade:latest # rebuilt since the lock",
};

/// No room for a network.
pub static SUBNETS_EXHAUSTED: Code = Code {
    id: "SELU1110",
    name: "subnets-exhausted",
    severity: Severity::Error,
    rules: &["S9"],
    cause: "Each container has a network of its own, and the configured range has no free subnet of the size that its rules need.",
    cure: "Widen `[engine] subnets` in selu.toml, or remove networks that are not used any more.",
    example: "[engine]\nsubnets = \"10.231.0.0/28\"",
};

/// A policy that guards nothing.
pub static POLICY_WITHOUT_TOOL: Code = Code {
    id: "SELU1111",
    name: "policy-without-tool",
    severity: Severity::Warning,
    rules: &["D3"],
    cause: "selu.toml sets a policy for a tool that the capability does not list, so it guards nothing yet: the tool is gone, its name is misspelt, or it waits to be accepted (`selu tools` names those).",
    cure: "Correct the name, or remove the line; `selu policy prune` removes those of tools that are gone.",
    example: "[policy]\n\"weather/api/get_wether\" = \"ask\"",
};

/// What the engine itself warns about.
pub static ENGINE_WARNING: Code = Code {
    id: "SELU1112",
    name: "engine-warning",
    severity: Severity::Warning,
    rules: &["R2"],
    cause: "The engine says that it cannot do something that limits or isolation may depend on, such as accounting for swap.",
    cure: "Change the engine's or its host's configuration as the warning says.",
    example: "# WARNING: No swap limit support",
};

/// A digest that nobody has any more.
pub static DIGEST_GONE: Code = Code {
    id: "SELU1113",
    name: "digest-gone",
    severity: Severity::Error,
    rules: &["product.md 18"],
    cause: "The engine does not have the pinned image, and its registry no longer has the digest: it was deleted, as registries do with what no tag holds.",
    cure: "Take the image that the tag means now with `selu lock --upgrade` for this instance and review the change, write another digest, or push the image again.",
    example: "image: ghcr.io/acme/weather:1 # its digest in the lock was deleted from the registry",
};

/// An image for other machines.
pub static PLATFORM_MISSING: Code = Code {
    id: "SELU1114",
    name: "platform-missing",
    severity: Severity::Error,
    rules: &["product.md 18"],
    cause: "The registry has the image, but not for the platform of the engine.",
    cure: "Publish the image for this platform too (`docker buildx build --platform`), or use an engine of a platform that it is for.",
    example: "image: ghcr.io/acme/weather:1 # pushed from an arm64 laptop only",
};

/// Nobody could say whether an image is still there.
pub static REGISTRY_SILENT: Code = Code {
    id: "SELU1115",
    name: "registry-silent",
    severity: Severity::Warning,
    rules: &["product.md 18", "product.md 20"],
    cause: "The engine does not have the pinned image and its registry gave no answer, so whether it can be pulled, and is for this platform, is not known yet.",
    cure: "Log in, wait, or mend the connection as the message says; apply will pull the image or say why it cannot.",
    example: "image: ghcr.io/acme/weather:1 # not pulled yet, and no network",
};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &PROJECT_WITHOUT_NAME,
    &NAME_TAKEN,
    &IMAGE_MISSING,
    &RESERVED_LABEL,
    &CPU_ABOVE_ENGINE,
    &TAG_MOVED,
    &NOT_BUILT_FROM_SOURCE,
    &UNREPRODUCIBLE_IMAGE,
    &LOCKED_IMAGE_GONE,
    &SUBNETS_EXHAUSTED,
    &POLICY_WITHOUT_TOOL,
    &ENGINE_WARNING,
    &DIGEST_GONE,
    &PLATFORM_MISSING,
    &REGISTRY_SILENT,
];
