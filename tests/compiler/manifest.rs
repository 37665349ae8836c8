//! manifest.yaml: fields, limits, combinations (M, F, R, T, C).

use selu_compiler::model::{CredentialScope, Limits, Policy, SharingMode, ToolSource};

use crate::fixture::{check_manifest, manifest};

const HEAD: &str = "id: weather\nimage: example.com/weather:1\n";

/// What is found below the two lines of [`HEAD`].
fn check(rest: &str) -> Vec<String> {
    check_manifest(&format!("{HEAD}{rest}"))
}

/// The suggestions of all findings.
fn suggestions(rest: &str) -> Vec<String> {
    manifest(&format!("{HEAD}{rest}"))
        .check()
        .diagnostics
        .into_iter()
        .filter_map(|finding| finding.suggestion)
        .collect()
}

#[test]
fn the_smallest_manifest_gets_every_default() {
    let checked = manifest(HEAD).check();
    assert_eq!(checked.diagnostics, []);
    let project = checked.project.unwrap();
    assert_eq!(project.name.as_deref(), Some("weather"));
    let (key, _, capability) = project.instances().next().unwrap();
    assert_eq!(key.as_str(), "_/weather");
    assert_eq!(capability.tools, ToolSource::Static(Vec::new()));
    assert_eq!(
        capability.limits,
        Limits {
            memory_mb: 128,
            nano_cpus: 500_000_000,
            cpu_seconds: 30,
            pids: 64
        }
    );
    assert_eq!(capability.sharing.mode, SharingMode::Exclusive);
    assert_eq!(capability.sharing.idle_timeout_seconds, 300);
}

#[test]
fn misspelt_fields_are_errors_with_the_right_name() {
    for (written, meant) in [
        ("resourses: {}", "resources"),
        ("Network: {}", "network"),
        ("tool-source: manifest", "tool_source"),
        ("resources: {max_memory: 64}", "max_memory_mb"),
        ("network: {host: []}", "hosts"),
        (
            "credentials: [{name: X, scope: user, requried: true}]",
            "required",
        ),
        (
            "tools: [{name: a, description: b, input_schema: {}, recomended_policy: ask}]",
            "recommended_policy",
        ),
    ] {
        let found = check(written);
        assert!(
            found
                .iter()
                .any(|line| line.ends_with("error misspelt-field")),
            "{written}: {found:?}"
        );
        assert_eq!(suggestions(written), [meant], "{written}");
    }
}

#[test]
fn fields_of_another_level_are_errors_that_say_where_they_go() {
    for (written, target) in [
        ("hosts: []\n", "inside `network`, one level down"),
        ("max_memory_mb: 64\n", "inside `resources`, one level down"),
        (
            "recommended_policy: ask\n",
            "inside an item of `tools`, one level down",
        ),
        ("network: {filesystem: none}\n", "one level up"),
        (
            "tools: [{name: a, description: b, input_schema: {}, required: [c]}]\n",
            "inside `input_schema`, one level down",
        ),
    ] {
        let text = manifest(&format!("{HEAD}{written}")).text();
        assert!(
            text.contains("SELU0306") && text.contains(target),
            "{written}: {text}"
        );
    }
}

#[test]
fn other_unknown_fields_are_warnings_and_own_ones_are_free() {
    assert_eq!(check("licence: MIT\n"), ["3:1 warning unknown-field"]);
    assert_eq!(
        check("description: Weather\n"),
        ["3:1 warning unknown-field"]
    );
    assert_eq!(check("x-licence: MIT\n"), Vec::<String>::new());
}

