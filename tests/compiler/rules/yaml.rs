//! L5: how scalars, keys and documents are read.

use super::{Case, Files::*, Rule};

pub(crate) const RULES: &[Rule] = &[Rule {
    id: "L5",
    passing: &[
        Capability("class: &c tool\nx-more: *c\nx-base: &base {a: 1}\nx-merged: {<<: *base}\n"),
        Manifest("\u{feff}id: weather\r\nimage: example.com/weather:1\r\n"),
        Capability("network:\ncredentials:\ntools:\n"),
        Capability(
            "tools:\n  - name: a\n    description: b\n    input_schema: {type: object, properties: {a: {enum: [yes, no]}}}\n",
        ),
        Capability("resources: {max_cpu_fraction: 0.5}\n"),
    ],
    failing: &[
        Case(Manifest("id: [\n"), &["SELU0201 manifest.yaml:1:5"]),
        Case(
            Capability("class: tool\nclass: tool\n"),
            &["SELU0202 manifest.yaml:4:1"],
        ),
        Case(
            Capability("x-a: {b: {c: 1, c: 2}}\n"),
            &["SELU0202 manifest.yaml:3:17"],
        ),
        Case(
            Capability("---\nid: other\n"),
            &["SELU0203 manifest.yaml:3:1"],
        ),
        Case(
            Capability("class: !tool x\n"),
            &["SELU0204 manifest.yaml:3:8"],
        ),
        Case(
            Capability("x-a:\n  1: one\n"),
            &["SELU0205 manifest.yaml:4:3"],
        ),
        Case(
            Capability("network:\n\tmode: none\n"),
            &["SELU0212 manifest.yaml:4:1"],
        ),
        Case(
            Manifest("id: 123\nimage: example.com/weather:1\n"),
            &["SELU0213 manifest.yaml:1:5"],
        ),
        Case(
            Manifest("id: weather\nimage: 1.10\n"),
            &["SELU0213 manifest.yaml:2:8"],
        ),
        Case(
            Manifest("id: ~\nimage: example.com/weather:1\n"),
            &["SELU0213 manifest.yaml:1:5"],
        ),
        Case(
            Manifest("id: no\nimage: example.com/weather:1\n"),
            &["SELU0213 manifest.yaml:1:5"],
        ),
        Case(
            Capability("resources:\n  max_memory_mb: 0128\n"),
            &["SELU0214 manifest.yaml:4:18"],
        ),
        Case(
            Capability("resources:\n  max_memory_mb: 1_024\n"),
            &["SELU0214 manifest.yaml:4:18"],
        ),
        Case(
            Capability("resources:\n  pids_limit: 1e3\n"),
            &["SELU0214 manifest.yaml:4:15"],
        ),
        Case(
            Capability("resources:\n  max_cpu_fraction: 0,5\n"),
            &["SELU0214 manifest.yaml:4:21"],
        ),
        Case(Capability("class:\n"), &["SELU0215 manifest.yaml:3:1"]),
        Case(Manifest(""), &["SELU0210 manifest.yaml:0:0"]),
        Case(
            Capability("x-a: *nothing\n"),
            &["SELU0211 manifest.yaml:3:6"],
        ),
        Case(
            Capability("x-a: {<<: 1}\n"),
            &["SELU0209 manifest.yaml:3:11"],
        ),
        Case(
            Capability("network:\n  mode: allowlist\n  hosts: [*.example.com:443]\n"),
            &["SELU0211 manifest.yaml:5:11"],
        ),
        Case(
            Capability(
                "tools:\n  - name: a\n    description: b\n    input_schema: {type: object, properties: {n: {type: number, maximum: .inf}}}\n",
            ),
            &["SELU0216 manifest.yaml:6:74"],
        ),
        Case(
            Capability(
                "tools:\n  - name: a\n    description: b\n    input_schema: {type: object, properties: {n: {type: number, maximum: 0.1234567890123456789}}}\n",
            ),
            &["SELU0217 manifest.yaml:6:74"],
        ),
        Case(
            Capability(
                "tools:\n  - name: a\n    description: b\n    input_schema: {type: object, properties: {n: {type: integer, maximum: 0128}}}\n",
            ),
            &["SELU0217 manifest.yaml:6:75"],
        ),
        Case(
            Capability(
                "tools:\n  - name: a\n    description: b\n    input_schema: {type: object, properties: {n: {default: 0b11}}}\n",
            ),
            &["SELU0218 manifest.yaml:6:60"],
        ),
    ],
}];
