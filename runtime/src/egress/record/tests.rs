use std::fs;
use std::io::Write;
use std::path::Path;

use super::*;

const NETWORK: &str = "selu_demo_weather_api_1";
const LONG: Duration = Duration::from_secs(3600);

fn weather() -> InstanceKey {
    InstanceKey::new("weather", "api")
}

fn event(instance: &InstanceKey, phase: Phase, id: u64, name: &str, time_ms: u64) -> Event {
    let mut event = Event::new(instance, NETWORK, Via::Tcp, phase);
    event.time_ms = time_ms;
    event.id = id;
    event.name = Some(name.to_owned());
    event.port = Some(443);
    event
}

fn denied(name: &str, time_ms: u64) -> Event {
    let mut event = event(&weather(), Phase::Denied, 0, name, time_ms);
    event.reason = Some(Why {
        code: "not-listed".to_owned(),
        text: "is not in the list".to_owned(),
    });
    event
}

/// What the role prints: its head, and the lines.
fn printed(folder: &Path, ask: &Ask) -> (Head, Vec<Line>) {
    let mut out = Vec::new();
    copy(folder, ask, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines();
    let Told::Head(head) = serde_json::from_str(lines.next().unwrap()).unwrap() else {
        panic!("no head: {text}");
    };
    let lines = lines.map(|line| match serde_json::from_str(line).unwrap() {
        Told::Line(line) => line,
        Told::Head(head) => panic!("another {head:?}"),
    });
    (head, lines.collect())
}

fn names(lines: &[Line]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line.event.name.as_deref().unwrap_or("-"))
        .collect()
}

#[test]
fn what_is_recorded_is_read_back_by_time_over_all_instances() {
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, rings::FILE_BYTES).unwrap();
    let notes = InstanceKey::new("notebook", "notes");
    let lone = InstanceKey::new(InstanceKey::NAMELESS, "alone");
    rings.write(event(&weather(), Phase::Opened, 1, "a.example.com", 100));
    rings.write(event(&weather(), Phase::Closed, 1, "c.example.com", 300));
    rings.write(event(&notes, Phase::Opened, 2, "b.example.com", 200));
    rings.write(event(&lone, Phase::Opened, 3, "d.example.com", 400));

    let (head, lines) = printed(folder.path(), &Ask::default());
    assert_eq!((head.form, head.run), (FORM, Some(7)));
    assert_eq!(
        names(&lines),
        [
            "a.example.com",
            "b.example.com",
            "c.example.com",
            "d.example.com"
        ]
    );
    assert!(lines.iter().all(|line| line.run == 7 && line.times == 1));
    let ask = Ask {
        instance: Some(notes),
        ..Ask::default()
    };
    assert_eq!(names(&printed(folder.path(), &ask).1), ["b.example.com"]);
}

#[test]
fn only_the_last_so_many_milliseconds_are_printed_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, rings::FILE_BYTES).unwrap();
    rings.write(event(&weather(), Phase::Opened, 1, "old.example.com", 100));
    rings.write(event(
        &weather(),
        Phase::Opened,
        2,
        "new.example.com",
        now_ms(),
    ));
    let ask = Ask {
        last_ms: Some(600_000),
        ..Ask::default()
    };
    assert_eq!(names(&printed(folder.path(), &ask).1), ["new.example.com"]);
}

#[test]
fn the_same_refusal_is_told_again_with_its_count_and_others_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, rings::FILE_BYTES).unwrap();
    for at in 0..1000 {
        rings.write(denied("x.example.com", 50_000 + at));
    }
    rings.write(denied("y.example.com", 51_000));
    let (_, lines) = printed(folder.path(), &Ask::default());
    assert_eq!(names(&lines), ["x.example.com", "y.example.com"]);
    rings.settle(61_000);
    let (_, lines) = printed(folder.path(), &Ask::default());
    let told: Vec<_> = names(&lines)
        .into_iter()
        .zip(lines.iter().map(|line| line.times))
        .collect();
    assert_eq!(
        told,
        [
            ("x.example.com", 1),
            ("y.example.com", 1),
            ("x.example.com", 999)
        ]
    );
    rings.write(denied("x.example.com", 70_000));
    assert_eq!(printed(folder.path(), &Ask::default()).1.len(), 4);
}

