//! `selu lock --accept`: definitions that wait come into use (D3, product.md 27).

use selu_compiler::lock::AcceptError;
use selu_compiler::report;
use selu_compiler::review::{Review, Snapshot};
use selu_runtime::waiting::Waiting;

use crate::exit::Exit;
use crate::hints::Hinted;
use crate::printer::Printer;
use crate::project::{Loaded, document};

/// Shows what the accepted definitions change, and writes selu.lock.
pub(crate) fn run(
    printer: &Printer,
    loaded: &Loaded,
    names: &[String],
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let Some(lock) = loaded.lock() else {
        let hint = "`selu lock` or `selu apply` asks for tools and writes it";
        return Err(Hinted::new("there is no selu.lock, so nothing waits", hint).into());
    };
    let mut waiting = Waiting::load(&loaded.root, Some(lock))?;
    let accepted = lock
        .accept(waiting.lock(), names, &loaded.project.settings)
        .map_err(|error| hinted(error, &waiting.lock().waiting_names()))?;
    let review = Review::new(&Snapshot::of_lock(lock), &Snapshot::of_lock(&accepted));
    printer.data(&report::review_text(&review)?);
    waiting.accepted_in(&accepted);
    if !dry_run {
        loaded.require_same_lock()?;
        loaded.lock.save(&accepted)?;
        waiting.save()?;
        printer.say("selu.lock written; commit it, so that the change is reviewed.");
    }
    let left = waiting.lock().waiting_names();
    if !left.is_empty() {
        printer.say(&format!(
            "still waiting: {}",
            crate::printer::shown(&left.join(", "))
        ));
    }
    let mut document = document(loaded.project.name.as_deref().unwrap_or_default());
    document.insert("written".to_owned(), (!dry_run).into());
    document.insert("waiting".to_owned(), left.into());
    document.insert("review".to_owned(), serde_json::to_value(&review)?);
    document.insert("exit_code".to_owned(), Exit::Done.code().into());
    printer.json(&document.into());
    Ok(Exit::Done)
}

/// With the way out.
fn hinted(error: AcceptError, waiting: &[String]) -> anyhow::Error {
    let hint = match error {
        AcceptError::OtherImage { .. } => {
            "`selu lock` or `selu sync` asks the present image for its tools".to_owned()
        }
        AcceptError::Nothing { .. } if waiting.is_empty() => {
            "nothing waits here; what another machine found waits there, and `selu lock` asks here"
                .to_owned()
        }
        AcceptError::Nothing { .. } => {
            format!("these wait: {}", crate::printer::shown(&waiting.join(", ")))
        }
    };
    Hinted::new(error.to_string(), hint).into()
}
