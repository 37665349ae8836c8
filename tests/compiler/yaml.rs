//! YAML itself (L5): what is read, and where it is refused.

use selu_compiler::model::ToolSource;

use crate::fixture::{Fixture, check_manifest, manifest};

const HEAD: &str = "id: weather\nimage: example.com/weather:1\n";

/// What is found below the two lines of [`HEAD`].
fn check(rest: &str) -> Vec<String> {
    check_manifest(&format!("{HEAD}{rest}"))
}

/// The input schema of a tool, as the project has it.
fn schema(yaml: &str) -> serde_json::Value {
    let indented: String = yaml.lines().map(|line| format!("      {line}\n")).collect();
    let fixture = manifest(&format!(
        "{HEAD}tools:\n  - name: forecast\n    description: Tells\n    input_schema:\n{indented}"
    ));
    let project = fixture.check().project;
    let project = project.unwrap_or_else(|| panic!("{}", fixture.text()));
    let (_, _, capability) = project.instances().next().unwrap();
    let ToolSource::Static(tools) = &capability.tools else {
        panic!("the tools are static");
    };
    tools[0].input_schema.value()
}

#[test]
fn duplicate_keys_are_found_at_any_depth_with_both_places() {
    assert_eq!(
        check("network:\n  mode: none\nnetwork:\n  mode: any\n"),
        ["5:1 error duplicate-key"]
    );
    let text = manifest(&format!(
        "{HEAD}tools:\n  - name: a\n    description: b\n    input_schema:\n      properties:\n        city: {{type: string}}\n        city: {{type: integer}}\n"
    ))
    .text();
    assert!(text.contains("manifest.yaml:9:9"), "{text}");
    assert!(
        text.contains("tools[0].input_schema.properties.city"),
        "{text}"
    );
    assert!(
        text.contains("8 |         city: {type: string}\n  |         ---- first written here"),
        "{text}"
    );
}

#[test]
fn words_that_yaml_1_1_takes_for_booleans_stay_words_in_schemas() {
    let schema =
        schema("type: object\nproperties:\n  mode: {enum: [on, off, yes, no, NO], default: no}");
    assert_eq!(
        schema["properties"]["mode"],
        serde_json::json!({"enum": ["on", "off", "yes", "no", "NO"], "default": "no"})
    );
}

#[test]
fn string_fields_take_strings_only() {
    for value in [
        "123", "1.10", "~", "null", "true", "yes", "No", "on", "OFF", "0x1F",
    ] {
        assert_eq!(
            check_manifest(&format!("id: weather\nimage: {value}\n")),
            ["2:8 error unquoted-string"],
            "{value}"
        );
    }
    assert_eq!(
        check_manifest("id: \"123\"\nimage: a/b:1\n"),
        Vec::<String>::new()
    );
}

#[test]
fn numbers_have_one_form() {
    for (written, meant) in [
        ("0128", "128"),
        ("0o200", "128"),
        ("1_024", "1024"),
        ("128.0", "128"),
        ("1e3", "1000"),
        ("\"128\"", "128"),
    ] {
        let fixture = manifest(&format!("{HEAD}resources:\n  max_memory_mb: {written}\n"));
        assert_eq!(
            fixture.lines(),
            ["manifest.yaml:4:18 error number-form"],
            "{written}"
        );
        let checked = fixture.check();
        assert_eq!(
            checked.diagnostics[0].suggestion.as_deref(),
            Some(meant),
            "{written}"
        );
    }
}

#[test]
fn a_decimal_comma_is_an_error_in_both_styles() {
    let block = manifest(&format!("{HEAD}resources:\n  max_cpu_fraction: 0,5\n")).text();
    assert!(block.contains("use a point: 0.5"), "{block}");
    let flow = manifest(&format!("{HEAD}resources: {{max_cpu_fraction: 0,5}}\n")).text();
    assert!(flow.contains("use a point: 0.5"), "{flow}");
}

