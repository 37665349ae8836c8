//! The kinds of fault, as data.

use super::edit::Edit::{self, After, Body, Drop, Host, Indent, Key, Line, Twice, Value};

/// One kind of fault.
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    /// Where it can be made, as [`super::outline::Spot::matches`] reads it.
    pub(super) at: &'static str,
    pub(super) edit: Edit,
}

/// What must become of a mutant.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// One more finding with this code, on the line of the fault.
    Caught(&'static str),
    /// The same findings as before, for this reason.
    Harmless(&'static str),
}

const fn caught(code: &'static str, name: &'static str, at: &'static str, edit: Edit) -> Fault {
    Fault {
        name,
        outcome: Outcome::Caught(code),
        at,
        edit,
    }
}

const fn harmless(name: &'static str, at: &'static str, edit: Edit, reason: &'static str) -> Fault {
    Fault {
        name,
        outcome: Outcome::Harmless(reason),
        at,
        edit,
    }
}

/// A property of any schema.
const PROPERTY: &str = "tools.*.input_schema.properties.*";
/// A keyword of the root of a schema.
const ROOT_TYPE: &str = "tools.*.input_schema.type=object";
/// The type of a property that is a string.
const STRING: &str = "tools.*.input_schema.properties.*.type=string";

/// Every kind.
#[rustfmt::skip] // a table
pub(super) const FAULTS: &[Fault] = &[
    // YAML (L5).
    caught("tab-indentation", "tab before a key", "network.mode", Indent("\t")),
    caught("tab-indentation", "tab before a key of a schema", STRING, Indent("\t\t\t")),
    caught("several-documents", "second document", "filesystem", After("---\nid: other", 0)),
    caught("yaml-tag", "custom tag", "image", Value("!secret {v}")),
    caught("yaml-tag", "tag of another language", "filesystem", Value("!!python/object:x")),
    caught("yaml-syntax", "quote not closed", "filesystem", Value("\"{v}")),
    caught("yaml-syntax", "bracket not closed", "network", Value("[")),
    caught("yaml-syntax", "brace of a schema not closed", "tools.*.input_schema", Value("{type: object")),
    caught("yaml-syntax", "colon of a tool's name missing", "tools.*.name", Line("name {v}")),
    caught("yaml-syntax", "key indented too far", "image", Indent("   ")),
    caught("yaml-syntax", "colon missing", "class", Line("class {v}")),
    caught("yaml-syntax", "blank after the colon missing", "class", Line("class:{v}")),
    caught("bad-alias", "alias without anchor", "image", Value("*image")),
    caught("bad-alias", "wildcard host without quotes", "network", Host("*.example.com:443")),
    caught("bad-merge-key", "merge key without a mapping", "network.mode", After("<<: text", 0)),
    caught("duplicate-key", "field twice", "image", Twice),
    caught("duplicate-key", "block twice", "network", Twice),
    caught("duplicate-key", "property twice", PROPERTY, Twice),
    caught("duplicate-key", "keyword twice", STRING, Twice),
    caught("key-not-string", "number as a property's name", PROPERTY, Key("1")),
    caught("key-not-string", "null as a property's name", PROPERTY, Key("~")),
    caught("unquoted-string", "number as an id", "id", Value("123")),
    caught("unquoted-string", "number as an image", "image", Value("1.10")),
    caught("unquoted-string", "word of YAML 1.1 as a tool's name", "tools.*.name", Value("on")),
    caught("unquoted-string", "null as a description", "tools.*.description", Value("~")),
    caught("nothing-written", "nothing after the colon of an image", "image", Value("")),
    caught("nothing-written", "nothing after the colon of a scope", "credentials.*.scope", Value("")),
    caught("number-form", "leading zero", "filesystem", After("resources:\n  max_memory_mb: 0128", 1)),
    caught("number-form", "octal", "filesystem", After("resources:\n  max_memory_mb: 0o200", 1)),
    caught("number-form", "underscore in a number", "filesystem", After("resources:\n  max_memory_mb: 1_024", 1)),
    caught("number-form", "fraction for an integer", "filesystem", After("resources:\n  pids_limit: 64.0", 1)),
    caught("number-form", "exponent", "filesystem", After("resources:\n  pids_limit: 1e3", 1)),
    caught("number-form", "decimal comma", "filesystem", After("resources:\n  max_cpu_fraction: 0,5", 1)),
    caught("number-without-json-form", "infinite bound", STRING, After("maxLength: .inf", 0)),
    caught("number-rewritten", "version without quotes as a default", STRING, After("examples:\n- 1.10", 1)),
    // Fields (M).
    caught("missing-field", "no id", "id", Drop),
    caught("missing-field", "no image", "image", Drop),
    caught("missing-field", "tool without name", "tools.*.name", Drop),
    caught("missing-field", "tool without description", "tools.*.description", Drop),
    caught("missing-field", "tool without schema", "tools.*.input_schema", Drop),
    caught("missing-field", "credential without name", "credentials.*.name", Drop),
    caught("missing-field", "credential without scope", "credentials.*.scope", Drop),
    caught("wrong-type", "list of tools as a text", "tools", Value("search")),
    caught("wrong-type", "network as a word", "network", Value("any")),
    caught("wrong-type", "list of hosts as a text", "network", Body("mode: allowlist\nhosts: a.example:443", 2)),
    caught("wrong-type", "host split by a blank", "network", Host("api.example.com: 443")),
    caught("wrong-type", "image as a list", "image", Value("[a]")),
    caught("wrong-type", "no for false", "credentials.*.required", Value("no")),
    caught("wrong-type", "text for true", "credentials.*.required", Value("'true'")),
    caught("wrong-type", "text for a number", "filesystem", After("resources:\n  max_memory_mb: 128M", 1)),
    caught("not-one-of", "unknown class", "class", Value("tols")),
    caught("not-one-of", "capital in a word", "class", Value("Tool")),
    caught("not-one-of", "unknown network mode", "network.mode", Value("allowlst")),
    caught("not-one-of", "unknown filesystem", "filesystem", Value("tmp")),
    caught("not-one-of", "unknown source of tools", "tool_source", Value("dynamc")),
    caught("not-one-of", "unknown scope", "credentials.*.scope", Value("global")),
    caught("not-one-of", "unknown kind of credential", "credentials.*.scope", After("credential_type: oauth", 0)),
    caught("not-one-of", "unknown policy", "tools.*.description", After("recommended_policy: alow", 0)),
    caught("not-one-of", "unknown mode of sharing", "filesystem", After("sharing:\n  mode: share", 1)),
    caught("misspelt-field", "misspelt image", "image", Key("imgae")),
    caught("misspelt-field", "misspelt network", "network", Key("netwrok")),
    caught("misspelt-field", "misspelt filesystem", "filesystem", Key("file_system")),
    caught("misspelt-field", "misspelt credentials", "credentials", Key("credential")),
    caught("misspelt-field", "misspelt mode", "network.mode", Key("Mode")),
    caught("misspelt-field", "misspelt hosts", "network", Body("mode: allowlist\nhost:\n- a.example:443", 2)),
    caught("misspelt-field", "misspelt required", "credentials.*.required", Key("requried")),
    caught("misspelt-field", "misspelt scope", "credentials.*.scope", Key("scop")),
    caught("misspelt-field", "misspelt input_schema", "tools.*.input_schema", Key("inputSchema")),
    caught("misspelt-field", "misspelt recommended_policy", "tools.*.description", After("recomended_policy: ask", 0)),
    caught("misspelt-field", "misspelt limit", "filesystem", After("resources:\n  max_memory: 64", 1)),
    caught("misspelt-field", "misspelt resources", "filesystem", After("resourses:\n  pids_limit: 8", 0)),
    caught("misplaced-field", "required beside the schema", "tools.*.input_schema", After("required: [city]", 0)),
    caught("misplaced-field", "hosts at the top", "filesystem", After("hosts: ['a.example:443']", 0)),
    caught("misplaced-field", "limit at the top", "filesystem", After("max_memory_mb: 64", 0)),
    caught("misplaced-field", "policy at the top", "filesystem", After("recommended_policy: ask", 0)),
    caught("misplaced-field", "filesystem inside network", "network.mode", After("filesystem: none", 0)),
    caught("unknown-field", "field of another format", "filesystem", After("licence: MIT", 0)),
    caught("unknown-field", "field of a tool of another format", "tools.*.description", After("annotations: {}", 0)),
    caught("bad-id", "capital in the id", "id", Value("X{v}")),
    caught("bad-id", "underscore in the id", "id", Value("my_{v}")),
    caught("bad-id", "hyphen at the end of the id", "id", Value("{v}-")),
    caught("dynamic-with-tools", "dynamic with tools", "tools=[]", Body("- name: a\n  description: b\n  input_schema:\n    type: object", 0)),
    caught("workspace-needs-environment", "workspace of a stateless one", "filesystem", Value("workspace")),
    caught("cache-needs-environment", "cache of a stateless one", "class=tool", After("cache:\n  enabled: true", 1)),
    caught("shared-needs-stateless", "shared with a state", "class=environment", After("sharing:\n  mode: shared", 1)),
    caught("no-effect", "calls at once without sharing", "filesystem", After("sharing:\n  max_concurrent: 4", 1)),
    caught("duplicate-tool", "tool twice", "tools.*", Twice),
    caught("policy-disagrees", "two policies", "tools.*.description", After("recommended_policy: allow\nrequires_confirmation: true", 1)),
    caught("duplicate-credential", "credential twice", "credentials.*", Twice),
    // Limits (R).
    caught("out-of-range", "too little memory", "filesystem", After("resources:\n  max_memory_mb: 4", 1)),
    caught("out-of-range", "negative memory", "filesystem", After("resources:\n  max_memory_mb: -1", 1)),
    caught("out-of-range", "no cores", "filesystem", After("resources:\n  max_cpu_fraction: 0", 1)),
    caught("out-of-range", "no CPU time", "filesystem", After("resources:\n  max_cpu_seconds: 0", 1)),
    caught("out-of-range", "no processes", "filesystem", After("resources:\n  pids_limit: 0", 1)),
    caught("out-of-range", "no call at once", "filesystem", After("sharing:\n  mode: shared\n  max_concurrent: 0", 2)),
    caught("out-of-range", "empty text for an image", "image", Value("''")),
    // Tools and schemas (T).
    caught("tool-name-invalid", "blank in a tool's name", "tools.*.name", Value("get it")),
    caught("tool-name-for-models", "long name of a tool", "tools.*.name", Value("a_name_of_a_tool_that_is_longer_than_any_provider_takes_it_at_all")),
    caught("tool-description-empty", "empty description", "tools.*.description", Value("' '")),
    caught("schema-invalid", "misspelt type", "tools.*.input_schema.**.type=string", Value("strng")),
    caught("schema-invalid", "type of another language", "tools.*.input_schema.**.type=integer", Value("int")),
    caught("schema-invalid", "required as a flag", STRING, After("required: true", 0)),
    caught("schema-invalid", "required as a text", "tools.*.input_schema.required", Value("city")),
    caught("schema-invalid", "bound as a text", STRING, After("minLength: '1'", 0)),
    caught("schema-invalid", "flag as a text", ROOT_TYPE, After("additionalProperties: 'false'", 0)),
    caught("schema-invalid", "enum as a text", STRING, After("enum: a", 0)),
    caught("schema-invalid", "type in the place of a property's schema", PROPERTY, Value("string")),
    caught("schema-other-draft", "exclusive bound of draft 4", STRING, After("minimum: 1\nexclusiveMinimum: true", 1)),
    caught("schema-root", "list at the root", ROOT_TYPE, Value("array")),
    caught("schema-root", "false for a schema", "tools.*.input_schema", Value("false")),
    caught("schema-root", "JSON text for a schema", "tools.*.input_schema", Value("'{\"type\": \"object\"}'")),
    caught("schema-empty", "empty schema", "tools.*.input_schema", Value("{}")),
    caught("schema-draft-unknown", "unknown draft", "tools.*.input_schema.properties", After("$schema: https://example.com/draft", 0)),
    caught("schema-ref-remote", "remote reference", STRING, Line("$ref: http://169.254.169.254/x")),
    caught("schema-ref-remote", "reference to a file", STRING, Line("$ref: file:///etc/passwd")),
    caught("schema-ref-dangling", "reference to nowhere", STRING, Line("$ref: '#/$defs/Missing'")),
    caught("schema-loop", "reference to itself", ROOT_TYPE, After("$ref: '#'", 0)),
    caught("schema-regex", "pattern that does not compile", STRING, After("pattern: '['", 0)),
    caught("schema-enum-type", "enum of another type", STRING, After("enum: [1]", 0)),
    caught("schema-required-undeclared", "required name that is not declared", "tools.*.input_schema.required.*", Value("nowhere_to_be_found")),
    caught("schema-keyword-misspelt", "misspelt properties", "tools.*.input_schema.properties", Key("propertis")),
    caught("schema-keyword-misspelt", "misspelt description", "tools.*.input_schema.properties.*.description", Key("desciption")),
    caught("schema-keyword-misspelt", "lower case in a keyword", STRING, After("maxlength: 3", 0)),
    caught("schema-keyword-misplaced", "property beside properties", "tools.*.input_schema.properties", After("city_of_birth:\n  type: string", 0)),
    caught("schema-default-mismatch", "default of another type", "tools.*.input_schema.properties.*.type=boolean", After("default: 'true'", 0)),
    // Hosts (N).
    caught("host-invalid", "URL for a host", "network", Host("https://api.example.com")),
    caught("host-invalid", "path behind a host", "network", Host("api.example.com:443/v1")),
    caught("host-invalid", "user before a host", "network", Host("me@api.example.com:443")),
    caught("host-invalid", "blank in a host", "network", Host("'a b.example.com:443'")),
    caught("host-invalid", "empty host", "network", Host("''")),
    caught("host-invalid", "underlined host", "network", Host("'api..example.com:443'")),
    caught("host-port-invalid", "name of a service for a port", "network", Host("api.example.com:https")),
    caught("host-port-invalid", "port 0", "network", Host("api.example.com:0")),
    caught("host-port-invalid", "port above the last", "network", Host("api.example.com:65536")),
    caught("host-port-invalid", "range of ports", "network", Host("api.example.com:80-443")),
    caught("host-bare-wildcard", "wildcard alone", "network", Host("'*'")),
    caught("host-bare-wildcard", "wildcard with a port", "network", Host("'*:443'")),
    caught("host-wildcard-invalid", "wildcard in the middle", "network", Host("'a.*.com:443'")),
    caught("host-wildcard-invalid", "dot before a host", "network", Host("'.example.com:443'")),
    caught("host-local", "host of its own", "network", Host("localhost:5432")),
    caught("host-public-suffix", "wildcard over a suffix", "network", Host("'*.co.uk:443'")),
    caught("host-covered", "host twice", "network", Body("mode: allowlist\nhosts:\n- a.example.com:443\n- a.example.com:443", 4)),
    caught("host-any-port", "host without a port", "network", Host("a.example.com")),
    caught("network-any", "everything allowed", "network.mode=none", Value("any")),
    caught("network-any-with-hosts", "hosts beside any", "network", Body("mode: any\nhosts:\n- a.example:443", 2)),
    caught("network-none-with-hosts", "hosts beside none", "network", Body("mode: none\nhosts:\n- a.example:443", 2)),
    caught("network-allowlist-empty", "allowlist without hosts", "network.mode", Value("allowlist")),
    // Credentials (C).
    caught("cred-name-invalid", "point in a credential's name", "credentials.*.name", Value("api.key")),
    caught("cred-name-invalid", "digit first in a credential's name", "credentials.*.name", Value("1{v}")),
    caught("cred-name-invalid", "equals sign in a credential's name", "credentials.*.name", Value("A=B")),
    caught("cred-name-reserved", "loader's variable", "credentials.*.name", Value("LD_PRELOAD")),
    caught("cred-name-reserved", "search path", "credentials.*.name", Value("PATH")),
    caught("cred-name-reserved", "Selu's own variable", "credentials.*.name", Value("SELU_TOKEN")),
    caught("cred-name-proxy", "proxy variable", "credentials.*.name", Value("https_proxy")),
    // Images (I).
    caught("image-invalid", "capital in an image", "image", Value("ghcr.io/Acme/{v}")),
    caught("image-invalid", "empty tag", "image", Value("'acme/x:'")),
    caught("image-invalid", "short digest", "image", Value("acme/x@sha256:abcd")),
    caught("image-invalid", "URL for an image", "image", Value("https://ghcr.io/acme/x:1")),
    caught("image-invalid", "package of npm for an image", "image", Value("'@acme/x'")),
    caught("image-invalid", "blank in an image", "image", Value("acme/x 1")),
    caught("image-untagged", "image without a tag", "image", Value("example.com/acme")),
    caught("image-latest", "latest", "image", Value("example.com/acme:latest")),
    // What no reader of files can know.
    harmless("other tag", "image", Value("example.invalid/x/y:0"), "only the registry knows which tags there are"),
    harmless("other word in a description", "tools.*.description", Value("Does something else"), "the text is free"),
    harmless("other name of a tool", "tools.*.name", Value("misnamed_here"), "only the container knows its tools"),
    harmless("other name of a credential", "credentials.*.name", Value("MISNAMED_HERE"), "only the container knows what it reads"),
    harmless("argument no longer required", "tools.*.input_schema.required", Value("[]"), "a legal schema; `diff` calls it looser"),
    harmless("argument without description", "tools.*.input_schema.properties.*.description", Drop, "descriptions of arguments are optional"),
    harmless("own field", "filesystem", After("x-note: text", 0), "`x-` fields are free (M6)"),
    harmless("higher limit", "filesystem", After("resources:\n  max_memory_mb: 4096", 1), "in range; `diff` calls it widening"),
];
