//! `selu why`: what uses a host, a credential, an image.

use selu_compiler::check::nearest;
use selu_compiler::graph::{Role, Use, names, why};
use selu_compiler::model::CredentialScope;

use crate::args::{Cli, WhyArgs};
use crate::exit::Exit;
use crate::printer::{Printer, shown};
use crate::project::{document, load_planned};

pub(crate) fn run(cli: &Cli, printer: &Printer, args: &WhyArgs) -> anyhow::Result<Exit> {
    let Some((_, plan)) = load_planned(cli, printer, &args.dir)? else {
        return Ok(Exit::Failed);
    };
    let uses = why(&plan, &args.name);
    for one in &uses {
        printer.data(&line(one));
    }
    let exit = if uses.is_empty() {
        printer.say(&format!("error: nothing uses {}", shown(&args.name)));
        let names = names(&plan);
        if let Some(near) = nearest(&args.name, names.iter().map(String::as_str)) {
            printer.hint(&format!("did you mean {}?", shown(near)));
        }
        Exit::Failed
    } else {
        Exit::Done
    };
    let mut document = document(&plan.project);
    document.insert("name".to_owned(), args.name.as_str().into());
    document.insert("uses".to_owned(), serde_json::to_value(&uses)?);
    document.insert("exit_code".to_owned(), exit.code().into());
    printer.json(&document.into());
    Ok(exit)
}

fn line(one: &Use) -> String {
    let Use {
        instance,
        role,
        origin,
    } = one;
    let role = match role {
        Role::Host { rule, private } => {
            let private = if *private {
                ", at private addresses too"
            } else {
                ""
            };
            format!("may reach it ({}{private})", shown(rule))
        }
        Role::Credential { scope, required } => {
            let scope = match scope {
                CredentialScope::System => "one value for all",
                CredentialScope::User => "one per user",
            };
            let required = if *required { "required" } else { "optional" };
            format!("is given it ({scope}, {required})")
        }
        Role::Image { written, digest } => {
            let digest = digest.as_deref().unwrap_or("not pinned yet");
            format!("runs it ({}, {})", shown(written), shown(digest))
        }
    };
    format!(
        "{instance} {role}  {}:{}\n",
        shown(origin.file.as_str()),
        origin.line
    )
}
