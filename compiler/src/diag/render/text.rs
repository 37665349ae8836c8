//! Findings for people: the line underlined, with the keys that it stands under and the other places that matter, and
//! the line as it should be.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet,
};
use camino::{Utf8Path, Utf8PathBuf};

use super::{below, count, escaped};
use crate::diag::{Diagnostic, Place, Severity};
use crate::parallel;
use crate::report::hidden;
use crate::source::SourceSet;

/// Lines further apart than this are shown one by one, not as one excerpt.
const FAR: usize = 300;
/// A line of more bytes is not shown, its place is named alone: laying it out takes time for each of its findings.
const LONGEST_LINE: usize = 2_000;
/// A terminal that is narrower than this gets lines of this width.
const NARROWEST: usize = 40;

/// How findings are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// With colours.
    pub color: bool,
    /// Columns of the terminal; messages are wrapped there and long source lines are cut around the place.
    pub width: Option<usize>,
    /// Leads from where the reader stands to the directory that was checked, so that paths can be clicked.
    pub base: Utf8PathBuf,
}

/// Findings with their source lines underlined, and a last line that counts them.
pub fn text(diagnostics: &[Diagnostic], sources: &SourceSet, color: bool) -> String {
    let look = Look {
        color,
        ..Look::default()
    };
    text_for(diagnostics, sources, &look)
}

/// [`text`] for a certain terminal and place.
pub fn text_for(diagnostics: &[Diagnostic], sources: &SourceSet, look: &Look) -> String {
    let files: Vec<&[Diagnostic]> = of_files(diagnostics).collect();
    let texts = texts(&files, sources, look);
    whole(texts.iter().map(String::as_str), diagnostics)
}

/// Texts of the last report, for the next one of a directory that hardly changed.
#[derive(Debug, Default)]
pub struct Texts {
    look: Look,
    known: HashMap<Utf8PathBuf, Text>,
}

/// What was shown of one file, with what it came from.
#[derive(Debug)]
struct Text {
    source: Option<String>,
    findings: Vec<Diagnostic>,
    shown: String,
}

impl Texts {
    /// [`text_for`], where only those files are laid out whose lines or findings are not as they were in the last report.
    pub fn again(
        &mut self,
        diagnostics: &[Diagnostic],
        sources: &SourceSet,
        look: &Look,
    ) -> String {
        let mut last = std::mem::take(&mut self.known);
        if self.look != *look {
            last.clear();
            self.look = look.clone();
        }
        let all: HashMap<&Utf8Path, &str> = sources
            .files()
            .map(|file| (file.path.as_path(), file.text.as_str()))
            .collect();
        let source = |path: &Utf8Path| all.get(path).copied();
        let mut other = Vec::new();
        for findings in of_files(diagnostics) {
            let path = &*findings[0].place.origin.file;
            let kept = last
                .remove_entry(path)
                .filter(|(_, text)| text.source.as_deref() == source(path))
                .filter(|(_, text)| text.findings == findings && !shows_others(findings));
            match kept {
                Some((path, text)) => {
                    self.known.insert(path, text);
                }
                None => other.push(findings),
            }
        }
        for (findings, shown) in other.iter().zip(texts(&other, sources, look)) {
            let path = &findings[0].place.origin.file;
            let text = Text {
                source: source(path).map(str::to_owned),
                findings: findings.to_vec(),
                shown,
            };
            self.known.insert(path.clone(), text);
        }
        let shown = of_files(diagnostics).map(|findings| {
            let path = &findings[0].place.origin.file;
            self.known[path].shown.as_str()
        });
        whole(shown, diagnostics)
    }
}

/// Findings file by file, as they are sorted.
fn of_files(diagnostics: &[Diagnostic]) -> impl Iterator<Item = &[Diagnostic]> {
    diagnostics.chunk_by(|one, next| one.place.origin.file == next.place.origin.file)
}

/// Whether lines of further files are shown.
fn shows_others(findings: &[Diagnostic]) -> bool {
    findings.iter().any(|finding| {
        let file = &finding.place.origin.file;
        let related = &mut finding.related.iter();
        related.any(|related| related.place.origin.file != *file)
    })
}