#[test]
fn merge_keys_are_expanded_where_they_stand() {
    let fixture = manifest(&format!(
        "{HEAD}x-a: &a {{max_memory_mb: 64, pids_limit: 10}}\nx-b: &b {{max_memory_mb: 32, max_cpu_seconds: 5}}\n\
         resources:\n  <<: [*a, *b]\n  pids_limit: 20\n"
    ));
    let project = fixture.check().project.unwrap();
    let limits = &project.instances().next().unwrap().2.limits;
    assert_eq!(
        (limits.memory_mb, limits.pids, limits.cpu_seconds),
        (64, 20, 5)
    );
}

#[test]
fn a_merge_key_never_becomes_a_parameter() {
    let schema = schema(
        "type: object\n$defs:\n  base: &base {type: string}\nproperties:\n  city: {<<: *base, minLength: 1}",
    );
    assert_eq!(
        schema["properties"]["city"],
        serde_json::json!({"type": "string", "minLength": 1})
    );
    assert_eq!(
        check("resources:\n  <<: 128\n"),
        ["4:7 error bad-merge-key"]
    );
}

#[test]
fn an_alias_bomb_is_refused_and_honest_aliases_pass() {
    let mut bomb = String::from("x-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("x-{level}: &a{level} [{items}]\n"));
    }
    let found = check(&bomb);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].ends_with("error yaml-too-many-values"),
        "{found:?}"
    );

    let mut honest = String::from("x-one: &one {a: 1}\nx-many:\n");
    honest.push_str(&"  - *one\n".repeat(200));
    assert_eq!(check(&honest), Vec::<String>::new());
}

#[test]
fn a_long_text_cannot_be_multiplied_by_aliases() {
    let text = "x".repeat(1_000_000);
    let found = check(&format!(
        "x-a: &a {text}\nx-b: [{}]\n",
        vec!["*a"; 10_000].join(", ")
    ));
    assert!(
        found[0].ends_with("error yaml-too-many-values"),
        "{found:?}"
    );
}

#[test]
fn an_alias_inside_its_own_anchor_is_refused() {
    assert_eq!(check("x-a: &a [*a]\n"), ["3:10 error bad-alias"]);
}

#[test]
fn nesting_is_bounded_also_through_aliases() {
    let deep = |levels| format!("x-deep: {}{}\n", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(check(&deep(127)), Vec::<String>::new());
    assert_eq!(check(&deep(128)), ["3:136 error yaml-too-deep"]);
    let found = check(&deep(100_000));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("error yaml-too-deep"), "{found:?}");
    let mut chain = String::from("x-0: &a0 [1]\n");
    for level in 1..200 {
        chain.push_str(&format!("x-{level}: &a{level} [*a{}]\n", level - 1));
    }
    let found = check(&chain);
    assert!(found[0].ends_with("error yaml-too-deep"), "{found:?}");
}

#[test]
fn one_document_is_read_and_a_second_one_is_an_error() {
    let none = Vec::<String>::new();
    assert_eq!(check_manifest(&format!("---\n{HEAD}")), none);
    assert_eq!(check_manifest(&format!("{HEAD}...\n")), none);
    assert_eq!(check("---\nid: other\n"), ["3:1 error several-documents"]);
    assert_eq!(check("---\n"), ["3:1 error several-documents"]);
}

#[test]
fn tags_are_refused_unless_they_are_yamls_own_and_fit() {
    assert_eq!(check("x-a: !secret b\n"), ["3:6 error yaml-tag"]);
    assert_eq!(check("x-a: !!python/object:x {}\n").len(), 1);
    assert_eq!(check("x-a: !!int b\n").len(), 1);
    assert_eq!(
        check_manifest("id: !!str 123\nimage: a/b:1\n"),
        Vec::<String>::new()
    );
}

#[test]
fn keys_are_strings() {
    for key in ["1", "1.0", "true", "~", "? [a]\n  "] {
        let found = check(&format!("x-a:\n  {key}: b\n"));
        assert_eq!(found.len(), 1, "{key}: {found:?}");
        assert!(
            found[0].ends_with("error key-not-string"),
            "{key}: {found:?}"
        );
    }
    assert_eq!(check("x-a:\n  yes: b\n  \"1\": c\n"), Vec::<String>::new());
}