#[test]
fn two_files_bound_an_instance_and_what_is_still_open_is_carried_over() {
    const MOST: u64 = 8 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, MOST).unwrap();
    rings.write(event(&weather(), Phase::Opened, 1, "open.example.com", 1));
    rings.write(event(&weather(), Phase::Opened, 2, "done.example.com", 2));
    rings.write(event(&weather(), Phase::Closed, 2, "done.example.com", 3));
    for at in 0..500 {
        rings.write(denied(&format!("n{at}.example.com"), 10 + at));
    }
    let mut held = 0;
    for file in rings::files(folder.path(), &weather()) {
        let size = fs::metadata(file).unwrap().len();
        assert!(size > 0 && size <= MOST, "{size}");
        held += size;
    }
    assert!(held > MOST, "the older file is whole: {held}");

    let (_, lines) = printed(folder.path(), &Ask::default());
    assert_eq!(names(&lines).last(), Some(&"n499.example.com"));
    let carried: Vec<_> = lines.iter().filter(|line| line.carried).collect();
    assert!(!carried.is_empty());
    assert!(carried.iter().all(|line| line.event.id == 1));
    assert!(!names(&lines).contains(&"done.example.com"));
}

#[test]
fn the_files_of_the_longest_silent_instance_make_room_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, rings::FILE_BYTES).unwrap();
    for number in 0..256 {
        let key = InstanceKey::new("many", &format!("c{number}"));
        rings.write(event(&key, Phase::Opened, number, "a.example.com", number));
    }
    let silent = InstanceKey::new("many", "c17");
    let file = fs::File::options()
        .append(true)
        .open(&rings::files(folder.path(), &silent)[1])
        .unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    rings.write(event(&weather(), Phase::Opened, 999, "a.example.com", 999));
    let kept = rings::instances(folder.path()).unwrap();
    assert_eq!(kept.len(), 256);
    assert!(kept.contains(&weather()) && !kept.contains(&silent));
}

#[test]
fn what_is_no_line_is_counted_as_lost_and_what_follows_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, rings::FILE_BYTES).unwrap();
    rings.write(event(&weather(), Phase::Opened, 1, "a.example.com", 1));
    drop(rings);
    let path = rings::files(folder.path(), &weather())[1].clone();
    let mut file = fs::File::options().append(true).open(path).unwrap();
    let foreign = event(
        &InstanceKey::new("other", "one"),
        Phase::Opened,
        5,
        "forged.example.com",
        5,
    );
    let foreign = Line {
        run: 7,
        times: 1,
        carried: false,
        event: foreign,
    };
    writeln!(file, "{}", serde_json::to_string(&foreign).unwrap()).unwrap();
    writeln!(file, "{}", "x".repeat(40_000)).unwrap();
    // A worker that was ended while it wrote.
    write!(file, "{{\"run\":7,\"ti").unwrap();
    let mut rings = Rings::open(folder.path(), 8, rings::FILE_BYTES).unwrap();
    rings.write(event(&weather(), Phase::Opened, 1, "b.example.com", 9));

    let (head, lines) = printed(folder.path(), &Ask::default());
    assert_eq!(head.run, Some(8));
    let known: Vec<_> = names(&lines)
        .into_iter()
        .filter(|name| *name != "-")
        .collect();
    assert_eq!(known, ["a.example.com", "b.example.com"]);
    assert_eq!(lines.last().unwrap().run, 8);
    let lost = lines.iter().filter(|line| line.event.phase == Phase::Lost);
    assert!(lost.count() >= 3);
}

#[test]
fn one_instances_flood_is_counted_and_costs_the_others_nothing() {
    let shared = Shared::default();
    let flood = event(&weather(), Phase::Denied, 0, "x.example.com", 1);
    for _ in 0..PENDING_EACH {
        assert!(shared.admit(&flood));
    }
    assert!(!shared.admit(&flood));
    assert!(!shared.admit(&flood));
    let notes = InstanceKey::new("notebook", "notes");
    assert!(shared.admit(&event(&notes, Phase::Opened, 1, "a.example.com", 1)));
    assert_eq!(shared.losses(), [], "not before what was taken is written");
    for _ in 0..PENDING_EACH {
        shared.taken(&weather());
    }
    assert_eq!(shared.losses(), [(weather(), NETWORK.to_owned(), 2)]);
    assert_eq!(shared.losses(), []);
}

