//! The files read back: what the role `log` prints.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use selu_compiler::model::InstanceKey;

use super::{Event, FORM, Head, Line, Phase, Told, Via, now_ms, rings};

/// Longest line that is read; what the worker writes is far shorter.
const LINE_MAX: u64 = 16 * 1024;

/// How often it is looked for more.
const PAUSE: Duration = Duration::from_millis(200);

/// What is asked of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Only what happened in the last so many milliseconds, by the gateway's clock.
    pub last_ms: Option<u64>,
    /// Only this instance.
    pub instance: Option<InstanceKey>,
    /// Go on with what happens from now on.
    pub follow: bool,
}

impl Ask {
    /// Reads the role's arguments; what they cannot be is said.
    pub fn parse(args: &[&str]) -> Result<Self, String> {
        let mut ask = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("`{arg}` needs a value after it"))
            };
            match *arg {
                "--last" => {
                    let text = value()?;
                    let number = text.parse();
                    ask.last_ms =
                        Some(number.map_err(|_| {
                            format!("`--last {text}` is not a number of milliseconds")
                        })?);
                }
                "--instance" => {
                    let text = value()?;
                    let key = InstanceKey::parse(text);
                    ask.instance =
                        Some(key.ok_or_else(|| {
                            format!("`--instance {text}` is not AGENT/CAPABILITY")
                        })?);
                }
                "--follow" => ask.follow = true,
                _ => {
                    return Err(format!(
                        "`{arg}` is unknown; there are --last MILLISECONDS, --instance AGENT/CAPABILITY and --follow"
                    ));
                }
            }
        }
        Ok(ask)
    }

    /// The role's arguments, as [`Ask::parse`] reads them.
    pub fn args(&self) -> Vec<String> {
        let mut args = Vec::new();
        if let Some(last) = self.last_ms {
            args.extend(["--last".to_owned(), last.to_string()]);
        }
        if let Some(instance) = &self.instance {
            args.extend(["--instance".to_owned(), instance.to_string()]);
        }
        if self.follow {
            args.push("--follow".to_owned());
        }
        args
    }

    fn wants(&self, line: &Line, now: u64) -> bool {
        self.last_ms
            .is_none_or(|last| line.event.time_ms >= now.saturating_sub(last))
    }
}

/// Prints as [`Told`] a [`Head`] and then every [`Line`] that is asked for, in the order of time. With `follow` it ends only with an
/// error, such as that nobody reads any more.
pub fn copy(folder: &Path, ask: &Ask, out: &mut impl Write) -> io::Result<()> {
    let now = now_ms();
    let mut run = rings::run(folder)?;
    print(out, &begin(run, now))?;
    let mut tails = Tails::new(folder, ask.instance.clone());
    tails.find()?;
    tails.merge(|line| {
        if ask.wants(line, now) {
            print(out, &Told::Line(line.clone()))?;
        }
        Ok(())
    })?;
    out.flush()?;
    if !ask.follow {
        return Ok(());
    }
    loop {
        thread::sleep(PAUSE);
        let now_running = rings::run(folder)?;
        if now_running != run {
            run = now_running;
            print(out, &begin(run, now_ms()))?;
        }
        tails.find()?;
        tails.merge(|line| {
            // Lines that are carried over were told before.
            if line.carried {
                Ok(())
            } else {
                print(out, &Told::Line(line.clone()))
            }
        })?;
        out.flush()?;
    }
}

fn begin(run: Option<u64>, now_ms: u64) -> Told {
    Told::Head(Head {
        form: FORM,
        run,
        now_ms,
    })
}

fn print(out: &mut impl Write, value: &Told) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Every instance's place in its files.
struct Tails {
    folder: PathBuf,
    only: Option<InstanceKey>,
    tails: BTreeMap<InstanceKey, Tail>,
}

/// One instance's place.
struct Tail {
    instance: InstanceKey,
    paths: [PathBuf; 2],
    at: Option<(BufReader<File>, u64)>,
    /// The next line, where it is known.
    next: Option<Line>,
    /// The begin of a line whose end is not written yet.
    begun: Vec<u8>,
    /// Whether this file is no longer written to.
    over: bool,
}

/// What comes after the end of a file.
enum Next {
    /// Nothing yet.
    Wait,
    /// It is to be read once more.
    Same,
    /// The next file.
    Follows,
    /// A later file; what was between is gone.
    Gap,
}

