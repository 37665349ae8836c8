//! Credential names (C1).

use crate::diag::codes::credentials as codes;
use crate::diag::{Problem, shown};

/// Names that steer the process itself.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "RUBYOPT",
    "PERL5OPT",
    "JAVA_TOOL_OPTIONS",
];

/// Beginnings of such names.
const RESERVED_PREFIXES: &[&str] = &["LD_", "DYLD_", "GRPC_", "SELU_"];

/// Proxy variables, which programs read in upper and lower case.
const PROXY: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"];

/// Everything that is wrong with a credential's name. That names are unique is the list's affair.
pub fn name(text: &str) -> Vec<Problem> {
    if !is_variable(text) {
        let mut problem = Problem::new(
            &codes::NAME_INVALID,
            format!(
                "`{}` is not a variable name: letters, digits and `_`, not beginning with a digit",
                shown(text)
            ),
        );
        if let Some(better) = repaired(text) {
            problem = problem.help(format!("write `{better}`")).suggest(better);
        }
        return vec![problem];
    }
    if let Some(prefix) = RESERVED_PREFIXES.iter().find(|p| text.starts_with(**p)) {
        return vec![Problem::new(
            &codes::NAME_RESERVED,
            format!("`{text}` is reserved, as is every name that begins with `{prefix}`"),
        )];
    }
    if RESERVED.contains(&text) {
        return vec![Problem::new(
            &codes::NAME_RESERVED,
            format!("`{text}` is reserved: it changes how programs run"),
        )];
    }
    if PROXY.iter().any(|proxy| text.eq_ignore_ascii_case(proxy)) {
        return vec![Problem::new(
            &codes::NAME_PROXY,
            format!("`{text}` has no effect on what is reachable: the gateway decides"),
        )];
    }
    Vec::new()
}

/// C1's grammar.
fn is_variable(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(begins) && text.chars().all(|c| begins(c) || c.is_ascii_digit())
}

/// A name that was probably meant, where there is one.
fn repaired(text: &str) -> Option<String> {
    let name: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    let usable = is_variable(&name)
        && name.chars().any(|c| c.is_ascii_alphanumeric())
        && self::name(&name).is_empty();
    usable.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::name;

    fn codes(text: &str) -> Vec<&'static str> {
        name(text).iter().map(|problem| problem.code.name).collect()
    }

    #[test]
    fn names_of_variables_pass() {
        for text in [
            "API_KEY",
            "_x",
            "a1",
            "PATHS",
            "MY_PATH",
            "path",
            "ld_preload",
        ] {
            assert_eq!(codes(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn malformed_names_are_errors_e10() {
        for text in [
            "",
            "A=B",
            "1X",
            "a-b",
            "X\nY",
            "uberall.access_token",
            "Ä",
            " A",
        ] {
            assert_eq!(codes(text), ["cred-name-invalid"], "{text:?}");
        }
        let found = name("uberall.access_token");
        assert_eq!(found[0].suggestion.as_deref(), Some("UBERALL_ACCESS_TOKEN"));
    }

    #[test]
    fn a_suggestion_is_never_itself_wrong() {
        for text in ["ld-preload", "1x", "-", "ld.preload"] {
            assert_eq!(name(text)[0].suggestion, None, "{text}");
        }
    }

    #[test]
    fn names_that_steer_the_process_are_errors() {
        for text in [
            "PATH",
            "HOME",
            "USER",
            "SHELL",
            "IFS",
            "ENV",
            "BASH_ENV",
            "LD_PRELOAD",
            "LD_",
            "DYLD_X",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PYTHONHOME",
            "RUBYOPT",
            "PERL5OPT",
            "JAVA_TOOL_OPTIONS",
            "GRPC_TRACE",
            "SELU_SESSION_ID",
        ] {
            assert_eq!(codes(text), ["cred-name-reserved"], "{text}");
        }
    }

    #[test]
    fn proxy_names_are_warnings_in_any_case() {
        for text in ["HTTP_PROXY", "https_proxy", "No_Proxy", "ALL_PROXY"] {
            assert_eq!(codes(text), ["cred-name-proxy"], "{text}");
        }
    }
}
