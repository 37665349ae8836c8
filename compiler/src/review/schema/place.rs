//! Where in a schema, and how a reviewer calls the value there.

use crate::check::schema::pointer::push;

/// A place in a schema.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pointer: String,
    /// The argument as a caller writes it, such as `filter.tags[]`; empty for all arguments together.
    argument: String,
}

impl Place {
    pub(super) fn root() -> Self {
        Self {
            pointer: String::new(),
            argument: String::new(),
        }
    }

    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// `` `filter.city` ``, or `the arguments`.
    pub(super) fn value(&self) -> String {
        if self.argument.is_empty() {
            "the object of arguments".to_owned()
        } else {
            format!("`{}`", crate::diag::shown(&self.argument))
        }
    }

    /// A keyword about the same value.
    pub(super) fn keyword(&self, keyword: &str) -> Self {
        Self {
            pointer: push(&self.pointer, keyword),
            argument: self.argument.clone(),
        }
    }

    /// A subschema about the same value.
    pub(super) fn part(&self, keyword: &str, key: &str) -> Self {
        Self {
            pointer: push(&push(&self.pointer, keyword), key),
            argument: self.argument.clone(),
        }
    }

    /// A named member.
    pub(super) fn property(&self, name: &str) -> Self {
        let argument = if self.argument.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.argument)
        };
        Self {
            pointer: push(&push(&self.pointer, "properties"), name),
            argument,
        }
    }

    /// Members that are known by something else than their name.
    pub(super) fn members(&self, keyword: &str, key: Option<&str>) -> Self {
        let pointer = push(&self.pointer, keyword);
        let (pointer, name) = match key {
            Some(key) => (push(&pointer, key), format!("/{key}/")),
            None => (pointer, "*".to_owned()),
        };
        let argument = if self.argument.is_empty() {
            name
        } else {
            format!("{}.{name}", self.argument)
        };
        Self { pointer, argument }
    }

    /// The items of a list.
    pub(super) fn items(&self, keyword: &str) -> Self {
        Self {
            pointer: push(&self.pointer, keyword),
            argument: format!("{}[]", self.argument),
        }
    }
}