/// The report: what is shown of each file, and the count.
fn whole<'a>(texts: impl Iterator<Item = &'a str>, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    out.extend(texts);
    out.push_str(&count(diagnostics).to_string());
    out.push('\n');
    out
}

/// What is shown of each file's findings.
fn texts(files: &[&[Diagnostic]], sources: &SourceSet, look: &Look) -> Vec<String> {
    let lines = Lines::new(files.iter().copied().flatten(), sources, &look.base);
    let mut renderer = if look.color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let width = look.width.map(|width| width.max(NARROWEST));
    if let Some(width) = width {
        renderer = renderer.term_width(width);
    }
    parallel::map(parallel::cores(), files, |findings| {
        let mut out = String::new();
        for finding in *findings {
            let shown = renderer.render(&report(finding, &lines, width));
            // Lines without a label end in the space that would part it.
            for line in shown.lines() {
                out.push_str(line.trim_end());
                out.push('\n');
            }
            out.push('\n');
        }
        out
    })
}

fn report<'a>(
    diagnostic: &'a Diagnostic,
    lines: &Lines<'a>,
    width: Option<usize>,
) -> Vec<Group<'a>> {
    let (level, word) = match diagnostic.severity {
        Severity::Error => (Level::ERROR, "error"),
        Severity::Warning => (Level::WARNING, "warning"),
        Severity::Note => (Level::NOTE, "note"),
    };
    let indent = format!("{word}[{}]: ", diagnostic.code.id).len();
    let title = level
        .primary_title(wrapped(&diagnostic.message, indent, width))
        .id(diagnostic.code.id);
    let mut group = Group::with_title(title);
    // Of a field at the top, the line itself says which one it is.
    let place = &diagnostic.place;
    let path = Some(place.path.as_str()).filter(|path| path.contains(['.', '[']));
    let fits = path.is_none_or(|path| label_fits(path, place, width));
    group = lines.show(group, diagnostic, path.filter(|_| fits));
    if let Some(path) = path.filter(|_| !fits) {
        let note = format!("this is {}", escaped(path));
        group = group.element(Level::NOTE.message(note));
    }
    let usual = diagnostic.code.severity;
    if usual != diagnostic.severity {
        let usual = match usual {
            Severity::Error => "an error",
            Severity::Warning => "a warning",
            Severity::Note => "a note",
        };
        // Errors are never lowered by settings: only in translations they are less.
        let otherwise = if diagnostic.code.severity == Severity::Error {
            "outside of translations"
        } else {
            "unless the project or the command line says otherwise"
        };
        let note = format!("`{}` is {usual} {otherwise}", diagnostic.code.name);
        group = group.element(Level::NOTE.message(wrapped(&note, 12, width).into_owned()));
    }
    let patch = diagnostic
        .suggestion
        .as_deref()
        .and_then(|suggestion| lines.patch(&diagnostic.place, suggestion));
    match (&diagnostic.help, patch) {
        (help, Some(patch)) => {
            let help = help.as_deref().unwrap_or("write it like this");
            let title = Level::HELP.secondary_title(wrapped(help, 6, width));
            vec![group, Group::with_title(title).element(patch)]
        }
        (Some(help), None) => {
            vec![group.element(Level::HELP.message(wrapped(help, 12, width)))]
        }
        (None, None) => vec![group],
    }
}

/// Whether a label ends before the terminal does; lines that are too long are cut so that the place is about in the
/// middle.
fn label_fits(label: &str, place: &Place, width: Option<usize>) -> bool {
    const MARGIN: usize = 10;
    width.is_none_or(|width| {
        let half = |number: u32| (number as usize).min(width / 2);
        MARGIN + half(place.origin.column) + half(place.length) + label.chars().count() <= width
    })
}

/// A text without anything hidden, broken between words where the terminal ends.
fn wrapped(text: &str, indent: usize, width: Option<usize>) -> Cow<'_, str> {
    let text = escaped(text);
    let Some(width) = width else { return text };
    let room = width.saturating_sub(indent).max(NARROWEST / 2);
    if text.chars().count() <= room {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    Cow::Owned(out)
}

