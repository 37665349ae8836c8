use selu_compiler::model::InstanceKey;
use selu_runtime::egress::record::{Via, Why};

use super::*;

fn line(run: u64, id: u64, phase: Phase, code: Option<&str>) -> Line {
    Line {
        run,
        times: 1,
        carried: false,
        event: Event {
            time_ms: 1_735_689_599_000 + id,
            instance: InstanceKey::new("weather", "api"),
            network: "selu_demo_weather_api_1".to_owned(),
            id,
            via: Via::Tcp,
            phase,
            name: Some("api.example.com".to_owned()),
            address: Some("93.184.216.34".parse().unwrap()),
            port: Some(443),
            reason: code.map(|code| Why {
                code: code.to_owned(),
                text: format!("because of {code}"),
            }),
            sent: 1_500,
            received: 20_000_000,
            millis: 7,
        },
    }
}

fn rows(lines: &[Line]) -> Rows {
    let mut rows = Rows::default();
    rows.begin(Some(2));
    for line in lines {
        rows.add(line);
    }
    rows
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    rows.iter().map(|row| row.verdict).collect()
}

#[test]
fn a_connection_is_one_row_from_its_begin_to_its_end() {
    let lines = [
        line(2, 1, Phase::Opened, None),
        line(2, 2, Phase::Opened, None),
        line(2, 1, Phase::Closed, None),
        line(2, 2, Phase::Closed, Some("revoked")),
        line(2, 3, Phase::Opened, None),
        line(2, 0, Phase::Denied, Some("not-listed")),
        line(2, 0, Phase::Denied, Some("timed-out")),
    ];
    use Verdict::*;
    assert_eq!(
        verdicts(&rows(&lines).past()),
        [Allowed, Cut, Open, Denied, Failed]
    );
    assert_eq!(verdicts(&rows(&lines).open()), [Open]);
}

#[test]
fn what_an_earlier_run_of_the_gateway_left_open_is_open_no_more() {
    let lines = [
        line(1, 1, Phase::Opened, None),
        line(2, 1, Phase::Opened, None),
    ];
    assert_eq!(
        verdicts(&rows(&lines).past()),
        [Verdict::Unfinished, Verdict::Open]
    );
    assert_eq!(rows(&lines).open().len(), 1);
}

#[test]
fn a_begin_that_was_carried_over_is_the_same_connection() {
    let mut again = line(2, 1, Phase::Opened, None);
    again.carried = true;
    let lines = [line(2, 1, Phase::Opened, None), again.clone()];
    assert_eq!(rows(&lines).past().len(), 1);
    assert_eq!(rows(&[again.clone()]).open().len(), 1);
    let lines = [again, line(2, 1, Phase::Closed, None)];
    assert_eq!(verdicts(&rows(&lines).past()), [Verdict::Allowed]);
}

#[test]
fn a_row_tells_all_of_it_and_shows_what_would_steer_a_terminal() {
    let closed = Row::of(&line(2, 1, Phase::Closed, None));
    assert_eq!(
        closed.text(&Widths::of(std::slice::from_ref(&closed))),
        "2024-12-31 23:59:59  weather/api  tcp    api.example.com:443  93.184.216.34     1.5 kB      20 MB  allowed\n"
    );
    let mut hostile = line(2, 0, Phase::Denied, Some("not-listed"));
    hostile.event.name = Some("a\u{1b}]0;x\u{7}\nb\u{202e}".to_owned());
    hostile.times = 40;
    let text = Row::of(&hostile).text(&Widths::default());
    assert_eq!(text.matches('\n').count(), 1, "{text:?}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(
        text.ends_with("denied      because of not-listed (40 times)\n"),
        "{text}"
    );
}

#[test]
fn only_what_the_list_refused_can_be_allowed_by_it() {
    let is_unlisted = |code| Row::of(&line(2, 0, Phase::Denied, Some(code))).is_unlisted();
    assert!(is_unlisted("not-listed") && is_unlisted("port-not-listed"));
    assert!(!is_unlisted("sni-mismatch") && !is_unlisted("not-global"));
}

#[test]
fn sizes_have_a_unit_and_few_digits() {
    for (bytes, text) in [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (u64::MAX, "18446744.1 TB"),
    ] {
        assert_eq!(size(bytes), text, "{bytes}");
    }
}
