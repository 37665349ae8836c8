//! Pictures, `why`, and reports by templates of one's own.

use super::Desk;

const MORE: &str = "network: {mode: allowlist, hosts: [\"api.example.com:443\"]}\ncredentials: [{name: API_KEY, scope: user}]\n";

#[test]
fn a_graph_has_three_forms_and_no_other_command_takes_them() {
    let desk = Desk::with_project();
    desk.manifest(MORE);
    for (format, begins) in [
        ("svg", "<?xml"),
        ("dot", "digraph"),
        ("mermaid", "flowchart"),
        ("text", "flowchart"),
    ] {
        let ran = desk.run(&["graph", "--format", format]).exits(0);
        assert!(ran.out.starts_with(begins), "{format}: {}", ran.out);
        for name in ["api.example.com", "API_KEY", "weather"] {
            assert!(ran.out.contains(name), "{format} {name}: {}", ran.out);
        }
        ran.says("1 agent, 1 capability, 1 image, 1 host, 1 credential");
    }
    desk.run(&["graph", "--format", "json"]).exits(64);
    for (command, format) in [
        ("plan", "svg"),
        ("graph", "html"),
        ("check", "html"),
        ("diff", "dot"),
    ] {
        desk.run(&[command, "--format", format])
            .exits(64)
            .says(format);
    }
}

#[test]
fn why_tells_who_uses_a_host_a_credential_an_image_and_where_it_is_written() {
    let desk = Desk::with_project();
    desk.manifest(MORE);
    let place = "agents/weather/capabilities/api/manifest.yaml:1\n";
    for (name, line) in [
        (
            "api.example.com",
            "weather/api may reach it (api.example.com:443)",
        ),
        (
            "API_KEY",
            "weather/api is given it (one per user, required)",
        ),
        ("weather", "weather/api runs it (weather:1, not pinned yet)"),
    ] {
        let ran = desk.run(&["why", name]).exits(0);
        assert_eq!(ran.out, format!("{line}  {place}"));
    }
    desk.run(&["why", "API_KEI"])
        .exits(1)
        .says("nothing uses API_KEI")
        .says("did you mean API_KEY?");
    let json = desk
        .run(&["why", "API_KEY", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(json["uses"][0]["role"]["as"], "credential");
    let json = desk.run(&["why", "x", "--format", "json"]).exits(1).json();
    assert_eq!(json["uses"], serde_json::json!([]));
}

#[test]
fn a_change_neither_writes_its_own_report_nor_decides_how_it_ends() {
    let desk = Desk::with_project();
    desk.write(
        "ci/report.md",
        "{% for grade in grades %}{{ grade.name }}={{ grade.count }} {% endfor %}\n",
    );
    desk.git(&["init", "--quiet"]);
    desk.git(&["add", "--all"]);
    desk.git(&["commit", "--quiet", "--message", "first"]);
    desk.manifest(MORE);
    desk.write("ci/report.md", "All is well.\n");
    desk.write("ci/new.md", "All is well.\n");
    let report = |template: &str, code: i32| {
        desk.run(&[
            "diff",
            "--format",
            "markdown",
            "--template",
            template,
            "--fail-on",
            "widening",
        ])
        .exits(code)
    };
    let ran = report("ci/report.md", 2);
    assert!(
        ran.out.starts_with("<!-- selu review -->\n**3 widening"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("widening=3 narrowing=0"), "{}", ran.out);
    report("ci/new.md", 1).says("HEAD has no ci/new.md");

    // What the person who asks has elsewhere is theirs; the counts stay all the same.
    let own = Desk::new();
    own.write("own.md", "All is well.\n");
    let ran = report(own.path().join("own.md").to_str().unwrap(), 2);
    assert!(
        ran.out.contains("3 widening") && ran.out.ends_with("All is well.\n"),
        "{}",
        ran.out
    );
}

#[test]
fn a_template_that_fails_is_an_error_with_its_place_and_a_form_that_has_none_is_refused() {
    let desk = Desk::with_project();
    desk.write("t.txt", "{{ summary }}\n{{ nothing }}\n");
    let plan = |format: &str, template: &str| {
        desk.run(&[
            "plan",
            "--offline",
            "--format",
            format,
            "--template",
            template,
        ])
    };
    plan("text", "t.txt").exits(1).says("t").says(":2");
    plan("json", "t.txt").exits(64);
    plan("text", "none.txt")
        .exits(1)
        .says("none.txt cannot be read");
    desk.write("t.txt", &"x".repeat(70_000));
    plan("text", "t.txt").exits(1).says("65536 bytes");
    desk.write(
        "t.html",
        "<p>{% for agent in plan.agents %}{{ agent.id }}{% endfor %}</p>\n",
    );
    let page = plan("html", "t.html").exits(0).out;
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(page.contains("<main>\n<p>weather</p>\n</main>"), "{page}");
}
