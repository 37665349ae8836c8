//! Lock → text, canonically: the same lock is the same bytes, and one change is one small hunk (product.md 21).

use std::fmt::Write as _;

use serde_json::Value;

use super::words::{
    class_word, filesystem_word, kind_word, mode_word, origin_word, policy_origin_word, scope_word,
    sharing_word,
};
use super::{
    Lock, LockedCredential, LockedDiscovery, LockedImage, LockedInstance, LockedTool, VERSION,
};
use crate::model::{InstanceKey, Limits, Network, Sharing};
use crate::report::hidden;

/// Stands above everything else; `version` is the first thing that is read.
pub(super) const HEAD: &str =
    "# Written by `selu`. Commit it and review its changes; change the directory, not this file.\n";

impl Lock {
    /// Writes it, canonically; with CRLF line ends where the previous text had them (product.md 23).
    pub fn write(&self, previous: Option<&str>) -> String {
        let Self { instances } = self;
        let mut out = Out(format!("{HEAD}version = {VERSION}\n"));
        for (key, instance) in instances {
            out.instance(key, instance);
        }
        if previous.is_some_and(|text| text.contains("\r\n")) {
            out.0.replace('\n', "\r\n")
        } else {
            out.0
        }
    }
}

/// An instance's own table, without its tools.
pub(super) fn head_text(key: &InstanceKey, instance: &LockedInstance) -> String {
    let mut out = Out(String::new());
    out.head(key, instance);
    out.0
}

/// A tool's table.
pub(super) fn tool_text(key: &InstanceKey, name: &str, tool: &LockedTool) -> String {
    let mut out = Out(String::new());
    out.tool(&table(key), name, tool);
    out.0
}

fn table(key: &InstanceKey) -> String {
    format!("instance.{}", basic(key.as_str()))
}

struct Out(String);

impl Out {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn set(&mut self, key: &str, value: impl std::fmt::Display) {
        self.line(&format!("{key} = {value}"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.set(key, basic(value));
    }

    fn list(&mut self, key: &str, items: &[String]) {
        if items.is_empty() {
            self.set(key, "[]");
            return;
        }
        self.set(key, "[");
        for item in items {
            self.line(&format!("  {},", basic(item)));
        }
        self.line("]");
    }

    fn instance(&mut self, key: &InstanceKey, instance: &LockedInstance) {
        self.head(key, instance);
        let table = table(key);
        for (name, tool) in &instance.tools {
            self.tool(&table, name, tool);
        }
    }

    fn head(&mut self, key: &InstanceKey, instance: &LockedInstance) {
        let LockedInstance {
            image,
            class,
            filesystem,
            cache,
            sharing,
            limits,
            network,
            credentials,
            prompts,
            discovery,
            tools: _,
        } = instance;
        self.line("");
        self.line(&format!("[{}]", table(key)));
        let LockedImage {
            written,
            kind,
            digest,
            source,
        } = image;
        self.text("image.written", written);
        self.text("image.kind", kind_word(*kind));
        if let Some(digest) = digest {
            self.text("image.digest", digest);
        }
        if let Some(source) = source {
            self.text("image.source", source);
        }
        self.text("class", class_word(*class));
        self.text("filesystem", filesystem_word(*filesystem));
        self.set("cache", cache);
        let Sharing {
            mode,
            max_concurrent,
            idle_timeout_seconds,
        } = sharing;
        self.text("sharing.mode", sharing_word(*mode));
        self.set("sharing.max_concurrent", max_concurrent);
        self.set("sharing.idle_timeout_seconds", idle_timeout_seconds);
        let Limits {
            memory_mb,
            nano_cpus,
            cpu_seconds,
            pids,
        } = limits;
        self.set("limits.memory_mb", memory_mb);
        self.set("limits.nano_cpus", nano_cpus);
        self.set("limits.cpu_seconds", cpu_seconds);
        self.set("limits.pids", pids);
        let Network { mode, hosts } = network;
        self.text("network.mode", mode_word(*mode));
        self.list("network.hosts", hosts);
        for (name, credential) in credentials {
            let LockedCredential { scope, required } = credential;
            self.set(
                &format!("credential.{}", basic(name)),
                format_args!(
                    "{{ scope = {}, required = {required} }}",
                    basic(scope_word(*scope))
                ),
            );
        }
        for (file, hash) in prompts {
            self.text(&format!("prompt.{}", basic(file)), hash);
        }
        if let Some(LockedDiscovery {
            tool,
            credentials_present,
        }) = discovery
        {
            self.text("discovery.tool", tool);
            if let Some(names) = credentials_present {
                self.list("discovery.credentials_present", names);
            }
        }
    }

    fn tool(&mut self, table: &str, name: &str, tool: &LockedTool) {
        let LockedTool {
            source,
            policy,
            policy_origin,
            recommended,
            description,
            input_schema,
            terminal_on_success,
        } = tool;
        self.line("");
        self.line(&format!("[{table}.tool.{}]", basic(name)));
        self.text("source", origin_word(*source));
        self.set("policy", format_args!("\"{policy}\""));
        self.text("policy_origin", policy_origin_word(*policy_origin));
        if let Some(recommended) = recommended {
            self.set("recommended", format_args!("\"{recommended}\""));
        }
        self.set("terminal_on_success", terminal_on_success);
        self.text("description", description);
        self.line("input_schema = '''");
        let mut json = String::new();
        pretty(input_schema, 0, &mut json);
        self.line(&json);
        self.line("'''");
    }
}

/// JSON with sorted keys, two blanks a level, one value a line. Its text never holds `'''` nor a character that a
/// literal string of TOML must not have.
fn pretty(value: &Value, level: usize, out: &mut String) {
    let indent = |out: &mut String, level: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(level));
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            // Explicitly: another crate may have turned the map's own order into that of insertion.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                indent(out, level + 1);
                json_string(key, out);
                out.push_str(": ");
                pretty(value, level + 1, out);
            }
            indent(out, level);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                indent(out, level + 1);
                pretty(item, level + 1, out);
            }
            indent(out, level);
            out.push(']');
        }
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(text) => json_string(text, out),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::Bool(flag) => out.push_str(&flag.to_string()),
        Value::Null => out.push_str("null"),
    }
}

fn json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut quotes = 0;
    for c in text.chars() {
        quotes = if c == '\'' { quotes + 1 } else { 0 };
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // The third in a row would end the literal string.
            '\'' if quotes == 3 => {
                out.push_str("\\u0027");
                quotes = 0;
            }
            // A lock is what it looks like (D7).
            c if hidden(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A basic string of TOML.
pub(super) fn basic(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if hidden(c) => {
                let code = u32::from(c);
                let _ = if code <= 0xFFFF {
                    write!(out, "\\u{code:04X}")
                } else {
                    write!(out, "\\U{code:08X}")
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
