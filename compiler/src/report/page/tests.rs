use super::*;
use crate::model::InstanceKey;
use crate::review::FORMAT_VERSION;
use crate::review::text::Suspicion;

const HOSTILE: &str = "</p><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' [a](http://x) @all \u{202e}{{ 7*7 }}";

fn finding(grade: Grade, text: &str) -> Finding {
    Finding {
        instance: InstanceKey::parse("weather/api"),
        tool: Some(text.to_owned()),
        kind: Kind::Description,
        path: text.to_owned(),
        grade,
        says: text.to_owned(),
        old: Some("Tells the weather".to_owned()),
        new: Some(format!("Tells {text}")),
        hidden: vec![Suspicion::LookAlike(text.to_owned())],
        person: true,
        accepted: None,
    }
}

fn review(text: &str) -> Review {
    Review {
        format_version: FORMAT_VERSION.to_owned(),
        findings: vec![
            finding(Grade::Widening, text),
            finding(Grade::Neutral, text),
        ],
    }
}

/// What `test` sees of a report.
fn with<R>(text: &str, test: impl FnOnce(&Facts<'_>) -> R) -> R {
    let review = review(text);
    let graph = Graph::default();
    test(&Facts {
        plan: None,
        review: Some(&review),
        graph: &graph,
    })
}

fn custom_of(form: Form, template: &str) -> Result<String, ReportError> {
    with(HOSTILE, |facts| custom(facts, form, template))
}

#[test]
fn a_page_names_nothing_outside_and_forbids_to_fetch_or_run_anything() {
    let page = with("plain", page).unwrap();
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    for outside in [
        "http:", "https:", " src=", " href=", "<script", "<link", "@import", "url(",
    ] {
        assert!(
            !page
                .replace("http://www.w3.org/2000/svg", "")
                .contains(outside),
            "{outside}"
        );
    }
    assert!(
        page.contains("1 widening, 0 narrowing, 1 neutral."),
        "{page}"
    );
    assert_eq!(
        page,
        with("plain", super::page).unwrap(),
        "the same every time"
    );
}

#[test]
fn hostile_text_stays_text_in_a_page() {
    let page = with(HOSTILE, page).unwrap();
    for raw in ["<script", "<img", "onload='", "\u{202e}"] {
        assert!(!page.contains(raw), "{raw}: {page}");
    }
    assert!(
        page.contains("&lt;script&gt;") && page.contains("{{ 7*7 }}"),
        "{page}"
    );
}

#[test]
fn hostile_text_stays_text_in_every_form_of_a_template() {
    let template = "{% autoescape false %}{% for grade in grades %}{% for subject in grade.subjects %}{% for finding in subject.findings %}\
                    {{ finding.says }}|{{ finding.tool ~ finding.new }}{% set x = finding.path %}{{ x }}\n{% endfor %}{% endfor %}{% endfor %}{% endautoescape %}";
    for (form, raws) in [
        (Form::Html, &["<script", "<img", "onload='", "\u{202e}"][..]),
        (
            Form::Markdown,
            &["<script", "<img", "](http", "@all", "\u{202e}"],
        ),
        (Form::Text, &["\u{202e}"]),
    ] {
        let made = custom_of(form, template).unwrap();
        assert!(made.contains("alert"), "{made}");
        for raw in raws {
            assert!(!made.contains(raw), "{form:?} {raw}: {made}");
        }
    }
}

#[test]
fn the_summary_stands_above_whatever_a_template_makes() {
    for form in [Form::Text, Form::Markdown, Form::Html] {
        let made = custom_of(form, "No difference. \u{1b}[2J").unwrap();
        let summary = made.find("1 widening").unwrap();
        assert!(summary < made.find("No difference").unwrap(), "{made}");
    }
    let text = custom_of(Form::Text, "\u{1b}[2J\r\ngone").unwrap();
    assert!(
        !text.contains('\u{1b}') && text.contains("\\u{1b}[2J"),
        "{text}"
    );
}

#[test]
fn a_template_has_neither_filters_nor_files_nor_what_is_not_there() {
    for template in [
        "{{ summary|safe }}",
        "{{ summary|upper }}",
        "{% include '/etc/passwd' %}",
        "{% extends 'page.html' %}",
        "{% import 'x' as y %}",
        "{{ nothing }}",
        "{{ range(3) }}",
        "{{ debug() }}",
        "{{",
    ] {
        let error = custom_of(Form::Html, template).unwrap_err();
        assert!(matches!(error, ReportError::Template(_)), "{template}");
    }
}

#[test]
fn a_template_comes_to_an_end_within_its_bounds() {
    let doubled = "{% set a = 'xxxxxxxxxxxxxxxx' %}".to_owned() + &"{% set a = a ~ a %}".repeat(60);
    let nested = "{% for a in 'x' * 9999 %}{% for b in 'x' * 9999 %}{% for c in 'x' * 9999 %}{% endfor %}{% endfor %}{% endfor %}";
    let recursive = "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}";
    for template in [doubled.as_str(), nested, recursive] {
        assert!(custom_of(Form::Text, template).is_err());
    }
    let large = "x".repeat(TEMPLATE_MAX + 1);
    assert!(matches!(
        custom_of(Form::Text, &large),
        Err(ReportError::TemplateSize)
    ));
    let prolific = format!(
        "{{% for a in 'x' * 300 %}}{}{{% endfor %}}",
        "y".repeat(60_000)
    );
    assert!(matches!(
        custom_of(Form::Text, &prolific),
        Err(ReportError::OutputSize)
    ));
}

#[test]
fn a_hash_is_written_as_a_policy_wants_it() {
    assert_eq!(base64(b""), "");
    assert_eq!(base64(b"f"), "Zg==");
    assert_eq!(base64(b"fo"), "Zm8=");
    assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    assert_eq!(base64(&[0xFB, 0xFF, 0xFE]), "+//+");
}
