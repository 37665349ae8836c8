use serde_json::{Value, json};

use super::schema;

/// `code pointer` of every problem, but for what only models refuse.
fn found(value: &Value) -> Vec<String> {
    let mut found = all(value);
    found.retain(|line| !line.starts_with("schema-for-models "));
    found
}

/// `code pointer` of every problem.
fn all(value: &Value) -> Vec<String> {
    schema(value)
        .iter()
        .map(|problem| format!("{} {}", problem.code.name, problem.pointer))
        .collect()
}

/// A schema with one argument `x`.
fn with(x: Value) -> Value {
    json!({"type": "object", "properties": {"x": x}})
}

#[test]
fn ordinary_schemas_have_no_problems() {
    for value in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": ["object", "null"], "properties": {}}),
        json!({"properties": {"city": {"type": "string"}}, "required": ["city"]}),
        json!({"anyOf": [{"type": "object"}, {"type": "string"}]}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
               "properties": {"x": {"type": "array", "items": [{"type": "string"}]}}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
               "properties": {"x": {"type": "array", "prefixItems": [{"type": "string"}]}}}),
        json!({"$id": "https://example.com/a.json", "type": "object", "properties": {"x": {"$ref": "#/$defs/a"}},
               "$defs": {"a": {"type": "string"}}}),
        with(json!({"type": "string", "format": "made-up", "default": "a", "enum": ["a", "b"]})),
        with(
            json!({"type": "string", "x-order": 1, "discriminator": {"propertyName": "k"}, "example": "a"}),
        ),
    ] {
        assert_eq!(found(&value), [""; 0], "{value}");
    }
}

#[test]
fn the_root_must_accept_an_object_i06() {
    for (value, expected) in [
        (json!({"type": "array"}), "schema-root /type"),
        (json!({"type": "string"}), "schema-root /type"),
        (json!({"type": ["string", "null"]}), "schema-root /type"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            "schema-root ",
        ),
        (
            json!({"allOf": [{"type": "object"}, {"type": "null"}]}),
            "schema-root ",
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}}),
            "schema-root ",
        ),
        (json!({"enum": ["a"]}), "schema-root "),
        (json!({"const": 1}), "schema-root "),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}}),
            "schema-root ",
        ),
        (json!([]), "schema-root "),
        (json!(null), "schema-root "),
        (json!("{\"type\": \"object\"}"), "schema-root "),
        (json!("object"), "schema-root "),
        (json!(1), "schema-root "),
        (json!(false), "schema-root "),
        (json!(true), "schema-empty "),
        (json!({}), "schema-empty "),
    ] {
        assert_eq!(found(&value), [expected], "{value}");
    }
    assert!(!schema(&json!({}))[0].is_error());
}

#[test]
fn the_draft_is_the_stated_one_i08() {
    let items = json!({"type": "array", "items": [{"type": "string"}]});
    let problems = schema(&with(items));
    assert_eq!(problems[0].code.name, "schema-other-draft");
    assert_eq!(problems[0].pointer, "/properties/x/items");
    assert!(problems[0].help.as_ref().unwrap().contains("draft-07"));

    assert_eq!(
        found(&json!({"$schema": "https://example.com/mine", "type": "object"})),
        ["schema-draft-unknown /$schema"]
    );
    assert_eq!(
        found(&json!({"$schema": "file:///etc/passwd", "type": "object"})),
        ["schema-draft-unknown /$schema"]
    );
    assert_eq!(
        found(&json!({"$schema": 7, "type": "object"})),
        ["schema-draft-unknown /$schema"]
    );
    // Draft-04's form of the bound.
    assert_eq!(
        found(&with(
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true})
        )),
        ["schema-other-draft /properties/x/exclusiveMinimum"]
    );
    // A subschema cannot change it.
    assert_eq!(
        found(&with(
            json!({"$schema": "http://json-schema.org/draft-07/schema#"})
        )),
        ["schema-other-draft /properties/x/$schema"]
    );
}