/// The lines of the files that findings are about.
struct Lines<'a> {
    base: &'a Utf8Path,
    files: HashMap<&'a Utf8Path, Vec<&'a str>>,
}

impl<'a> Lines<'a> {
    fn new<'d>(
        diagnostics: impl Iterator<Item = &'d Diagnostic>,
        sources: &'a SourceSet,
        base: &'a Utf8Path,
    ) -> Self {
        let wanted: HashSet<&Utf8Path> = diagnostics
            .flat_map(|diagnostic| {
                let related = diagnostic.related.iter().map(|related| &related.place);
                std::iter::once(&diagnostic.place).chain(related)
            })
            .map(|place| place.origin.file.as_path())
            .collect();
        let files = sources
            .files()
            .filter(|file| wanted.contains(file.path.as_path()))
            .map(|file| (file.path.as_path(), file.text.lines().collect()))
            .collect();
        Self { base, files }
    }

    fn file(&self, place: &Place) -> String {
        escaped(below(self.base, &place.origin.file).as_str()).into_owned()
    }

    /// The file's lines and the index of the place's own, where there is one that can be shown.
    fn at(&self, place: &Place) -> Option<(&[&'a str], usize)> {
        let lines = self.files.get(place.origin.file.as_path())?;
        let index = (place.origin.line as usize).checked_sub(1)?;
        let line = lines.get(index)?;
        (line.len() <= LONGEST_LINE).then_some((lines, index))
    }

    /// Adds the finding's place, and the further ones: beside it where they are near, else after it.
    fn show(
        &self,
        mut group: Group<'a>,
        diagnostic: &'a Diagnostic,
        path: Option<&str>,
    ) -> Group<'a> {
        let place = &diagnostic.place;
        let Some((lines, index)) = self.at(place) else {
            group = group.element(self.origin(place));
            return self.others(group, diagnostic.related.iter().collect());
        };
        let (near, far): (Vec<_>, Vec<_>) = diagnostic.related.iter().partition(|related| {
            related.place.origin.file == place.origin.file
                && self
                    .at(&related.place)
                    .is_some_and(|(_, other)| other.abs_diff(index) <= FAR)
        });
        let mut excerpt = Excerpt::new(lines);
        excerpt.mark(
            index,
            place,
            AnnotationKind::Primary,
            path.map(str::to_owned),
        );
        for related in near {
            let index = related.place.origin.line as usize - 1;
            let label = Some(related.message.clone());
            excerpt.mark(index, &related.place, AnnotationKind::Context, label);
        }
        for above in above(lines, index, place.origin.file.extension() == Some("toml")) {
            excerpt.marks.push(Mark {
                index: above,
                kind: AnnotationKind::Visible,
                start: 0,
                length: 0,
                label: None,
            });
        }
        group = group.element(excerpt.snippet().path(self.file(place)));
        self.others(group, far)
    }

    fn others(&self, mut group: Group<'a>, others: Vec<&'a crate::diag::Related>) -> Group<'a> {
        for related in others {
            group = match self.at(&related.place) {
                Some((lines, index)) => {
                    let mut excerpt = Excerpt::new(lines);
                    let label = Some(related.message.clone());
                    excerpt.mark(index, &related.place, AnnotationKind::Context, label);
                    group.element(excerpt.snippet().path(self.file(&related.place)))
                }
                None => group
                    .element(self.origin(&related.place))
                    .element(Level::NOTE.message(escaped(&related.message))),
            };
        }
        group
    }

    /// A place that has no line to be shown.
    fn origin(&self, place: &Place) -> Origin<'a> {
        let origin = Origin::path(self.file(place));
        if place.origin.line == 0 {
            return origin;
        }
        origin
            .line(place.origin.line as usize)
            .char_column(place.origin.column as usize)
    }

    /// The line with the suggestion in it.
    fn patch(&self, place: &Place, suggestion: &'a str) -> Option<Snippet<'a, Patch<'a>>> {
        let (lines, index) = self.at(place)?;
        let line = lines[index];
        // What is escaped could not be pasted.
        if line.chars().any(hidden) || suggestion.chars().any(hidden) {
            return None;
        }
        let span = span(line, place.origin.column.saturating_sub(1), place.length);
        Some(
            Snippet::source(line)
                .line_start(index + 1)
                .patch(Patch::new(span, suggestion)),
        )
    }
}