#[test]
fn wrong_types_and_words_name_the_field_and_what_is_allowed() {
    let text = manifest(&format!(
        "{HEAD}network: {{mode: allowlst, hosts: [\"a.example:443\"]}}\ntools:\n  - name: a\n    description: b\n"
    ))
    .text();
    insta::assert_snapshot!(text, @r#"
    error[SELU0304]: the string "allowlst" is not allowed here; it takes `none`, `allowlist` or `any`
     --> manifest.yaml:3:17
      |
    3 | network: {mode: allowlst, hosts: ["a.example:443"]}
      |                 ^^^^^^^^ network.mode
      |
    help: did you mean `allowlist`?
      |
    3 | network: {mode: allowlist, hosts: ["a.example:443"]}
      |                       +

    error[SELU0301]: the required field `input_schema` is missing
     --> manifest.yaml:5:5
      |
    4 | tools:
    5 |   - name: a
      |     ^^^^ tools[0].input_schema

    2 errors
    "#);
}

#[test]
fn limits_have_bounds_and_zero_is_not_unlimited() {
    for (field, bad, good) in [
        (
            "max_memory_mb",
            ["0", "5", "-1", "99999999999999999999"],
            "6",
        ),
        ("max_cpu_fraction", ["0", "0.009", "-0.5", "10001"], "0.01"),
        ("max_cpu_seconds", ["0", "-1", "-30", "99999999999"], "1"),
        ("pids_limit", ["0", "-1", "5000000", "-64"], "1"),
    ] {
        for bad in bad {
            let found = check(&format!("resources:\n  {field}: {bad}\n"));
            assert_eq!(found.len(), 1, "{field}: {bad}: {found:?}");
            assert!(
                found[0].ends_with("error out-of-range"),
                "{field}: {bad}: {found:?}"
            );
        }
        assert_eq!(
            check(&format!("resources:\n  {field}: {good}\n")),
            Vec::<String>::new(),
            "{field}: {good}"
        );
    }
}

#[test]
fn cores_become_integers() {
    let fixture = manifest(&format!("{HEAD}resources: {{max_cpu_fraction: 0.57}}\n"));
    let project = fixture.check().project.unwrap();
    assert_eq!(
        project.instances().next().unwrap().2.limits.nano_cpus,
        570_000_000
    );
    assert_eq!(
        check("resources: {max_cpu_fraction: 0.5000000001}\n"),
        ["3:31 error number-form"]
    );
}

#[test]
fn combinations_that_contradict_each_other_are_errors() {
    let tool = "tools: [{name: a, description: b, input_schema: {type: object}}]\n";
    for (written, name) in [
        (
            format!("tool_source: dynamic\n{tool}"),
            "dynamic-with-tools",
        ),
        (
            "filesystem: workspace\n".to_owned(),
            "workspace-needs-environment",
        ),
        (
            "cache: {enabled: true}\n".to_owned(),
            "cache-needs-environment",
        ),
        (
            "class: environment\nsharing: {mode: shared}\n".to_owned(),
            "shared-needs-stateless",
        ),
    ] {
        let found = check(&written);
        assert!(
            found
                .iter()
                .any(|line| line.ends_with(&format!("error {name}"))),
            "{written}: {found:?}"
        );
    }
    for right in [
        "tool_source: dynamic\ntools: []\n",
        "class: environment\nfilesystem: workspace\ncache: {enabled: true}\n",
        "sharing: {mode: shared, max_concurrent: 4}\n",
    ] {
        assert_eq!(check(right), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn a_refused_word_does_not_cause_findings_of_the_default() {
    assert_eq!(
        check("class: enviroment\nfilesystem: workspace\n"),
        ["3:8 error not-one-of"]
    );
}

#[test]
fn fields_without_effect_are_warnings() {
    assert_eq!(
        check("discovery_tool_name: list\n"),
        ["3:1 warning no-effect"]
    );
    assert_eq!(
        check("sharing: {max_concurrent: 2}\n"),
        ["3:27 warning no-effect"]
    );
}

#[test]
fn recommendations_follow_the_newer_field_and_default_to_none() {
    let tool = |name: &str, policy: &str| {
        format!("  - {{name: {name}, description: d, input_schema: {{type: object}}{policy}}}\n")
    };
    let yaml = format!(
        "{HEAD}tools:\n{}{}{}{}",
        tool("a", ""),
        tool("b", ", requires_confirmation: true"),
        tool(
            "c",
            ", recommended_policy: allow, requires_confirmation: true"
        ),
        tool("d", ", recommended_policy: block"),
    );
    let fixture = manifest(&yaml);
    let project = fixture.check().project.unwrap();
    let ToolSource::Static(tools) = &project.instances().next().unwrap().2.tools else {
        panic!("the tools are static");
    };
    let recommended: Vec<Option<Policy>> = tools.iter().map(|tool| tool.recommended).collect();
    assert_eq!(
        recommended,
        [
            None,
            Some(Policy::Ask),
            Some(Policy::Allow),
            Some(Policy::Block)
        ]
    );
    let found = fixture.lines();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("warning policy-disagrees"));
}

#[test]
fn names_are_unique_and_duplicates_show_both_places() {
    let text = manifest(&format!(
        "{HEAD}credentials:\n  - {{name: KEY, scope: system}}\n  - {{name: KEY, scope: user}}\n"
    ))
    .text();
    insta::assert_snapshot!(text, @r"
    error[SELU0316]: there are two credentials named `KEY`
     --> manifest.yaml:5:12
      |
    3 | credentials:
    4 |   - {name: KEY, scope: system}
      |            --- the first one
    5 |   - {name: KEY, scope: user}
      |            ^^^ credentials[1].name

    1 error
    ");
}

#[test]
fn credentials_are_sorted_and_complete() {
    let fixture = manifest(&format!(
        "{HEAD}credentials:\n  - {{name: Z, scope: user, required: false}}\n  - {{name: A, scope: system}}\n"
    ));
    let project = fixture.check().project.unwrap();
    let credentials = &project.instances().next().unwrap().2.credentials;
    assert_eq!(credentials[0].name, "A");
    assert!(credentials[0].required);
    assert_eq!(credentials[1].scope, CredentialScope::User);
    assert!(!credentials[1].required);
}

#[test]
fn bad_hosts_keep_their_index_beside_entries_of_the_wrong_type() {
    assert_eq!(
        check("network:\n  mode: allowlist\n  hosts:\n    - 443\n    - \"https://a.example\"\n"),
        ["6:7 error unquoted-string", "7:7 error host-invalid"]
    );
}

#[test]
fn ids_have_one_form_and_a_suggestion() {
    let found = manifest("id: My Weather\nimage: a/b:1\n").check();
    assert_eq!(found.diagnostics[0].code.name, "bad-id");
    assert_eq!(
        found.diagnostics[0].suggestion.as_deref(),
        Some("my-weather")
    );
    for bad in ["-a", "a-", "a_b", "ä", &"a".repeat(64)] {
        assert_eq!(
            check_manifest(&format!("id: {bad}\nimage: a/b:1\n")),
            ["1:5 error bad-id"],
            "{bad}"
        );
    }
}
