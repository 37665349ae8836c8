//! Wrong usage: exit code 64, as JSON when that was asked for, also where the argument parser itself gave up.

use clap::error::ErrorKind;
use serde_json::json;

use crate::args::Format;
use crate::exit::Exit;
use crate::printer::{FORMAT_VERSION, Printer};

/// Reports what the argument parser found. Help and version are no errors.
pub(crate) fn report(error: &clap::Error, arguments: &[String]) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nobody is left to be told that printing failed.
            let _ = error.print();
            return Exit::Done;
        }
        _ => {}
    }
    let format = if asked_for_json(arguments) {
        Format::Json
    } else {
        Format::Text
    };
    let printer = Printer::new(format);
    let text = if printer.color_err() {
        error.render().ansi().to_string()
    } else {
        error.render().to_string()
    };
    printer.say(&text);
    printer.json(&json!({
        "format_version": FORMAT_VERSION,
        "error": { "message": error.render().to_string().trim(), "causes": [], "hints": [] },
        "exit_code": Exit::Usage.code(),
    }));
    Exit::Usage
}

/// The parser gave up, so its own answer about `--format` is not to be had.
fn asked_for_json(arguments: &[String]) -> bool {
    let before_operands = arguments.iter().take_while(|argument| *argument != "--");
    let words: Vec<&str> = before_operands.map(String::as_str).collect();
    words.contains(&"--format=json") || words.windows(2).any(|pair| pair == ["--format", "json"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_recognised_in_both_spellings_and_not_after_the_operands() {
        let asked = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            asked_for_json(&words)
        };
        assert!(asked("plan --format json --nonsense"));
        assert!(asked("plan --nonsense --format=json"));
        assert!(!asked("plan --format text"));
        assert!(!asked("plan -- --format json"));
    }
}