impl Tails {
    fn new(folder: &Path, only: Option<InstanceKey>) -> Self {
        Self {
            folder: folder.to_owned(),
            only,
            tails: BTreeMap::new(),
        }
    }

    /// Adds instances that were not there before, and forgets those whose files were removed.
    fn find(&mut self) -> io::Result<()> {
        let instances = rings::instances(&self.folder)?;
        self.tails.retain(|known, _| instances.contains(known));
        for instance in instances {
            if self.only.as_ref().is_some_and(|only| *only != instance) {
                continue;
            }
            let folder = &self.folder;
            self.tails
                .entry(instance)
                .or_insert_with_key(|instance| Tail {
                    instance: instance.clone(),
                    paths: rings::files(folder, instance),
                    at: None,
                    next: None,
                    begun: Vec::new(),
                    over: false,
                });
        }
        Ok(())
    }

    /// Every line that there is, the earliest first.
    fn merge(&mut self, mut each: impl FnMut(&Line) -> io::Result<()>) -> io::Result<()> {
        let mut heap = BinaryHeap::new();
        for (instance, tail) in &mut self.tails {
            if let Some(time) = tail.fill()? {
                heap.push(Reverse((time, instance.clone())));
            }
        }
        while let Some(Reverse((_, instance))) = heap.pop() {
            let Some(tail) = self.tails.get_mut(&instance) else {
                continue;
            };
            if let Some(line) = tail.next.take() {
                each(&line)?;
            }
            if let Some(time) = tail.fill()? {
                heap.push(Reverse((time, instance)));
            }
        }
        Ok(())
    }
}

impl Tail {
    /// Reads the next line if it is not known; its time.
    fn fill(&mut self) -> io::Result<Option<u64>> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        Ok(self.next.as_ref().map(|line| line.event.time_ms))
    }

    fn read(&mut self) -> io::Result<Option<Line>> {
        loop {
            let Some((reader, _)) = &mut self.at else {
                // From the begin of what there is.
                let older = open(&self.paths[0])?;
                self.at = match older {
                    Some(file) => Some(file),
                    None => open(&self.paths[1])?,
                };
                if self.at.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let room = LINE_MAX.saturating_sub(self.begun.len() as u64);
            let read = io::Read::take(&mut *reader, room).read_until(b'\n', &mut self.begun)?;
            if self.begun.ends_with(b"\n") {
                let line = serde_json::from_slice::<Line>(&self.begun);
                self.begun.clear();
                return Ok(Some(match line {
                    Ok(line) if line.event.instance == self.instance => line,
                    _ => self.lost(),
                }));
            }
            if room == 0 || self.begun.len() as u64 >= LINE_MAX {
                // No line of the worker's: it is passed over up to its end, in pieces.
                self.begun.clear();
                return Ok(Some(self.lost()));
            }
            if read > 0 {
                continue;
            }
            match self.next_file()? {
                Next::Wait => return Ok(None),
                Next::Same => {}
                Next::Follows if self.begun.is_empty() => {}
                Next::Follows | Next::Gap => {
                    self.begun.clear();
                    return Ok(Some(self.lost()));
                }
            }
        }
    }

    /// What comes after the end of this file.
    fn next_file(&mut self) -> io::Result<Next> {
        let Some((_, here)) = &self.at else {
            return Ok(Next::Wait);
        };
        let [older, newest] = [inode(&self.paths[0])?, inode(&self.paths[1])?];
        if newest.is_none_or(|newest| newest == *here) {
            return Ok(Next::Wait);
        }
        if !self.over {
            // Nothing is written to it any more, but something may have been since its end was met.
            self.over = true;
            return Ok(Next::Same);
        }
        // Files that were replaced twice meanwhile may have had another one between them.
        let (path, next) = match older {
            Some(older) if older != *here => (&self.paths[0], Next::Gap),
            _ => (&self.paths[1], Next::Follows),
        };
        if let Some(file) = open(path)? {
            self.at = Some(file);
            self.over = false;
            return Ok(next);
        }
        Ok(Next::Wait)
    }

    /// Stands for lines that cannot be read.
    fn lost(&self) -> Line {
        Line {
            run: 0,
            times: 0,
            carried: false,
            event: Event::new(&self.instance, "", Via::Tcp, Phase::Lost),
        }
    }
}

fn inode(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<Option<(BufReader<File>, u64)>> {
    match File::open(path) {
        Ok(file) => {
            let inode = file.metadata()?.ino();
            Ok(Some((BufReader::with_capacity(8 * 1024, file), inode)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
