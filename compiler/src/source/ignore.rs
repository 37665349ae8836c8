//! `.dockerignore` as Docker reads it: a pattern matches a path or any folder above it, the last match decides, and `!`
//! brings back. Where Docker's patterns and ours would differ, the line is refused.

use globset::{GlobBuilder, GlobMatcher};

/// The patterns of one file, in order.
#[derive(Debug, Default)]
pub(super) struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    matcher: GlobMatcher,
    /// `!`.
    exception: bool,
}

/// A line that is no pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PatternError {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl Ignore {
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut patterns = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') {
                continue;
            }
            let written = line.trim();
            let (exception, pattern) = match written.strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, written),
            };
            if written.is_empty() {
                continue;
            }
            let refuse = |reason: String| PatternError {
                line: index + 1,
                reason,
            };
            let clean = clean(pattern).map_err(&refuse)?;
            if clean.is_empty() {
                // `/` and `.` name the folder itself, which Docker does not exclude.
                continue;
            }
            let matcher = GlobBuilder::new(&clean)
                .literal_separator(true)
                .backslash_escape(true)
                .build()
                .map_err(|error| refuse(format!("`{written}` is not a pattern: {}", error.kind())))?
                .compile_matcher();
            patterns.push(Pattern { matcher, exception });
        }
        Ok(Self { patterns })
    }

    /// Whether a path, relative and with forward slashes, is left out.
    pub(super) fn excludes(&self, path: &str) -> bool {
        let mut excluded = false;
        for pattern in &self.patterns {
            // Only a pattern that would change the answer needs to be tried.
            if pattern.exception == excluded && matches(&pattern.matcher, path) {
                excluded = !pattern.exception;
            }
        }
        excluded
    }

    pub(super) fn has_exceptions(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.exception)
    }
}

/// Whether a pattern matches a path or a folder above it.
fn matches(matcher: &GlobMatcher, path: &str) -> bool {
    matcher.is_match(path)
        || path
            .char_indices()
            .filter(|(_, c)| *c == '/')
            .any(|(at, _)| matcher.is_match(&path[..at]))
}

/// The pattern in its shortest form, and what is special to us but not to Docker escaped.
fn clean(pattern: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(format!("`{pattern}` leads out of the folder"));
                }
            }
            _ if part.contains("**") && part != "**" => {
                return Err(format!(
                    "in `{pattern}`, `**` must stand alone between slashes"
                ));
            }
            _ if part.contains("[!") => {
                return Err(format!("in `{pattern}`, write `[^…]` instead of `[!…]`"));
            }
            _ => parts.push(part),
        }
    }
    Ok(parts.join("/").replace('{', "\\{").replace('}', "\\}"))
}

#[cfg(test)]
mod tests {
    use super::Ignore;

    /// Which of the paths are left out.
    fn excluded<'a>(text: &str, paths: &[&'a str]) -> Vec<&'a str> {
        let ignore = Ignore::parse(text).unwrap();
        paths
            .iter()
            .copied()
            .filter(|path| ignore.excludes(path))
            .collect()
    }

    #[test]
    fn a_pattern_matches_a_path_and_what_is_below_it() {
        let paths = ["a", "a/b", "ab", "x/a", "x/a/b"];
        assert_eq!(excluded("a", &paths), ["a", "a/b"]);
        assert_eq!(excluded("/a/", &paths), ["a", "a/b"]);
        assert_eq!(excluded("**/a", &paths), ["a", "a/b", "x/a", "x/a/b"]);
        assert_eq!(excluded("*/a", &paths), ["x/a", "x/a/b"]);
        assert_eq!(excluded("a?", &paths), ["ab"]);
        assert_eq!(excluded("a/**", &paths), ["a/b"]);
    }

    #[test]
    fn the_last_match_decides_and_exceptions_bring_back() {
        let paths = ["README.md", "docs/a.md", "docs/keep.md", "src/x.rs"];
        assert_eq!(
            excluded("# all text\n**/*.md\n!docs/keep.md\n", &paths),
            ["README.md", "docs/a.md"]
        );
        assert_eq!(excluded("docs\n!docs/keep.md", &paths), ["docs/a.md"]);
        assert_eq!(
            excluded("!docs/keep.md\ndocs", &paths),
            ["docs/a.md", "docs/keep.md"]
        );
        assert_eq!(
            excluded("*\n!src", &paths),
            ["README.md", "docs/a.md", "docs/keep.md"]
        );
    }

    #[test]
    fn braces_are_plain_characters_and_what_differs_from_docker_is_refused() {
        assert_eq!(excluded("{a,b}", &["a", "{a,b}"]), ["{a,b}"]);
        assert_eq!(Ignore::parse("ok\n[").unwrap_err().line, 2);
        assert_eq!(Ignore::parse("a**b").unwrap_err().line, 1);
        assert_eq!(Ignore::parse("../x").unwrap_err().line, 1);
    }
}
