//! What a call gave, without credential values and without anything that steers a terminal.

use selu_proto::MAX_MESSAGE_BYTES;
use selu_runtime::invoke::CallError;
use serde_json::Value;

use crate::printer::{Printer, shown};

/// A result must be JSON.
pub(crate) fn read(result: &[u8]) -> anyhow::Result<Value> {
    serde_json::from_slice(result).map_err(|error| {
        let start = String::from_utf8_lossy(result);
        let start: String = start.chars().take(200).collect();
        let message = format!(
            "the tool was called, and its result of {} bytes is not JSON ({error}): {start}",
            result.len()
        );
        anyhow::Error::msg(message)
    })
}

/// Without credential values. Text by text, so that what is left is JSON whatever a value looks like.
pub(crate) fn cleaned(printer: &Printer, value: Value) -> Value {
    match value {
        Value::String(text) => printer.clean(&text).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| cleaned(printer, item))
            .collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (printer.clean(&key), cleaned(printer, value)))
            .collect(),
        Value::Number(number) => {
            let text = number.to_string();
            let clean = printer.clean(&text);
            if clean == text {
                number.into()
            } else {
                clean.into()
            }
        }
        plain @ (Value::Null | Value::Bool(_)) => plain,
    }
}

/// A text as it reads, anything else as JSON.
pub(crate) fn text(result: &Value) -> String {
    match result {
        Value::String(text) => shown(text),
        other => shown(&format!("{other:#}")),
    }
}

/// A result that comes in pieces: lines are shown as they are complete, so that no value is torn between two of them;
/// JSON is one document, so it waits for the end.
pub(crate) struct Pieces<'a> {
    printer: &'a Printer,
    /// What is not shown yet; everything where JSON is asked for.
    waiting: Vec<u8>,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(printer: &'a Printer) -> Self {
        Self {
            printer,
            waiting: Vec::new(),
        }
    }

    /// Takes the next piece.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), CallError> {
        self.waiting.extend_from_slice(piece);
        if !self.printer.is_json()
            && let Some(end) = self.waiting.iter().rposition(|byte| *byte == b'\n')
        {
            let rest = self.waiting.split_off(end + 1);
            let lines = std::mem::replace(&mut self.waiting, rest);
            self.show(&lines);
        }
        if self.waiting.len() > MAX_MESSAGE_BYTES {
            return Err(CallError::ResultTooLarge {
                bytes: format!("more than {MAX_MESSAGE_BYTES}"),
                limit: MAX_MESSAGE_BYTES,
            });
        }
        Ok(())
    }

    /// The end. What is a JSON document is the result as such, anything else is a text.
    pub(crate) fn end(self) -> Value {
        if !self.printer.is_json() {
            if !self.waiting.is_empty() {
                self.show(&self.waiting);
            }
            return Value::Null;
        }
        let result = serde_json::from_slice(&self.waiting);
        let result = result.unwrap_or_else(|_| String::from_utf8_lossy(&self.waiting).into());
        cleaned(self.printer, result)
    }

    fn show(&self, lines: &[u8]) {
        let text = self.printer.clean(&String::from_utf8_lossy(lines));
        self.printer.data(&format!("{}\n", shown(&text)));
    }
}
