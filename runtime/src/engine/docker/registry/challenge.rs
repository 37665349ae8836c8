//! How a registry asks who is there.

/// What a `WWW-Authenticate` header wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password.
    Basic,
    /// A token from somewhere.
    Bearer {
        /// Where.
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// One header; `None` for a scheme that Docker's registries do not use.
pub(super) fn parse(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut realm = None;
    let mut service = None;
    let mut scope = None;
    for (name, value) in parameters(rest) {
        match name.as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer {
        realm: realm?,
        service,
        scope,
    })
}

/// `name="value"` pairs; a comma within quotes separates nothing (`scope="repository:x:pull,push"`).
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name, value.trim().to_owned()));
        rest = left.trim_start_matches([' ', ',']);
    }
    found
}

/// As a query or a form has it.
pub(super) fn encoded(fields: &[(&str, String)]) -> String {
    let field = |(name, value): &(&str, String)| {
        let mut text = format!("{name}=");
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    text.push(char::from(byte));
                }
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
        text
    };
    fields.iter().map(field).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_with_commas_inside_its_quotes() {
        let header = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#;
        let wanted = Challenge::Bearer {
            realm: "https://auth.example/token".to_owned(),
            service: Some("registry.example".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(parse(header), Some(wanted));
        assert_eq!(parse(r#"basic realm="x""#), Some(Challenge::Basic));
        assert_eq!(parse("Negotiate"), None);
        assert_eq!(parse("Bearer service=x"), None, "a token from nowhere");
    }

    #[test]
    fn what_is_sent_cannot_add_a_field() {
        let fields = [("scope", "a&b=c d".to_owned()), ("service", "é".to_owned())];
        assert_eq!(encoded(&fields), "scope=a%26b%3Dc%20d&service=%C3%A9");
    }
}
