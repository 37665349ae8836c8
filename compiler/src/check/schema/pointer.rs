//! JSON pointers (RFC 6901) and URI fragments that hold them.

use serde_json::Value;

/// Appends one segment.
pub(crate) fn push(pointer: &str, segment: &str) -> String {
    format!(
        "{pointer}/{}",
        segment.replace('~', "~0").replace('/', "~1")
    )
}

/// Splits into unescaped segments.
pub(super) fn segments(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Undoes percent-encoding; `None` if it is malformed or not UTF-8.
pub(crate) fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let value = digit()? * 16 + digit()?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Percent-encodes what a fragment cannot hold.
pub(super) fn encode(pointer: &str) -> String {
    pointer
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// What a pointer leads to. Unlike `Value::pointer`, an escape that RFC 6901 does not know leads nowhere.
pub(crate) fn resolve<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let escapes_are_right = pointer
        .split('~')
        .skip(1)
        .all(|after| after.starts_with(['0', '1']));
    escapes_are_right.then(|| value.pointer(pointer)).flatten()
}
