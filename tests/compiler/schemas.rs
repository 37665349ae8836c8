//! The schemas for editors.

use selu_compiler::model::schemas;

use crate::fixture::assert_fresh;

#[test]
fn committed_schemas_are_what_the_types_say() {
    for name in schemas::NAMES {
        let schema = schemas::schema(name).unwrap();
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        assert_fresh(&format!("schemas/{name}.schema.json"), &text);
    }
}

#[test]
fn an_editor_takes_what_the_compiler_takes() {
    for (name, value, valid) in [
        (
            "manifest",
            "{id: weather, image: \"a/b:1\", x-note: 1}",
            true,
        ),
        ("manifest", "{id: weather}", false),
        (
            "manifest",
            "{id: weather, image: \"a/b:1\", network: {mode: all}}",
            false,
        ),
        (
            "manifest",
            "{id: weather, image: \"a/b:1\", resources: {max_memory_mb: 4}}",
            false,
        ),
        (
            "manifest",
            "{id: weather, image: \"a/b:1\", class: null}",
            false,
        ),
        (
            "agent",
            "{id: helper, name: Helper, session: {isolation: per_thread}}",
            true,
        ),
        ("agent", "{id: helper}", false),
        ("agent", "{id: helper, name: Helper, routng: auto}", false),
        (
            "manifest",
            "{id: weather, image: \"a/b:1\", resources: {max_memry_mb: 64}}",
            false,
        ),
        (
            "manifest",
            "{id: weather, image: \"a/b:1\", tools: [{name: a, description: b, input_schema: {anything: 1}}]}",
            true,
        ),
        ("settings", "{policy: {a/b/c: ask}}", true),
        ("settings", "{policy: {a/b/c: maybe}}", false),
        ("settings", "{polciy: {}}", false),
        ("settings", "{diagnostics: {image-latest: error}}", true),
    ] {
        let schema = schemas::schema(name).unwrap();
        let validator = jsonschema::draft7::new(&schema).unwrap();
        let value: serde_json::Value = serde_yaml::from_str(value).unwrap();
        assert_eq!(validator.is_valid(&value), valid, "{name}: {value}");
    }
}