#[test]
fn nothing_but_local_references_i09() {
    for target in [
        "http://169.254.169.254/latest",
        "https://json-schema.org/draft/2020-12/schema",
        "file:///etc/passwd",
        "../x.json",
        "x.json#/a",
        "/etc/passwd",
        "",
        "urn:uuid:deadbeef",
    ] {
        assert_eq!(
            found(&with(json!({"$ref": target}))),
            ["schema-ref-remote /properties/x/$ref"],
            "{target}"
        );
    }
    // Even where an `$id` would make it local.
    assert_eq!(
        found(
            &json!({"$id": "https://example.com/a.json", "type": "object",
                      "properties": {"x": {"$ref": "a.json#/$defs/b"}, "y": {"$ref": "https://example.com/a.json"}},
                      "$defs": {"b": {}}})
        ),
        [
            "schema-ref-remote /properties/x/$ref",
            "schema-ref-remote /properties/y/$ref"
        ]
    );
    assert_eq!(
        found(&with(json!({"$dynamicRef": "http://example.com/x"}))),
        ["schema-ref-remote /properties/x/$dynamicRef"]
    );
    // A property that happens to be called `$ref` is none, nor is data.
    assert_eq!(
        found(&json!({"type": "object", "properties": {"$ref": {"type": "string"}}})),
        [""; 0]
    );
    assert_eq!(
        found(&with(json!({"const": {"$ref": "http://example.com/x"}}))),
        [""; 0]
    );
}

#[test]
fn local_references_resolve_i11() {
    let defs =
        json!({"a/b": {"type": "string"}, "c%d": {"type": "string"}, "e~f": {"$anchor": "here"}});
    for (target, ok) in [
        ("#/$defs/a~1b", true),
        ("#/$defs/c%25d", true),
        ("#/$defs/e~0f", true),
        ("#here", true),
        ("#", true),
        ("#/$defs/a~2b", false),
        ("#/$defs/a/b", false),
        ("#/$defs/Missing", false),
        ("#/definitions/X", false),
        ("#there", false),
        ("#%zz", false),
        ("#/type", false),
        ("#/required", false),
    ] {
        let value = json!({"type": "object", "properties": {"x": {"$ref": target}}, "$defs": defs});
        let expected: &[&str] = if ok {
            &[]
        } else {
            &["schema-ref-dangling /properties/x/$ref"]
        };
        assert_eq!(found(&value), expected, "{target}");
    }
}

#[test]
fn a_reference_inside_an_id_counts_from_there() {
    let inner = json!({"$id": "https://example.com/inner", "type": "object",
                       "properties": {"y": {"$ref": "#/$defs/only-inside"}},
                       "$defs": {"only-inside": {"type": "string"}}});
    assert_eq!(found(&with(inner)), [""; 0]);
    let outer = json!({"type": "object", "$defs": {"outside": {"type": "string"}},
                       "properties": {"x": {"$id": "https://example.com/inner", "$ref": "#/$defs/outside"}}});
    assert_eq!(found(&outer), ["schema-ref-dangling /properties/x/$ref"]);
}

#[test]
fn what_only_a_reference_reaches_is_checked_too() {
    let value = json!({"type": "object", "properties": {"x": {"$ref": "#/components/X"}},
                       "components": {"X": {"type": "strng", "pattern": "["}}});
    assert_eq!(
        found(&value),
        [
            "schema-invalid /components/X/type",
            "schema-regex /components/X/pattern"
        ]
        .iter()
        .rev()
        .copied()
        .collect::<Vec<_>>()
    );
}

