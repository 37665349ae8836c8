//! YAML itself (L5): SELU0201–SELU0299.

use crate::diag::{Code, Severity};

/// The codes of this family.
pub static ALL: &[&Code] = &[
    &SYNTAX,
    &DUPLICATE_KEY,
    &SEVERAL_DOCUMENTS,
    &TAG,
    &KEY_NOT_STRING,
    &TOO_DEEP,
    &TOO_MANY_VALUES,
    &BAD_MERGE,
    &EMPTY,
    &BAD_ALIAS,
    &TAB,
    &QUOTE_IT,
    &NUMBER_FORM,
    &NOTHING,
    &NOT_JSON,
    &NUMBER_REWRITTEN,
    &AMBIGUOUS,
];

/// `yaml-syntax`.
pub static SYNTAX: Code = Code {
    id: "SELU0201",
    name: "yaml-syntax",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "The text is not YAML, so nothing of the file can be read.",
    cure: "Fix the line that the message names. Most often a quote or bracket is not closed, or the indentation differs from the line above.",
    example: "id: weather
image: example.com/weather:1
tools: [
",
};

/// `duplicate-key`.
pub static DUPLICATE_KEY: Code = Code {
    id: "SELU0202",
    name: "duplicate-key",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A mapping holds the same key twice. YAML readers keep one of the two without a word, and it may be the laxer one.",
    cure: "Remove one of the two, or merge what they hold.",
    example: "id: weather
image: example.com/weather:1
network:
  mode: none
network:
  mode: any
",
};

/// `several-documents`.
pub static SEVERAL_DOCUMENTS: Code = Code {
    id: "SELU0203",
    name: "several-documents",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A line with `---` starts a second document. Everything after it would be ignored. (One `---` before the content and a final `...` are fine.)",
    cure: "Remove the `---` line, or move what follows to a file of its own.",
    example: "id: weather
image: example.com/weather:1
---
id: other
",
};

/// `yaml-tag`.
pub static TAG: Code = Code {
    id: "SELU0204",
    name: "yaml-tag",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A tag such as `!secret` asks the reader to do something. Only YAML's own tags are known, and only where they fit the value.",
    cure: "Leave the tag out. For a string that looks like a number, use quotes.",
    example: "id: weather
image: !secret registry-image
",
};

/// `key-not-string`.
pub static KEY_NOT_STRING: Code = Code {
    id: "SELU0205",
    name: "key-not-string",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A key is a number, a boolean, null, a list or a mapping. Keys are strings; readers disagree about what such a key is called.",
    cure: "Quote the key.",
    example: "id: weather
image: example.com/weather:1
x-labels:
  1: one
",
};

/// `yaml-too-deep`.
pub static TOO_DEEP: Code = Code {
    id: "SELU0207",
    name: "yaml-too-deep",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "Values may be nested 128 levels deep, with aliases expanded.",
    cure: "Flatten the value.",
    example: "id: weather
image: example.com/weather:1
x-deep: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
",
};

/// `yaml-too-many-values`.
pub static TOO_MANY_VALUES: Code = Code {
    id: "SELU0208",
    name: "yaml-too-many-values",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A file may hold 250,000 values once aliases and merge keys are expanded. A small file whose aliases repeat each other grows without bound.",
    cure: "Do not nest aliases of large values in each other.",
    example: "id: weather\nimage: example.com/weather:1\nx-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nx-1: &a1 [*a0, *a0, *a0, *a0, *a0, *a0, *a0, *a0, *a0, *a0]\nx-2: &a2 [*a1, *a1, *a1, *a1, *a1, *a1, *a1, *a1, *a1, *a1]\nx-3: &a3 [*a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2]\nx-4: &a4 [*a3, *a3, *a3, *a3, *a3, *a3, *a3, *a3, *a3, *a3]\nx-5: &a5 [*a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4]\nx-6: &a6 [*a5, *a5, *a5, *a5, *a5, *a5, *a5, *a5, *a5, *a5]\n",
};

/// `bad-merge-key`.
pub static BAD_MERGE: Code = Code {
    id: "SELU0209",
    name: "bad-merge-key",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A merge key `<<` copies the entries of a mapping, or of several in a list. It was given something else.",
    cure: "Give it an alias of a mapping, such as `<<: *defaults`, or quote the key if `<<` is meant as a name.",
    example: "id: weather
image: example.com/weather:1
resources:
  <<: 128
",
};

/// `empty-file`.
pub static EMPTY: Code = Code {
    id: "SELU0210",
    name: "empty-file",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "The file holds no value: it is empty, or has comments only.",
    cure: "Write the fields that it needs, or remove the folder.",
    example: "# nothing yet
",
};

/// `bad-alias`.
pub static BAD_ALIAS: Code = Code {
    id: "SELU0211",
    name: "bad-alias",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A plain `*` starts an alias, which repeats a value with that anchor. There is no such anchor, or the alias would contain itself. Often a wildcard was meant.",
    cure: "Quote a text that starts with `*`, such as a wildcard host.",
    example: "id: weather
image: example.com/weather:1
network:
  mode: allowlist
  hosts:
    - *.example.com:443
",
};

/// `tab-indentation`.
pub static TAB: Code = Code {
    id: "SELU0212",
    name: "tab-indentation",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A tab indents a line, where its width is not defined and YAML forbids it, or follows a colon.",
    cure: "Use spaces.",
    example: "id: weather
image: example.com/weather:1
network:
	mode: none
",
};

/// `unquoted-string`.
pub static QUOTE_IT: Code = Code {
    id: "SELU0213",
    name: "unquoted-string",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "A field that holds a string was given a plain number, boolean, null, or one of yes, no, on and off. Readers disagree about what these are: `1.10` becomes 1.1 and `no` becomes false.",
    cure: "Quote it.",
    example: "id: 123
image: example.com/weather:1
",
};

/// `number-form`.
pub static NUMBER_FORM: Code = Code {
    id: "SELU0214",
    name: "number-form",
    severity: Severity::Error,
    rules: &["L5", "R5"],
    cause: "Numbers have one form: plain decimal digits, with a point where a fraction is allowed. `0128`, `0o200`, `1_024`, `1e3` and `0,5` mean different things to different readers.",
    cure: "Write the number as the message shows it.",
    example: "id: weather
image: example.com/weather:1
resources:
  max_memory_mb: 0128
",
};

/// `nothing-written`.
pub static NOTHING: Code = Code {
    id: "SELU0215",
    name: "nothing-written",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "There is nothing after the colon, or a null. An optional list or object then has its default; any other field needs a value.",
    cure: "Write a value, or remove the line.",
    example: "id: weather
image: example.com/weather:1
class:
",
};

/// `number-without-json-form`.
pub static NOT_JSON: Code = Code {
    id: "SELU0216",
    name: "number-without-json-form",
    severity: Severity::Error,
    rules: &["L5"],
    cause: "The number has no exact form in JSON: it is infinite, not a number, or too large. It would reach the model as something else.",
    cure: "Write a number between -9223372036854775808 and 18446744073709551615, or a string.",
    example: "id: weather
image: example.com/weather:1
tools:
  - name: forecast
    description: Tells the weather
    input_schema:
      type: object
      maximum: .inf
",
};

/// `number-rewritten`.
pub static NUMBER_REWRITTEN: Code = Code {
    id: "SELU0217",
    name: "number-rewritten",
    severity: Severity::Warning,
    rules: &["L5"],
    cause: "A plain number in a free-form value loses the form it is written in: `1.10` is the number 1.1. As a version, a code or an id it would be wrong.",
    cure: "Quote it if a text is meant; else write it in its plain form.",
    example: "id: weather
image: example.com/weather:1
tools:
  - name: forecast
    description: Tells the weather
    input_schema:
      type: object
      properties:
        version: {default: 1.10}
",
};

/// `ambiguous-scalar`.
pub static AMBIGUOUS: Code = Code {
    id: "SELU0218",
    name: "ambiguous-scalar",
    severity: Severity::Warning,
    rules: &["L5"],
    cause: "A plain scalar such as `0b11` or `-0x1F` in a free-form value is a text by YAML 1.2 and a number to some readers.",
    cure: "Quote it if a text is meant; else write the number in plain decimal.",
    example: "id: weather\nimage: example.com/weather:1\ntools:\n  - name: forecast\n    description: Tells the weather\n    input_schema:\n      type: object\n      properties:\n        flags: {default: 0b11}\n",
};