#[test]
fn a_recorder_writes_what_it_was_given_before_its_thread_ends() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::start_with(folder.path(), rings::FILE_BYTES, LONG).unwrap();
    assert_eq!((recorder.next_id(), recorder.clone().next_id()), (1, 2));
    let mut long = event(&weather(), Phase::Opened, 1, &"ü".repeat(300), now_ms());
    long.reason = Some(Why {
        code: "x".to_owned(),
        text: "y\u{1b}[2J".to_owned() + &"z".repeat(1000),
    });
    recorder.record(long);
    drop(recorder);
    // The thread ends by itself; its last line is whole when it is there.
    let lines = loop {
        let (_, lines) = printed(folder.path(), &Ask::default());
        if !lines.is_empty() {
            break lines;
        }
        thread::yield_now();
    };
    let name = lines[0].event.name.clone().unwrap();
    assert!(name.len() <= NAME_MAX + '…'.len_utf8() && name.ends_with('…'));
    let why = lines[0].event.reason.clone().unwrap();
    assert!(why.text.len() <= TEXT_MAX + '…'.len_utf8());
    let raw = fs::read(&rings::files(folder.path(), &weather())[1]).unwrap();
    assert!(!raw.contains(&0x1b), "control characters are escaped");
}

/// Collects what a follower prints; refuses more after the `most`-th line, as a reader that went away does.
struct Until {
    text: Vec<u8>,
    most: usize,
    begun: std::sync::mpsc::Sender<()>,
}

impl Write for Until {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
        if lines(&self.text) >= self.most {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.begun.send(());
        Ok(())
    }
}

#[test]
fn a_follower_sees_each_event_once_over_the_change_of_files_and_runs() {
    const EVENTS: u64 = 100;
    let folder = tempfile::tempdir().unwrap();
    let mut rings = Rings::open(folder.path(), 7, 16 * 1024).unwrap();
    rings.write(event(&weather(), Phase::Opened, 1, "first.example.com", 1));
    let (begun, began) = std::sync::mpsc::channel();
    let path = folder.path().to_owned();
    let follower = thread::spawn(move || {
        let mut out = Until {
            text: Vec::new(),
            // Two heads, the first event, the others, and one that nobody reads.
            most: 2 + 1 + EVENTS as usize,
            begun,
        };
        let ask = Ask {
            follow: true,
            ..Ask::default()
        };
        let ended = copy(&path, &ask, &mut out).unwrap_err();
        (ended.kind(), out.text)
    });
    began.recv().unwrap();
    drop(rings);
    let mut rings = Rings::open(folder.path(), 8, 16 * 1024).unwrap();
    for at in 0..EVENTS {
        rings.write(denied(&format!("n{at}.example.com"), 10 + at));
    }
    // Until the reader has gone away.
    let mut at = EVENTS;
    while !follower.is_finished() {
        began.recv_timeout(Duration::from_secs(20)).ok();
        rings.write(denied(&format!("n{at}.example.com"), 10 + at));
        at += 1;
    }
    let (kind, text) = follower.join().unwrap();
    assert_eq!(kind, io::ErrorKind::BrokenPipe);
    let text = String::from_utf8(text).unwrap();
    let (mut lines, mut runs) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match serde_json::from_str(line).unwrap() {
            Told::Head(head) => runs.push(head.run),
            Told::Line(line) => lines.push(line),
        }
    }
    assert_eq!(runs, [Some(7), Some(8)]);
    let expected: Vec<String> = std::iter::once("first".to_owned())
        .chain((0..EVENTS).map(|at| format!("n{at}")))
        .map(|name| format!("{name}.example.com"))
        .collect();
    assert_eq!(names(&lines), expected);
}

#[test]
fn the_roles_arguments_read_back_and_wrong_ones_are_named() {
    for ask in [
        Ask::default(),
        Ask {
            last_ms: Some(3_600_000),
            instance: Some(weather()),
            follow: true,
        },
    ] {
        let args = ask.args();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        assert_eq!(Ask::parse(&args), Ok(ask));
    }
    for (args, named) in [
        (&["--last"][..], "needs a value"),
        (&["--last", "1h"], "1h"),
        (&["--instance", "../x"], "../x"),
        (&["--folow"], "--folow"),
    ] {
        let refusal = Ask::parse(args).unwrap_err();
        assert!(refusal.contains(named), "{refusal}");
    }
}