#[test]
fn recursion_is_fine_and_a_pure_loop_is_not_i10() {
    for value in [
        with(json!({"$ref": "#"})),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}},
               "$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/B"}}},
                         "B": {"properties": {"a": {"$ref": "#/$defs/A"}}}}}),
        with(json!({"type": "array", "items": {"$ref": "#/properties/x"}})),
    ] {
        assert_eq!(found(&value), [""; 0], "{value}");
    }
    assert_eq!(found(&json!({"$ref": "#"})), ["schema-loop /$ref"]);
    assert_eq!(
        found(&json!({"allOf": [{"$ref": "#"}]})),
        ["schema-loop /allOf/0/$ref"]
    );
    let mutual = found(
        &json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}}}),
    );
    assert_eq!(mutual.len(), 1, "{mutual:?}");
    assert!(mutual[0].starts_with("schema-loop /$defs/"), "{mutual:?}");
}

#[test]
fn a_long_chain_of_references_needs_no_stack() {
    let mut defs = serde_json::Map::new();
    for index in 0..3000 {
        defs.insert(
            format!("d{index}"),
            json!({"$ref": format!("#/$defs/d{}", (index + 1) % 3000)}),
        );
    }
    let value =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    let problems = found(&value);
    assert_eq!(problems.len(), 1, "{:?}", &problems[..1]);
    assert!(problems[0].starts_with("schema-loop "));
}

#[test]
fn patterns_compile_or_are_errors_i12() {
    for pattern in [
        r"^\d{5}$",
        "^(?=.*a)",
        r"\p{L}+",
        "(a+)+$",
        r"(a)\1",
        r"^[\w-]+$",
        r"\u00e4",
        r"^\/x",
    ] {
        assert_eq!(
            found(&with(json!({"type": "string", "pattern": pattern}))),
            [""; 0],
            "{pattern}"
        );
    }
    for pattern in ["[", "(", "*a", "a{2,1}", "((((a{100}){100}){100}){100})"] {
        assert_eq!(
            found(&with(json!({"type": "string", "pattern": pattern}))),
            ["schema-regex /properties/x/pattern"],
            "{pattern}"
        );
    }
    let problems = schema(&with(json!({"patternProperties": {"a/[": {}}})));
    assert_eq!(problems[0].pointer, "/properties/x/patternProperties/a~1[");
    assert!(problems[0].at_key);
}

#[test]
fn an_evil_pattern_is_given_up_not_followed_i12() {
    let text = format!("{}b", "a".repeat(40));
    let value = with(json!({"type": "string", "pattern": r"^(a+)+\1?$", "default": text}));
    assert_eq!(
        found(&value),
        ["schema-default-mismatch /properties/x/default"]
    );
}

#[test]
fn keywords_of_the_wrong_type_are_errors_with_their_place_i14() {
    for (x, expected) in [
        (
            json!({"type": "strng"}),
            "schema-invalid /properties/x/type",
        ),
        (
            json!({"required": true}),
            "schema-invalid /properties/x/required",
        ),
        (
            json!({"required": "city"}),
            "schema-invalid /properties/x/required",
        ),
        (
            json!({"required": ["a", 1]}),
            "schema-invalid /properties/x/required/1",
        ),
        (
            json!({"additionalProperties": "false"}),
            "schema-invalid /properties/x/additionalProperties",
        ),
        (
            json!({"minimum": "1"}),
            "schema-invalid /properties/x/minimum",
        ),
        (json!({"enum": "a"}), "schema-invalid /properties/x/enum"),
        (
            json!({"properties": {"city": "string"}}),
            "schema-invalid /properties/x/properties/city",
        ),
        (
            json!({"properties": []}),
            "schema-invalid /properties/x/properties",
        ),
        (
            json!({"minLength": -1}),
            "schema-invalid /properties/x/minLength",
        ),
        (
            json!({"minLength": 1.5}),
            "schema-invalid /properties/x/minLength",
        ),
        (json!({"anyOf": []}), "schema-invalid /properties/x/anyOf"),
        (json!({"anyOf": {}}), "schema-invalid /properties/x/anyOf"),
        (json!({"$ref": 1}), "schema-invalid /properties/x/$ref"),
        (json!("string"), "schema-invalid /properties/x"),
        (json!(null), "schema-invalid /properties/x"),
    ] {
        let problems: Vec<String> = schema(&with(x.clone()))
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| format!("{} {}", problem.code.name, problem.pointer))
            .collect();
        assert_eq!(problems, [expected], "{x}");
    }
}

