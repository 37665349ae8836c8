//! N1–N10: whatever is not listed is out of reach by any means, and what is listed works for any client. Every technique
//! first proves, by the same probe from where nothing is closed, that its target answers.

mod clients;
mod discovery;
mod events;
mod floods;
mod inside;
mod lab;
mod mcp;
mod ports;
mod rows;
mod scene;
mod table;

use lab::Lab;
use scene::Scene;

#[test]
fn d10_d11_no_technique_reaches_what_is_not_listed() {
    let Some(lab) = Lab::take() else { return };
    let scene = Scene::new("bypass");
    let mut outcomes: Vec<_> = rows::refused(&scene)
        .iter()
        .map(|row| row.run(&scene, &lab))
        .collect();
    outcomes.extend(ports::outcomes(&scene));
    table::report("refused", &outcomes);
}

#[test]
fn what_is_listed_is_carried_whatever_the_protocol() {
    let Some(lab) = Lab::take() else { return };
    let scene = Scene::new("carried");
    let outcomes: Vec<_> = rows::carried()
        .iter()
        .map(|row| row.run(&scene, &lab))
        .collect();
    table::report("carried", &outcomes);
}

#[test]
fn clients_that_nobody_wrote_for_us_work_and_are_held() {
    let Some(lab) = Lab::take() else { return };
    let scene = Scene::of("clients", &["open"]);
    table::report("clients", &clients::run_all(&scene, &lab));
}