#[test]
fn an_unquoted_wildcard_gets_the_hint_to_quote_it() {
    for hosts in ["\n    - *.example.com:443\n", " [*.example.com:443]\n"] {
        let fixture = manifest(&format!(
            "{HEAD}network:\n  mode: allowlist\n  hosts:{hosts}"
        ));
        let checked = fixture.check();
        assert_eq!(checked.diagnostics[0].code.name, "bad-alias");
        assert_eq!(
            checked.diagnostics[0].suggestion.as_deref(),
            Some("\"*.example.com:443\"")
        );
    }
}

#[test]
fn a_space_in_a_host_and_a_host_that_is_no_list_get_their_cures() {
    let text = manifest(&format!(
        "{HEAD}network:\n  mode: allowlist\n  hosts:\n    - api.example.com: 443\n"
    ))
    .text();
    assert!(
        text.contains("remove the space, `api.example.com:443`"),
        "{text}"
    );
    let text = manifest(&format!(
        "{HEAD}network:\n  mode: allowlist\n  hosts: api.example.com:443\n"
    ))
    .text();
    assert!(
        text.contains("write a list: [\"api.example.com:443\"]"),
        "{text}"
    );
}

#[test]
fn tabs_and_broken_syntax_have_their_place() {
    assert_eq!(
        check("network:\n\tmode: none\n"),
        ["4:1 error tab-indentation"]
    );
    let found = check("tools: [\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("error yaml-syntax"), "{found:?}");
}

#[test]
fn empty_files_say_so() {
    for empty in ["", "# nothing\n", "  \n\n"] {
        assert_eq!(check_manifest(empty), ["0:0 error empty-file"], "{empty:?}");
    }
}

#[test]
fn an_optional_list_or_object_with_nothing_after_its_colon_has_its_default() {
    assert_eq!(
        check("tools:\nnetwork:\ncredentials:\nresources:\ncache:\nsharing:\n"),
        Vec::<String>::new()
    );
    assert_eq!(check("class:\n"), ["3:1 error nothing-written"]);
    assert_eq!(
        check_manifest("id:\nimage: a/b:1\n"),
        ["1:1 error nothing-written"]
    );
}

#[test]
fn a_bom_and_crlf_change_nothing() {
    let plain = Fixture::new([("manifest.yaml", HEAD), ("prompt.md", "Ask.\nThen act.\n")]);
    let odd = Fixture::new([
        (
            "manifest.yaml",
            "\u{feff}id: weather\r\nimage: example.com/weather:1\r\n",
        ),
        ("prompt.md", "\u{feff}Ask.\r\nThen act.\r\n"),
    ]);
    assert_eq!(plain.check().project.unwrap(), odd.check().project.unwrap());
}

#[test]
fn numbers_that_json_cannot_hold_are_errors_and_rewritten_ones_warnings() {
    let schema = |value: &str| {
        check(&format!(
            "tools:\n  - name: a\n    description: b\n    input_schema: {{type: object, x-a: {value}}}\n"
        ))
    };
    assert_eq!(schema(".inf"), ["6:39 error number-without-json-form"]);
    assert_eq!(
        schema("123456789012345678901234567890"),
        ["6:39 error number-without-json-form"]
    );
    assert_eq!(schema("1.10"), ["6:39 warning number-rewritten"]);
    assert_eq!(schema("007"), ["6:39 warning number-rewritten"]);
    assert_eq!(schema("18446744073709551615"), Vec::<String>::new());
    assert_eq!(schema("-0.5"), Vec::<String>::new());
}

#[test]
fn many_findings_in_one_mapping_are_all_placed() {
    let fields: String = (0..3_000)
        .map(|index| format!("zzzzz{index}: 1\n"))
        .collect();
    let found = check(&fields);
    assert_eq!(found.len(), 3_000);
    assert_eq!(found[2_999], "3002:1 warning unknown-field");
}

#[test]
fn a_scalar_that_serde_yaml_reads_otherwise_is_never_taken_in_silence() {
    let mut silent = Vec::new();
    for text in [
        "~",
        "null",
        "Null",
        "NULL",
        "nULL",
        "true",
        "True",
        "TRUE",
        "tRUE",
        "false",
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "0",
        "-0",
        "+0",
        "7",
        "-7",
        "+7",
        "007",
        "0128",
        "08",
        "0o17",
        "0O17",
        "-0o17",
        "0o8",
        "0x1F",
        "0X1F",
        "-0x1F",
        "+0x1F",
        "0b11",
        "-0b11",
        "0b12",
        "1_000",
        "1__0",
        "1.5",
        "1.10",
        "-1.5",
        "+1.5",
        ".5",
        "-.5",
        "1.",
        "1.e3",
        "1e3",
        "1E3",
        "1e+3",
        "1e-3",
        "1.5e3",
        "e3",
        "1e",
        ".",
        "-",
        "+",
        "..",
        "1.2.3",
        "1:2",
        "22:22",
        "1:20:30",
        "0,5",
        "2001-01-01",
        "2001-01-01T00:00:00Z",
        ".inf",
        "-.inf",
        "+.inf",
        ".Inf",
        ".INF",
        ".nan",
        ".NaN",
        "inf",
        "nan",
        "-inf",
        "infinity",
        "1e999",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "0.1",
        "100000000000000000000.5",
        "1e400",
        "0x",
        "0o",
    ] {
        let yaml = format!(
            "{HEAD}tools:\n  - name: a\n    description: b\n    input_schema:\n      type: object\n      x-a: {text}\n"
        );
        let fixture = manifest(&yaml);
        let checked = fixture.check();
        if !checked.diagnostics.is_empty() {
            continue;
        }
        let project = checked.project.unwrap();
        let ToolSource::Static(tools) = &project.instances().next().unwrap().2.tools else {
            panic!("the tools are static");
        };
        let theirs: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
        let theirs = serde_json::to_value(theirs).unwrap();
        if tools[0].input_schema.value()["x-a"] != theirs {
            silent.push(format!(
                "{text}: {} but {theirs}",
                tools[0].input_schema.value()["x-a"]
            ));
        }
    }
    assert_eq!(silent, Vec::<String>::new());
}

#[test]
fn no_text_makes_the_reader_panic_and_a_refusal_is_always_an_error() {
    const SEED: &str = "\
id: weather # a comment
image: &image \"example.com/weather:1\"
network: {mode: allowlist, hosts: ['*.example.com:443', a.example:80]}
x-base: &base {type: string, description: |
  text
  }
tools:
  - name: forecast
    description: >-
      folded
      text
    input_schema:
      type: object
      properties: {city: {<<: *base}, days: {type: integer, default: 3}}
";
    let pieces = [
        "&", "*", "!", "!!str ", "|", ">", "'", "\"", "\\", "%", "@", "`", "#", ",", "[", "]", "{",
        "}", ": ", ":", "- ", "? ", "<<: ", "---\n", "...\n", "\n", "\t", "\r", "\0", "\u{feff}",
        "\u{85}", "\u{2028}", "é", "𝄞", "~", "1e999", "  ", "&a", "*a", "*base", "\x1b[0m",
    ];
    // A fixed sequence: the same texts in every run.
    let mut state: u64 = 0x2545_F491_4F6C_DD1D;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..1_500 {
        let mut text: Vec<char> = SEED.chars().collect();
        for _ in 0..=next(4) {
            let at = next(text.len() + 1);
            match next(3) {
                0 => {
                    let piece = pieces[next(pieces.len())];
                    text.splice(at..at, piece.chars());
                }
                1 => text.truncate(at.max(1)),
                _ => {
                    let end = (at + next(8)).min(text.len());
                    text.drain(at.min(end)..end);
                }
            }
        }
        let text: String = text.into_iter().collect();
        let (document, findings) = selu_compiler::yaml::read("manifest.yaml".into(), &text);
        let refused = document.is_none();
        assert!(!refused || !findings.is_empty(), "{text:?}");
        let sources = selu_compiler::source::SourceSet {
            kind: Some(selu_compiler::source::RootKind::Capability),
            capabilities: vec![selu_compiler::source::CapabilityFolder {
                path: "".into(),
                manifest: Some(selu_compiler::source::SourceFile {
                    path: "manifest.yaml".into(),
                    text,
                }),
                prompts: Vec::new(),
                container: None,
                builds: Vec::new(),
            }],
            ..Default::default()
        };
        let checked = selu_compiler::check::check(&sources);
        assert!(!refused || checked.project.is_none());
        selu_compiler::diag::render::text(&checked.diagnostics, &sources, true);
    }
}
