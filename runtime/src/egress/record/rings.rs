//! The files: two per instance, the older one replaced when the newer is full.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use selu_compiler::model::InstanceKey;

use super::{Event, Line, Phase, Via};

/// Largest file. An instance has two.
pub(super) const FILE_BYTES: u64 = 1024 * 1024;

/// Instances that have files; those of the one that was written to longest ago go first.
const INSTANCES: usize = 256;

/// Files that are kept open.
const OPEN: usize = 64;

/// How long the same refusal is counted before it is told again.
const REPEATS_MS: u64 = 10_000;

/// How often it is looked which were counted long enough.
const SETTLE_MS: u64 = 1_000;

/// Different refusals of an instance that are compared; more are told each by itself.
const REFUSALS: usize = 64;

/// Open connections of an instance that are carried over to the next file.
const CARRIED: usize = 512;

/// What the newest file of an instance ends with.
const NEWEST: &str = ".log";
/// And the one before it.
const OLDER: &str = ".log.1";

/// Which run the worker is in.
const RUN: &str = "run";

/// Every instance's files, written by one thread.
pub(super) struct Rings {
    folder: PathBuf,
    run: u64,
    file_bytes: u64,
    rings: HashMap<InstanceKey, Ring>,
    settled_ms: u64,
    complained: bool,
}

#[derive(Default)]
struct Ring {
    file: Option<(File, u64)>,
    /// Lines of connections that are open, by their number.
    open: HashMap<u64, String>,
    repeats: HashMap<Refusal, Repeats>,
}

/// What makes two refusals the same.
#[derive(PartialEq, Eq, Hash)]
struct Refusal {
    via: Via,
    name: Option<String>,
    address: Option<IpAddr>,
    port: Option<u16>,
    code: Option<String>,
}

struct Repeats {
    since_ms: u64,
    times: u64,
    last: Event,
}

impl Rings {
    /// Begins a run in a folder that exists.
    pub(super) fn open(folder: &Path, run: u64, file_bytes: u64) -> io::Result<Self> {
        let new = folder.join("run.new");
        fs::write(&new, run.to_string())?;
        fs::rename(&new, folder.join(RUN))?;
        Ok(Self {
            folder: folder.to_owned(),
            run,
            file_bytes,
            rings: HashMap::new(),
            settled_ms: run,
            complained: false,
        })
    }

    /// Writes an event, unless the same refusal was just written: then it is counted.
    pub(super) fn write(&mut self, event: Event) {
        let ring = self.rings.entry(event.instance.clone()).or_default();
        if event.phase == Phase::Denied {
            let refusal = Refusal::of(&event);
            if let Some(repeats) = ring.repeats.get_mut(&refusal) {
                repeats.times += 1;
                repeats.last = event;
                return;
            }
            if ring.repeats.len() < REFUSALS {
                let repeats = Repeats {
                    since_ms: event.time_ms,
                    times: 0,
                    last: event.clone(),
                };
                ring.repeats.insert(refusal, repeats);
            }
        }
        self.append(event, 1);
    }

    /// Tells that events of an instance were lost.
    pub(super) fn lost(&mut self, instance: &InstanceKey, network: &str, count: u64) {
        let event = Event::new(instance, network, Via::Tcp, Phase::Lost);
        self.append(event, count);
    }

    /// Writes the refusals that were counted long enough.
    pub(super) fn settle(&mut self, now: u64) {
        if now.abs_diff(self.settled_ms) < SETTLE_MS {
            return;
        }
        self.settled_ms = now;
        let mut due = Vec::new();
        for ring in self.rings.values_mut() {
            ring.repeats.retain(|_, repeats| {
                // A clock that was set back settles them too.
                if now.abs_diff(repeats.since_ms) < REPEATS_MS {
                    return true;
                }
                if repeats.times > 0 {
                    due.push((repeats.last.clone(), repeats.times));
                }
                false
            });
        }
        for (event, times) in due {
            self.append(event, times);
        }
    }

    fn append(&mut self, event: Event, times: u64) {
        if let Err(error) = self.try_append(event, times)
            && !self.complained
        {
            self.complained = true;
            // A log that cannot be written is no reason to stop what it is about; the container's own log says so once.
            let _ = writeln!(
                io::stderr(),
                "selu gateway: the egress log cannot be written: {error}"
            );
        }
    }

