//! Techniques as rows of a table: each has a name, a proof by the same probe from where nothing is closed, and the
//! refusal that it must meet.

use std::fmt;

use serde_json::Value;

use super::lab::Lab;
use super::scene::{Scene, in_network_of, outcome};

/// What a technique may meet. A row lists those that it may; anything else fails it. One that lists none must be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The kernel gives the process no such socket, file or right.
    Forbidden,
    /// There is no way to the address, or none from an address of one's own.
    NoRoute,
    /// The name server says that the name does not exist.
    NoName,
    /// It says that the name has no such record.
    NoData,
    /// It does not want to answer.
    DnsRefused,
    /// The connection is refused or reset before anything was said.
    Closed,
    /// The connection is made and ends, or stays, without a word from the target.
    Cut,
    /// Nothing comes back at all.
    Silence,
    /// The gateway itself answers with an HTTP status of the 400s.
    Http,
    /// It answers in another way that is not the target's.
    Other,
}

/// Where a proof is made, with what arguments.
pub(crate) enum Proof {
    /// In the unrestricted container, with the row's own arguments.
    Free,
    /// There, with these.
    FreeWith(Value),
    /// In an unrestricted container inside the named network.
    Beside(String, Value),
    /// In this capability's own container: what is its to reach.
    Of(&'static str, Value),
}

/// Where a technique is tried.
pub(crate) enum Place {
    /// In the capability's container.
    In(&'static str),
    /// In its network with every right of root, after these commands of `ip`; what they change is undone by the second.
    Root(&'static str, Vec<String>, Vec<String>),
}

/// One technique.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    /// Tried first, in both places alike: what it says does not matter.
    pub(crate) before: Option<Value>,
    /// The same for the proof, where that has arguments of its own.
    pub(crate) free_before: Option<Value>,
    pub(crate) proof: Proof,
    /// What only the target can have said.
    pub(crate) answer: String,
    pub(crate) refusals: Vec<Refusal>,
    /// What must not arrive in the lab meanwhile: lines that hold this.
    pub(crate) quiet: Option<String>,
    /// Whether arrival of `answer` in the lab is the only sign of success: nobody answers.
    pub(crate) by_arrival: bool,
}

/// The outcome of a row, for the table.
pub(crate) struct Outcome {
    name: String,
    proved: bool,
    met: String,
    failure: Option<String>,
}

impl Row {
    /// Tried in `web/open`, proved with the same arguments in the unrestricted container; where the target is named by
    /// its answer (`reached ADDRESS`), nothing may arrive at it.
    pub(crate) fn new(
        name: impl Into<String>,
        tool: &'static str,
        arguments: Value,
        answer: impl Into<String>,
    ) -> Self {
        let answer = answer.into();
        let quiet = answer
            .strip_prefix("reached ")
            .map(|place| format!("\"at\":\"{place}"));
        Self {
            name: name.into(),
            place: Place::In("open"),
            tool,
            arguments,
            before: None,
            free_before: None,
            proof: Proof::Free,
            answer,
            refusals: Vec::new(),
            quiet,
            by_arrival: false,
        }
    }

    pub(crate) fn judged_by_arrival(self) -> Self {
        let by_arrival = true;
        Self { by_arrival, ..self }
    }

    pub(crate) fn meets(self, refusals: &[Refusal]) -> Self {
        let refusals = refusals.to_vec();
        Self { refusals, ..self }
    }

    pub(crate) fn proved(self, proof: Proof) -> Self {
        Self { proof, ..self }
    }

    pub(crate) fn tried(self, place: Place) -> Self {
        Self { place, ..self }
    }

    pub(crate) fn after(self, before: Value) -> Self {
        let before = Some(before);
        Self { before, ..self }
    }

    /// Something else than any traffic at the target must not arrive.
    pub(crate) fn without(self, quiet: impl Into<String>) -> Self {
        let quiet = Some(quiet.into());
        Self { quiet, ..self }
    }

    pub(crate) fn run(&self, scene: &Scene, lab: &Lab) -> Outcome {
        let proved = self.prove(scene, lab);
        lab.fence();
        let mark = lab.mark();
        let result = self.attempt(scene);
        lab.fence();
        let answered = self.succeeded(&result, mark, lab);
        let met = met(&result);
        let quiet = self.quiet.as_ref().filter(|_| !self.refusals.is_empty());
        let arrived = quiet.and_then(|quiet| {
            lab.since(mark)
                .into_iter()
                .find(|line| line.to_string().contains(quiet))
        });
        let failure = if let Err(result) = &proved {
            Some(format!("the target does not answer at all: {result}"))
        } else if self.refusals.is_empty() {
            (!answered).then(|| format!("the target was not reached: {result}"))
        } else if answered {
            Some(format!("the target was reached: {result}"))
        } else if let Some(line) = arrived {
            Some(format!("it arrived: {line}"))
        } else if !self.refusals.contains(&met) {
            Some(format!(
                "met {met:?}, expected {:?}: {result}",
                self.refusals
            ))
        } else {
            None
        };
        Outcome {
            name: self.name.clone(),
            proved: proved.is_ok(),
            met: if answered {
                "reached".to_owned()
            } else {
                format!("{met:?}")
            },
            failure,
        }
    }

