//! The words of the lock for what is one of several.

use super::ToolOrigin;
use crate::model::{Class, CredentialScope, Filesystem, NetworkMode, SharingMode};
use crate::plan::{ImageKind, PolicyOrigin};

pub(crate) fn class_word(class: Class) -> &'static str {
    match class {
        Class::Tool => "tool",
        Class::Environment => "environment",
    }
}

pub(crate) fn filesystem_word(filesystem: Filesystem) -> &'static str {
    match filesystem {
        Filesystem::None => "none",
        Filesystem::Temp => "temp",
        Filesystem::Workspace => "workspace",
    }
}

pub(crate) fn sharing_word(mode: SharingMode) -> &'static str {
    match mode {
        SharingMode::Exclusive => "exclusive",
        SharingMode::Shared => "shared",
    }
}

pub(crate) fn mode_word(mode: NetworkMode) -> &'static str {
    match mode {
        NetworkMode::None => "none",
        NetworkMode::Allowlist => "allowlist",
        NetworkMode::Any => "any",
    }
}

pub(crate) fn scope_word(scope: CredentialScope) -> &'static str {
    match scope {
        CredentialScope::System => "system",
        CredentialScope::User => "user",
    }
}

pub(crate) fn kind_word(kind: ImageKind) -> &'static str {
    match kind {
        ImageKind::Registry => "registry",
        ImageKind::Local => "local",
        ImageKind::Unknown => "unknown",
    }
}

pub(crate) fn origin_word(origin: ToolOrigin) -> &'static str {
    match origin {
        ToolOrigin::Manifest => "manifest",
        ToolOrigin::Discovered => "discovered",
    }
}

pub(crate) fn policy_origin_word(origin: PolicyOrigin) -> &'static str {
    match origin {
        PolicyOrigin::Override => "override",
        PolicyOrigin::Manifest => "manifest",
        PolicyOrigin::Discovered => "discovered",
        PolicyOrigin::Default => "default",
    }
}
