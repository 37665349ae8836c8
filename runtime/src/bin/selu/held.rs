//! Asking, holding, and working while holding (product.md 10, 14).

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use selu_runtime::engine::{Engine, EngineError};
use selu_runtime::gateway;
use selu_runtime::hold::{self, Hold, HoldError, Info};
use selu_runtime::stop::Stop;

use crate::args::Consent;
use crate::hints::Hinted;
use crate::printer::Printer;

/// How often the hold is tried for when the image that it runs goes away meanwhile.
const ATTEMPTS: u32 = 5;

/// Whether to go on. Without a terminal and without `-y` the answer can't be had, and that is an error.
pub(crate) async fn ask(consent: Consent, question: &str) -> anyhow::Result<bool> {
    if consent.yes {
        return Ok(true);
    }
    if !can_ask() {
        let message = "there is no terminal to ask on, so nothing was changed";
        return Err(Hinted::new(message, "read the plan, then say -y").into());
    }
    answer(question).await
}

/// Whether a question reaches a person.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks on the terminal.
pub(crate) async fn answer(question: &str) -> anyhow::Result<bool> {
    let _ = write!(std::io::stderr(), "{question} [y/N] ");
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = answer.await??;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Takes the project's hold, with the gateway's image that it runs.
pub(crate) async fn take(
    engine: &dyn Engine,
    project: &str,
    image: &str,
    operation: &str,
    wait: u64,
) -> anyhow::Result<Hold> {
    let info = Info {
        host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        user: std::env::var("USER").ok().filter(|user| !user.is_empty()),
        pid: std::process::id(),
        operation: operation.to_owned(),
        since: utc(SystemTime::now()),
    };
    let give_up = Instant::now() + Duration::from_secs(wait);
    let mut attempt = 0;
    loop {
        attempt += 1;
        gateway::ensure_image(engine, project, image).await?;
        let left = give_up.saturating_duration_since(Instant::now());
        match hold::take(engine, project, image, &info, left).await {
            Ok(hold) => return Ok(hold),
            Err(error @ HoldError::Held { .. }) => {
                let hint = "wait for it, or say how long with --lock-timeout SECONDS";
                return Err(Hinted::new(error.to_string(), hint).into());
            }
            // Whoever had the hold before may have taken the image along, as `destroy` does.
            Err(HoldError::Engine(EngineError::NotFound { .. })) if attempt < ATTEMPTS => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Works, and wishes to stop when the hold is lost: somebody else may be at work then.
pub(crate) async fn under<T>(
    hold: &mut Hold,
    printer: &Printer,
    stop: &Stop,
    work: impl Future<Output = T>,
) -> T {
    stop.begin_work();
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        _ = hold.lost() => {
            printer.warn("the hold on the project was lost; stopping as after an interrupt");
            stop.request();
        }
    }
    work.await
}

/// Gives the hold back; a failure is a warning, because the next taker clears what is left.
pub(crate) async fn release(hold: Hold, engine: &dyn Engine, printer: &Printer) {
    if let Err(error) = hold.release(engine).await {
        printer.warn(&format!("the hold could not be removed: {error}"));
    }
}

/// `2026-01-31 12:00:00`, from milliseconds since 1970, in UTC.
pub(crate) fn utc_ms(time_ms: u64) -> String {
    let text = utc(UNIX_EPOCH + Duration::from_secs(time_ms / 1000));
    text.trim_end_matches(" UTC").to_owned()
}

/// `2026-01-31 12:00:00 UTC`.
fn utc(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years; leap days are at the end of such years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_also_on_leap_days_and_at_year_ends() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_827_696, "2000-02-29 12:34:56 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