    /// Proves that the target answers; the error is what was found instead.
    pub(crate) fn prove(&self, scene: &Scene, lab: &Lab) -> Result<(), Value> {
        let free = |arguments: &Value| {
            if let Some(before) = self.free_before.as_ref().or(self.before.as_ref()) {
                scene.free.probe(self.tool, &self.hurry(before));
            }
            scene.free.probe(self.tool, &self.hurry(arguments))
        };
        let mark = lab.mark();
        let result = match &self.proof {
            Proof::Free => free(&self.arguments),
            Proof::FreeWith(arguments) => free(arguments),
            Proof::Beside(network, arguments) => {
                scene
                    .free
                    .probe_beside(network, self.tool, &self.hurry(arguments))
            }
            Proof::Of(capability, arguments) => {
                scene.inside(capability, self.tool, &self.hurry(arguments))
            }
        };
        if self.by_arrival {
            lab.fence();
        }
        if self.succeeded(&result, mark, lab) {
            Ok(())
        } else {
            Err(result)
        }
    }

    fn succeeded(&self, result: &Value, mark: usize, lab: &Lab) -> bool {
        if self.by_arrival {
            lab.since(mark).iter().any(|line| says(line, &self.answer))
        } else {
            says(result, &self.answer)
        }
    }

    /// A conversation ends once the target has said what only it can.
    fn hurry(&self, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        // The answer is as JSON shows it; what passes is not.
        let answer = serde_json::from_str::<Value>(&format!("\"{}\"", self.answer));
        if self.tool == "talk"
            && let Ok(answer) = answer
        {
            arguments["until"] = answer;
        }
        arguments
    }

    fn attempt(&self, scene: &Scene) -> Value {
        match &self.place {
            Place::In(capability) => {
                if let Some(before) = &self.before {
                    scene.inside(capability, self.tool, &self.hurry(before));
                }
                scene.inside(capability, self.tool, &self.hurry(&self.arguments))
            }
            Place::Root(capability, make, undo) => {
                let container = scene.resident(capability);
                let ip = |line: &String| {
                    let words: Vec<&str> = ["ip"].into_iter().chain(line.split(' ')).collect();
                    in_network_of(&container, &[], &words)
                };
                for line in make {
                    let done = ip(line);
                    assert_eq!(done.code, 0, "{}: ip {line}: {}", self.name, done.stderr);
                }
                let probe = crate::project::probe_binary();
                let arguments = self.hurry(&self.arguments).to_string();
                let command = [probe.to_str().unwrap(), "call", self.tool, &arguments];
                let done = in_network_of(&container, &[], &command);
                for line in undo {
                    let _ = ip(line);
                }
                outcome(&done)
            }
        }
    }
}

fn says(result: &Value, answer: &str) -> bool {
    result.to_string().contains(answer)
}

/// What kind of refusal a probe's outcome is.
fn met(result: &Value) -> Refusal {
    let error = result["error"].as_str().unwrap_or_default();
    let errors = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
    if let Some(code) = result["code"].as_u64() {
        return match code {
            0 => Refusal::NoData,
            3 => Refusal::NoName,
            _ => Refusal::DnsRefused,
        };
    }
    if errors(&[
        "not permitted",
        "ermission denied",
        "not supported",
        "No such file",
        "Address not available",
    ]) {
        return Refusal::Forbidden;
    }
    if errors(&["unreachable", "No route", "assign requested address"]) {
        return Refusal::NoRoute;
    }
    if errors(&["lookup", "Name or service", "No address"]) {
        return Refusal::NoName;
    }
    if errors(&["refused", "reset by peer"]) {
        return Refusal::Closed;
    }
    if errors(&["timed out", "temporarily unavailable"]) {
        return Refusal::Silence;
    }
    let received = result["received"].as_str().unwrap_or_default();
    if result["stage"] == "talk" {
        let status = received
            .rmatch_indices("HTTP/1.")
            .next()
            .and_then(|(at, _)| received.get(at + 9..at + 10));
        return match (status, result["end"].as_str()) {
            (Some("4" | "5"), _) => Refusal::Http,
            (_, Some("reset")) if received.is_empty() => Refusal::Closed,
            _ => Refusal::Cut,
        };
    }
    Refusal::Other
}

impl Outcome {
    /// Of something that was tried in another way than by a row.
    pub(crate) fn of(name: String, proved: bool, met: &str, failure: Option<String>) -> Self {
        Self {
            name,
            proved,
            met: met.to_owned(),
            failure,
        }
    }
}

/// Prints the table and fails with every row that failed.
pub(crate) fn report(title: &str, outcomes: &[Outcome]) {
    let mut table = format!("{title}: {} techniques\n", outcomes.len());
    for outcome in outcomes {
        table.push_str(&format!("{outcome}\n"));
    }
    eprintln!("{table}");
    let failures: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| Some(format!("{}: {}", outcome.name, outcome.failure.as_ref()?)))
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} failed:\n{}",
        failures.len(),
        outcomes.len(),
        failures.join("\n")
    );
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.failure.is_some() {
            "FAILED"
        } else {
            "ok"
        };
        let proof = if self.proved { "answers" } else { "NO ANSWER" };
        write!(
            f,
            "  {verdict:<7} {:<64} unrestricted: {proof:<10} here: {}",
            self.name, self.met
        )
    }
}
