//! T1–T4 and D1.

use super::{Case, Files::*, Rule};

/// A tool whose schema is on line 6 from column 19.
macro_rules! schema {
    ($schema:literal) => {
        Capability(concat!(
            "tools:\n  - name: forecast\n    description: Tells\n    input_schema: ",
            $schema,
            "\n"
        ))
    };
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "T1",
        passing: &[Capability(
            "tools:\n  - {name: a, description: b, input_schema: {type: object}, requires_confirmation: true, recommended_policy: ask}\n",
        )],
        failing: &[Case(
            Capability(
                "tools:\n  - name: a\n    description: b\n    input_schema: {type: object}\n    requires_confirmation: true\n    recommended_policy: allow\n",
            ),
            &["SELU0315 manifest.yaml:7:28"],
        )],
    },
    Rule {
        id: "T2",
        passing: &[Capability(
            "tools:\n  - {name: get_weather-2, description: b, input_schema: {type: object}}\n",
        )],
        failing: &[
            Case(
                Capability(
                    "tools:\n  - {name: get weather, description: b, input_schema: {type: object}}\n",
                ),
                &["SELU0401 manifest.yaml:4:12"],
            ),
            Case(
                Capability(
                    "tools:\n  - {name: get.weather, description: b, input_schema: {type: object}}\n",
                ),
                &["SELU0402 manifest.yaml:4:12"],
            ),
            Case(
                Capability(
                    "tools:\n  - {name: a, description: \"\", input_schema: {type: object}}\n",
                ),
                &["SELU0403 manifest.yaml:4:28"],
            ),
            Case(
                Capability(
                    "tools:\n  - {name: a, description: b, input_schema: {type: object}}\n  - {name: a, description: b, input_schema: {type: object}}\n",
                ),
                &["SELU0314 manifest.yaml:5:12"],
            ),
        ],
    },
    Rule {
        id: "T3",
        passing: &[
            schema!("{type: object, properties: {city: {type: string}}, required: [city]}"),
            schema!(
                "{properties: {tree: {$ref: \"#/$defs/tree\"}}, $defs: {tree: {type: object, properties: {left: {$ref: \"#/$defs/tree\"}}}}}"
            ),
            schema!(
                "{$schema: \"http://json-schema.org/draft-07/schema#\", type: object, properties: {xs: {type: array, items: [{type: string}]}}}"
            ),
            schema!(
                "{type: object, properties: {x: {type: string, pattern: \"^(?=.*a)\\\\p{L}+$\", format: anything}}}"
            ),
        ],
        failing: &[
            Case(schema!("{type: objekt}"), &["SELU0411 manifest.yaml:6:26"]),
            Case(
                schema!("{type: object, properties: {city: string}}"),
                &["SELU0411 manifest.yaml:6:53"],
            ),
            Case(schema!("{type: array}"), &["SELU0412 manifest.yaml:6:26"]),
            Case(schema!("false"), &["SELU0412 manifest.yaml:6:19"]),
            Case(schema!("\"{}\""), &["SELU0412 manifest.yaml:6:19"]),
            Case(schema!("{}"), &["SELU0413 manifest.yaml:6:5"]),
            Case(
                schema!("{$schema: \"https://example.com/mine\", type: object}"),
                &["SELU0414 manifest.yaml:6:29"],
            ),
            Case(
                schema!("{type: object, properties: {xs: {type: array, items: [{type: string}]}}}"),
                &["SELU0415 manifest.yaml:6:65"],
            ),
            Case(
                schema!("{type: object, properties: {x: {$ref: \"https://example.com/x.json\"}}}"),
                &["SELU0416 manifest.yaml:6:57"],
            ),
            Case(
                schema!("{type: object, properties: {x: {$ref: \"#/$defs/Missing\"}}}"),
                &["SELU0417 manifest.yaml:6:57"],
            ),
            Case(schema!("{$ref: \"#\"}"), &["SELU0418 manifest.yaml:6:26"]),
            Case(
                schema!("{type: object, properties: {x: {type: string, pattern: \"[\"}}}"),
                &["SELU0419 manifest.yaml:6:74"],
            ),
            Case(
                schema!("{type: object, properties: {n: {type: integer, default: one}}}"),
                &["SELU0421 manifest.yaml:6:75"],
            ),
            Case(
                schema!("{type: object, properties: {city: {type: string}}, required: [citty]}"),
                &["SELU0422 manifest.yaml:6:81"],
            ),
            Case(
                schema!("{type: object, propertis: {}}"),
                &["SELU0423 manifest.yaml:6:34"],
            ),
            Case(
                schema!("{type: object, city: {type: string}}"),
                &["SELU0424 manifest.yaml:6:34"],
            ),
            Case(
                schema!("{type: object, properties: {v: {type: string, enum: [1.10]}}}"),
                &["SELU0217 manifest.yaml:6:72", "SELU0425 manifest.yaml:6:72"],
            ),
            Case(
                schema!("{type: object, properties: {s: {type: string, nullable: true}}}"),
                &["SELU0423 manifest.yaml:6:65"],
            ),
            Case(
                schema!(
                    "{type: object, anyOf: [{required: [a]}, {required: [b]}], properties: {a: {type: string}, b: {type: string}}}"
                ),
                &["SELU0426 manifest.yaml:6:34"],
            ),
            Case(
                schema!(
                    "{type: object, properties: {days: {type: array}, \"a b\": {type: string}}}"
                ),
                &["SELU0426 manifest.yaml:6:47", "SELU0426 manifest.yaml:6:68"],
            ),
            Case(
                schema!("{type: [object, \"null\"]}"),
                &["SELU0426 manifest.yaml:6:20"],
            ),
            Case(
                schema!("{$ref: \"#/$defs/a\", $defs: {a: {type: object}}}"),
                &["SELU0426 manifest.yaml:6:20"],
            ),
        ],
    },
    Rule {
        id: "T4",
        passing: &[Discovery(
            "[{\"name\": \"a\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}}]",
        )],
        failing: &[
            Case(
                Capability(
                    "tool_source: dynamic\ntools:\n  - {name: list_tools, description: b, input_schema: {type: object}}\n",
                ),
                &["SELU0309 manifest.yaml:4:1"],
            ),
            Case(
                Discovery(
                    "[{\"name\": \"list_tools\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}}]",
                ),
                &["SELU1206 /0/name"],
            ),
        ],
    },
    Rule {
        id: "D1",
        passing: &[Discovery(
            "[{\"name\": \"a\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}, \"recommended_policy\": \"ask\"}]",
        )],
        failing: &[
            Case(Discovery("{}"), &["SELU1201 "]),
            Case(
                Discovery("[{\"name\": \"a\"}]"),
                &["SELU1204 /0", "SELU1204 /0"],
            ),
            Case(
                Discovery(
                    "[{\"name\": \"a\", \"name\": \"b\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}}]",
                ),
                &["SELU1203 /0/name"],
            ),
            Case(
                Discovery(
                    "[{\"name\": \"a\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}}, {\"name\": \"a\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}}]",
                ),
                &["SELU1205 /1/name"],
            ),
            Case(
                Discovery(
                    "[{\"name\": \"a\", \"description\": \"b\", \"input_schema\": {\"type\": \"object\"}, \"required\": [\"c\"]}]",
                ),
                &["SELU1207 /0/required"],
            ),
            Case(
                Discovery(
                    "[{\"name\": \"a\", \"description\": \"\", \"input_schema\": {\"type\": \"object\"}, \"recommended_policy\": \"maybe\", \"extra\": 1}]",
                ),
                &[
                    "SELU0403 /0/description",
                    "SELU1208 /0/recommended_policy",
                    "SELU1209 /0/extra",
                ],
            ),
        ],
    },
];