#[test]
fn the_cure_is_named() {
    let cure = |value: &Value| {
        let problem = schema(value).remove(0);
        (
            problem.message,
            problem.help.unwrap_or_default(),
            problem.suggestion,
        )
    };
    let (message, _, suggestion) =
        cure(&json!({"type": "object", "properties": {"city": "string"}}));
    assert_eq!(suggestion.as_deref(), Some("{type: string}"));
    assert!(message.contains("`city`"), "{message}");
    assert_eq!(
        cure(&with(json!({"type": "strng"}))).2.as_deref(),
        Some("string")
    );
    assert_eq!(
        cure(&with(json!({"type": "int"}))).2.as_deref(),
        Some("integer")
    );
    assert_eq!(cure(&with(json!({"minimum": "1"}))).2.as_deref(), Some("1"));
    assert!(
        cure(&with(json!({"required": true})))
            .1
            .contains("list the name")
    );
    let (_, help, _) = cure(&json!({"type": "object", "properties": {"type": "object"}}));
    assert!(help.contains("move it out"), "{help}");
}

#[test]
fn all_problems_are_listed_not_only_the_first_k10() {
    let value = json!({"type": "object", "properties": {
        "a": {"type": "strng"}, "b": {"$ref": "#/nope"}, "c": {"pattern": "["}, "d": {"minimum": "1"}}});
    assert_eq!(
        found(&value),
        [
            "schema-invalid /properties/a/type",
            "schema-ref-dangling /properties/b/$ref",
            "schema-regex /properties/c/pattern",
            "schema-invalid /properties/d/minimum",
        ]
    );
}

#[test]
fn what_is_legal_but_not_meant_is_a_warning_i13() {
    for (value, place, suggestion) in [
        (
            json!({"type": "object", "propertis": {}}),
            "/propertis",
            "properties",
        ),
        (
            json!({"type": "object", "require": ["x"]}),
            "/require",
            "required",
        ),
        (
            json!({"type": "object", "additional_properties": false}),
            "/additional_properties",
            "additionalProperties",
        ),
        (
            with(json!({"minlength": 1})),
            "/properties/x/minlength",
            "minLength",
        ),
        (
            with(json!({"descripton": "x"})),
            "/properties/x/descripton",
            "description",
        ),
        (with(json!({"ref": "#"})), "/properties/x/ref", "$ref"),
    ] {
        let problems = schema(&value);
        assert_eq!(problems.len(), 1, "{value}: {problems:?}");
        assert_eq!(problems[0].code.name, "schema-keyword-misspelt");
        assert_eq!(
            (problems[0].pointer.as_str(), problems[0].at_key),
            (place, true)
        );
        assert_eq!(problems[0].suggestion.as_deref(), Some(suggestion));
        assert!(!problems[0].is_error());
    }
    assert_eq!(
        found(&json!({"type": "object", "city": {"type": "string"}})),
        ["schema-keyword-misplaced /city"]
    );
}

#[test]
fn a_required_name_that_is_not_declared_is_a_warning() {
    let value = json!({"type": "object", "required": ["citty"], "properties": {"city": {}}});
    let problems = schema(&value);
    assert_eq!(found(&value), ["schema-required-undeclared /required/0"]);
    assert_eq!(problems[0].suggestion.as_deref(), Some("city"));
    for fine in [
        json!({"type": "object", "properties": {"a": {}, "b": {}},
               "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"type": "object", "required": ["a"], "allOf": [{"$ref": "#/$defs/A"}],
               "$defs": {"A": {"properties": {"a": {}}}}}),
        json!({"type": "object", "required": ["a"], "patternProperties": {"^a": {}}}),
        json!({"type": "object", "required": ["a"], "additionalProperties": {"type": "string"}}),
        json!({"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"a": {}}}],
               "$defs": {"A": {"required": ["a"]}}}),
    ] {
        assert_eq!(found(&fine), [""; 0], "{fine}");
    }
}