/// Lines of one file with marks on some of them.
struct Excerpt<'a, 'l> {
    lines: &'l [&'a str],
    marks: Vec<Mark>,
}

struct Mark {
    index: usize,
    kind: AnnotationKind,
    /// In characters of the line.
    start: u32,
    length: u32,
    label: Option<String>,
}

impl<'a, 'l> Excerpt<'a, 'l> {
    fn new(lines: &'l [&'a str]) -> Self {
        Self {
            lines,
            marks: Vec::new(),
        }
    }

    fn mark(&mut self, index: usize, place: &Place, kind: AnnotationKind, label: Option<String>) {
        self.marks.push(Mark {
            index,
            kind,
            start: place.origin.column.saturating_sub(1),
            length: place.length,
            label,
        });
    }

    fn snippet(self) -> Snippet<'a, Annotation<'a>> {
        let of_marks = || self.marks.iter().map(|mark| mark.index);
        let first = of_marks().min().unwrap_or_default();
        let last = of_marks().max().unwrap_or_default();
        let mut source = String::new();
        let mut starts = Vec::with_capacity(last - first + 1);
        for line in &self.lines[first..=last] {
            starts.push(source.len());
            // Lines between those with a mark may be longer than any of them.
            let end = line.floor_char_boundary(LONGEST_LINE);
            source.push_str(&visible(&line[..end]));
            source.push('\n');
        }
        source.pop();
        let annotations: Vec<Annotation<'a>> = self
            .marks
            .into_iter()
            .map(|mark| {
                let line = self.lines[mark.index];
                let start = starts[mark.index - first];
                let span = span(line, mark.start, mark.length);
                let label = mark.label.map(|label| escaped(&label).into_owned());
                mark.kind
                    .span(start + span.start..start + span.end)
                    .label(label)
            })
            .collect();
        Snippet::source(source)
            .line_start(first + 1)
            .annotations(annotations)
    }
}

/// The lines that say where in the file a line is: the key that it is below, and the start of the list's item that it
/// is part of, which mostly bears a name. In TOML the table's head.
fn above(lines: &[&str], index: usize, toml: bool) -> Vec<usize> {
    let near = index.saturating_sub(FAR)..index;
    if toml {
        if lines[index].starts_with('[') {
            return Vec::new();
        }
        return near
            .rev()
            .find(|at| lines[*at].starts_with('['))
            .into_iter()
            .collect();
    }
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_item = |line: &str| line.trim_start_matches(' ').starts_with("- ");
    let mut column = indent(lines[index]);
    let mut found = Vec::new();
    let mut in_item = is_item(lines[index]);
    for at in near.rev() {
        let line = lines[at];
        let text = line.trim();
        if column == 0 {
            break;
        }
        if text.is_empty() || text.starts_with('#') || indent(line) >= column {
            continue;
        }
        column = indent(line);
        let item = is_item(line) && !in_item;
        if found.is_empty() || item {
            found.push(at);
        }
        in_item |= item;
    }
    found
}

/// A source line with what cannot be seen written as an escape.
fn visible(line: &str) -> Cow<'_, str> {
    let wanted = |c: char| c != '\t' && hidden(c);
    if !line.chars().any(wanted) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 8);
    for c in line.chars() {
        if wanted(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Characters of a line → bytes of what [`visible`] makes of it.
fn span(line: &str, start: u32, length: u32) -> Range<usize> {
    let byte = |character: u32| -> usize {
        let before = line.chars().take(character as usize);
        before
            .map(|c| match c {
                '\t' => 1,
                c if hidden(c) => c.escape_unicode().len(),
                c => c.len_utf8(),
            })
            .sum()
    };
    let start_byte = byte(start);
    start_byte..byte(start.saturating_add(length)).max(start_byte)
}