    fn try_append(&mut self, event: Event, times: u64) -> io::Result<()> {
        let instance = event.instance.clone();
        let (phase, id) = (event.phase, event.id);
        let mut line = Line {
            run: self.run,
            times,
            carried: false,
            event,
        };
        let text = text_of(&line)?;

        if self
            .rings
            .get(&instance)
            .is_none_or(|ring| ring.file.is_none())
        {
            self.make_room(&instance)?;
        }
        let ring = self.rings.entry(instance.clone()).or_default();
        let path = self.folder.join(file_name(&instance, NEWEST));
        let (mut file, mut size) = match ring.file.take() {
            Some(open) => open,
            None => open_for_append(&path)?,
        };
        if size > 0 && size + text.len() as u64 > self.file_bytes {
            drop(file);
            fs::rename(&path, self.folder.join(file_name(&instance, OLDER)))?;
            (file, size) = open_for_append(&path)?;
            let carried: String = ring
                .open
                .values()
                .take(CARRIED)
                .map(String::as_str)
                .collect();
            file.write_all(carried.as_bytes())?;
            size += carried.len() as u64;
        }
        file.write_all(text.as_bytes())?;
        ring.file = Some((file, size + text.len() as u64));
        match phase {
            Phase::Opened if ring.open.len() < CARRIED => {
                line.carried = true;
                ring.open.insert(id, text_of(&line)?);
            }
            Phase::Closed => {
                ring.open.remove(&id);
            }
            Phase::Denied | Phase::Named | Phase::Opened | Phase::Lost => {}
        }
        Ok(())
    }

    /// Before a file is opened: closes those of others when many are open, and removes the longest unused when there
    /// are too many.
    fn make_room(&mut self, instance: &InstanceKey) -> io::Result<()> {
        let open = self.rings.values().filter(|ring| ring.file.is_some());
        if open.count() >= OPEN {
            for ring in self.rings.values_mut() {
                ring.file = None;
            }
            // What has nothing to remember is made anew when it is needed.
            self.rings
                .retain(|_, ring| !ring.open.is_empty() || !ring.repeats.is_empty());
        }
        if self.folder.join(file_name(instance, NEWEST)).exists() {
            return Ok(());
        }
        let mut known = instances(&self.folder)?;
        while known.len() >= INSTANCES {
            let at = |key: &InstanceKey| {
                let path = self.folder.join(file_name(key, NEWEST));
                fs::metadata(path).and_then(|file| file.modified()).ok()
            };
            let Some(oldest) = (0..known.len()).min_by_key(|index| at(&known[*index])) else {
                break;
            };
            let oldest = known.swap_remove(oldest);
            for ending in [NEWEST, OLDER] {
                remove(&self.folder.join(file_name(&oldest, ending)))?;
            }
            self.rings.remove(&oldest);
        }
        Ok(())
    }
}

impl Refusal {
    fn of(event: &Event) -> Self {
        Self {
            via: event.via,
            name: event.name.clone(),
            address: event.address,
            port: event.port,
            code: event.reason.as_ref().map(|why| why.code.clone()),
        }
    }
}

/// Instances that have a file in the folder, in order.
pub(super) fn instances(folder: &Path) -> io::Result<Vec<InstanceKey>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A gateway from which nothing may leave has no such folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        let stem = name.to_str().and_then(|name| {
            name.strip_suffix(NEWEST)
                .or_else(|| name.strip_suffix(OLDER))
        });
        let key = stem
            .and_then(|stem| stem.split_once('.'))
            .and_then(|(agent, capability)| InstanceKey::parse(&format!("{agent}/{capability}")));
        found.extend(key);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The files of an instance, the older first.
pub(super) fn files(folder: &Path, instance: &InstanceKey) -> [PathBuf; 2] {
    [OLDER, NEWEST].map(|ending| folder.join(file_name(instance, ending)))
}

/// Which run the worker is in.
pub(super) fn run(folder: &Path) -> io::Result<Option<u64>> {
    let mut text = String::new();
    match File::open(folder.join(RUN)) {
        Ok(file) => file.take(32).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    text.trim()
        .parse()
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Ids hold no dot, so a name stands for one instance only.
fn file_name(instance: &InstanceKey, ending: &str) -> String {
    format!("{}.{}{ending}", instance.agent(), instance.capability())
}

fn open_for_append(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    let mut size = file.metadata()?.len();
    if size > 0 {
        // A worker that was ended while it wrote left half a line.
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

fn text_of(line: &Line) -> io::Result<String> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(text)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