#[test]
fn a_default_that_its_own_schema_refuses_is_a_warning() {
    for (x, refused) in [
        (json!({"type": "string", "default": null}), true),
        (json!({"type": ["string", "null"], "default": null}), false),
        (json!({"type": "integer", "default": 1.0}), false),
        (json!({"type": "integer", "default": 1.5}), true),
        (
            json!({"type": "string", "enum": ["a"], "default": "b"}),
            true,
        ),
        (
            json!({"type": "string", "minLength": 2, "default": "b"}),
            true,
        ),
        (
            json!({"type": "string", "format": "email", "default": "no"}),
            false,
        ),
        (json!({"$ref": "#/$defs/n~1%25", "default": "a"}), true),
        (json!({"$ref": "#/$defs/n~1%25", "default": 1}), false),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}),
            false,
        ),
    ] {
        let value = json!({"type": "object", "properties": {"x/%": x}, "$defs": {"n/%": {"type": "number"}}});
        let value: Value = serde_json::from_str(
            &value
                .to_string()
                .replace("%25", "%2525")
                .replace("n~1%2525", "n~1%25"),
        )
        .unwrap();
        let expected: &[&str] = if refused {
            &["schema-default-mismatch /properties/x~1%/default"]
        } else {
            &[]
        };
        assert_eq!(found(&value), expected, "{value}");
    }
}

#[test]
fn numbers_among_strings_are_an_error_a03() {
    assert_eq!(
        found(&with(json!({"type": "string", "enum": [1.1, 1.9]}))),
        [
            "schema-enum-type /properties/x/enum/0",
            "schema-enum-type /properties/x/enum/1"
        ]
    );
    assert_eq!(
        found(&with(json!({"type": "string", "enum": ["a", null]}))),
        [""; 0]
    );
    for (types, problems) in [
        (json!(["string", "null"]), 1),
        (json!(["string", "number"]), 0),
    ] {
        let value = with(json!({"type": types, "enum": ["a", 1.1]}));
        assert_eq!(schema(&value).len(), problems, "{value}");
    }
}

#[test]
fn references_that_fan_out_or_go_on_for_too_long_are_refused() {
    let mut fan = serde_json::Map::new();
    let mut chain = serde_json::Map::new();
    for index in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
        fan.insert(format!("d{index}"), json!({"allOf": [next, next]}));
    }
    fan.insert("d40".to_owned(), json!({"type": "string"}));
    for index in 0..1_000 {
        chain.insert(
            format!("d{index}"),
            json!({"$ref": format!("#/$defs/d{}", index + 1)}),
        );
    }
    chain.insert("d1000".to_owned(), json!({"type": "string"}));
    for defs in [fan, chain] {
        let value = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0", "default": "a"}},
                           "$defs": defs});
        let problems = schema(&value);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].code.name, "schema-too-large");
        assert!(problems[0].pointer.starts_with("/$defs/d"));
    }
}

#[test]
fn a_chain_within_the_bound_can_be_followed_at_every_level() {
    let mut defs = serde_json::Map::new();
    for index in 0..30 {
        defs.insert(
            format!("d{index:02}"),
            json!({"$ref": format!("#/$defs/d{:02}", index + 1)}),
        );
    }
    let deepest = (0..40).fold(json!(1), |inner, _| json!({"x": inner}));
    defs.insert(
        "d30".to_owned(),
        json!({"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#/$defs/d05"}, {"type": "integer"}]}}}),
    );
    let value = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d05", "default": deepest}}, "$defs": defs});
    assert_eq!(found(&value), [""; 0]);
}

#[test]
fn too_many_patterns_are_refused() {
    let large = |count: usize| {
        let properties: serde_json::Map<String, Value> = (0..count)
            .map(|index| {
                (
                    format!("p{index:02}"),
                    json!({"pattern": format!(r"^\p{{L}}{{1,100}}{index}$")}),
                )
            })
            .collect();
        json!({"type": "object", "properties": properties})
    };
    assert_eq!(found(&large(2)), [""; 0]);
    assert_eq!(
        found(&large(11)),
        ["schema-too-large /properties/p10/pattern"]
    );

    let value = |count: usize| {
        let patterns: serde_json::Map<String, Value> = (0..count)
            .map(|index| (format!("^{index}$"), json!({})))
            .collect();
        with(json!({"patternProperties": patterns}))
    };
    assert_eq!(found(&value(200)), [""; 0]);
    assert_eq!(found(&value(201)).len(), 1);
}

#[test]
fn the_bounds_hold_i16() {
    let deep = |levels: usize| {
        (1..levels).fold(json!({"type": "object"}), |inner, level| {
            if level % 2 == 1 {
                json!({"x": inner})
            } else {
                json!({"properties": inner})
            }
        })
    };
    assert!(
        found(&deep(63))
            .iter()
            .all(|found| !found.contains("large"))
    );
    assert_eq!(found(&deep(65)), ["schema-too-large "]);

    let wide = |count: usize| with(json!({"enum": (0..count).collect::<Vec<_>>()}));
    assert_eq!(found(&wide(9_990)), [""; 0]);
    assert_eq!(found(&wide(10_000)), ["schema-too-large "]);

    let long = |bytes: usize| with(json!({"description": "x".repeat(bytes)}));
    assert_eq!(found(&long(1_048_000)), [""; 0]);
    assert_eq!(found(&long(1_048_577)), ["schema-too-large "]);
}

#[test]
fn nothing_from_a_schema_can_bring_the_check_down() {
    let mut deep = json!(1);
    for _ in 0..2_000 {
        deep = Value::Array(vec![deep]);
    }
    let mut value = json!({"type": "object"});
    value["x"] = deep;
    assert_eq!(found(&value), ["schema-too-large "]);
}

#[test]
fn what_is_wrong_inside_a_schema_is_placed_inside_it_in_every_draft() {
    let draft7 = "http://json-schema.org/draft-07/schema#";
    assert_eq!(
        found(&json!({"$schema": draft7, "type": "object",
                      "properties": {"x": {"items": {"items": {"type": "strng"}}}}})),
        ["schema-invalid /properties/x/items/items/type"]
    );
    // Old drafts do not look below `$defs`; that does not make the type one of theirs.
    assert_eq!(
        found(&json!({"type": "object", "$defs": {"a": {"type": "strng"}}})),
        ["schema-invalid /$defs/a/type"]
    );
}

#[test]
fn what_models_refuse_is_a_warning_at_its_place() {
    for (value, expected) in [
        (with(json!({"type": "array"})), vec!["/properties/x"]),
        (
            with(json!({"type": "object", "properties": {"a b": {}, "$ref": {}}})),
            vec![
                "/properties/x/properties/$ref",
                "/properties/x/properties/a b",
            ],
        ),
        (
            json!({"type": "object", "properties": {"n".repeat(65): {}}}),
            vec!["/properties/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"],
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "oneOf": [{"required": ["a"]}], "not": {"required": ["a"]}}),
            vec!["/not", "/oneOf"],
        ),
        (json!({"type": ["object", "null"]}), vec!["/type"]),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
            vec!["/$ref"],
        ),
    ] {
        let expected: Vec<String> = expected
            .into_iter()
            .map(|pointer| format!("schema-for-models {pointer}"))
            .collect();
        assert_eq!(all(&value), expected, "{value}");
    }
    for value in [
        json!({"type": "object"}),
        json!({"properties": {"a.b-c_D1": {}}}),
        with(json!({"type": "array", "items": {}})),
        with(json!({"type": "array", "prefixItems": [{}]})),
        with(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
    ] {
        assert_eq!(all(&value), [""; 0], "{value}");
    }
}

#[test]
fn nullable_is_of_another_language() {
    assert_eq!(
        found(&with(json!({"type": "string", "nullable": true}))),
        ["schema-keyword-misspelt /properties/x/nullable"]
    );
}
