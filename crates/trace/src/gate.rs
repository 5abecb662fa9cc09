//! What every file reader does with a parsed record: volume filter, plausibility, clock, counts.

use crate::error::{io, record};
use nandscape_core::{IoRecord, SimTime, TraceError, TraceOp, WorkloadInfo};
use nandscape_host::fs::Below;
use std::collections::BTreeMap;

/// Longest request that is believed: 2^40 bytes.
pub(crate) const LEN_MAX: u64 = 1 << 40;
/// Last believable start: 2^40 sectors of 512 B. Larger ones are nearly always memory addresses in a
/// mislabelled file.
pub(crate) const OFFSET_MAX: u64 = 1 << 49;
/// 100 years in nanoseconds; `SimTime` arithmetic relies on inputs below it.
pub(crate) const TIME_MAX_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Going back is an error (our own formats).
    Strict,
    /// Going back is counted, and the stamp raised to the one before.
    Clamp,
    /// As [`Clock::Clamp`], relative to the first request.
    ClampFromFirst,
    /// Left alone; a wrapper in [`crate::order`] sorts or spreads them.
    Raw,
    /// The format has none; every request arrives at 0.
    None,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSettings {
    /// Volumes to keep; empty keeps all. A number, `major,minor`, or the name the format gives them.
    pub(crate) volumes: Vec<String>,
    /// Believe addresses beyond [`OFFSET_MAX`].
    pub(crate) force: bool,
    /// A look at the first requests showed that the time stamps are only a counter.
    pub(crate) times_made_up: bool,
    /// What files are put on, where a format has files.
    pub(crate) files: Below,
    /// Bytes that a file system has; 0 if that is not known.
    pub(crate) volume_bytes: u64,
}

pub(crate) enum Parsed {
    /// A request; `at` is in nanoseconds of the format's own clock.
    Io(IoRecord),
    /// Not a request (summary, plug, non-data command).
    Skip,
    /// A header or empty line: passed over and not counted.
    Header,
    /// The format's own end mark: what follows is not looked at.
    End,
}

pub(crate) struct Gate {
    source: String,
    settings: ReadSettings,
    filter: Filter,
    clock: Clock,
    origin: Option<u64>,
    last: u64,
    pub(crate) info: WorkloadInfo,
    pub(crate) finished: bool,
}

impl Gate {
    pub(crate) fn new(source: &str, format: &str, clock: Clock, settings: &ReadSettings) -> Self {
        let info = WorkloadInfo {
            format: format.to_owned(),
            has_real_times: clock != Clock::None && !settings.times_made_up,
            ..WorkloadInfo::default()
        };
        Self {
            source: source.to_owned(),
            filter: Filter::new(&settings.volumes),
            settings: settings.clone(),
            clock,
            origin: None,
            last: 0,
            info,
            finished: false,
        }
    }

    pub(crate) fn fail(&mut self, place: String, message: impl Into<String>) -> TraceError {
        self.finished = true;
        record(&self.source, place, message)
    }

    /// The regular end: an error if there was no request at all.
    pub(crate) fn finish(&mut self, hint: Option<&str>) -> Option<TraceError> {
        self.finished = true;
        if self.info.records > 0 {
            return None;
        }
        let message = if let Some(seen) = self.filter.rejected() {
            format!("no records of volume {}; {seen}", self.settings.volumes.join(", "))
        } else if self.info.skipped > 0 {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("no I/O records: all {} lines or records were of other kinds{hint}", self.info.skipped)
        } else {
            "no records: the file is empty".to_owned()
        };
        Some(io(&self.source, message))
    }

    /// Checks one request. `None` if it is filtered out or does nothing. `label` gives the format's name of a
    /// volume.
    #[inline]
    pub(crate) fn admit<'a>(
        &mut self,
        mut record: IoRecord,
        label: impl Fn(u32) -> Option<&'a str>,
    ) -> Result<Option<IoRecord>, String> {
        if record.op == TraceOp::Flush {
            (record.offset, record.len) = (0, 0);
        } else {
            self.check_range(&record)?;
            if record.len == 0 && (record.op.is_read() || record.op.is_write()) {
                if self.clock == Clock::Strict {
                    return Err(
                        "a read, write or append of 0 bytes: expected a length of 1 or more".to_owned()
                    );
                }
                self.info.skipped += 1;
                return Ok(None);
            }
        }
        if !self.filter.keeps(record.volume, label) {
            return Ok(None);
        }
        record.at = SimTime(self.arrival(record.at.as_ns())?);
        self.info.records += 1;
        Ok(Some(record))
    }

    #[inline]
    fn check_range(&self, record: &IoRecord) -> Result<(), String> {
        if record.len > LEN_MAX {
            return Err(format!("length {} B: expected at most 2^40", record.len));
        }
        let end = record.offset.checked_add(record.len);
        if end.is_none_or(|_| record.offset > OFFSET_MAX && !self.settings.force) {
            return Err(match end {
                None => format!("offset {} + length {} exceeds 2^64", record.offset, record.len),
                Some(_) => format!(
                    "offset {} B lies beyond 2^40 sectors: expected a disk address, this looks like a memory address (force \
                     reads it all the same)",
                    record.offset
                ),
            });
        }
        Ok(())
    }

    #[inline]
    fn arrival(&mut self, stamp: u64) -> Result<u64, String> {
        let origin = *self.origin.get_or_insert(stamp);
        let relative = match self.clock {
            Clock::None => return Ok(0),
            Clock::Raw => {
                if stamp.abs_diff(origin) > TIME_MAX_NS {
                    return Err(too_late(stamp.abs_diff(origin)));
                }
                return Ok(stamp);
            }
            Clock::ClampFromFirst => stamp.saturating_sub(origin),
            Clock::Strict | Clock::Clamp => stamp,
        };
        if relative > TIME_MAX_NS {
            return Err(too_late(relative));
        }
        let went_back = match self.clock {
            Clock::ClampFromFirst => stamp < origin || relative < self.last,
            _ => relative < self.last,
        };
        if went_back {
            if self.clock == Clock::Strict {
                return Err(format!("time goes back from {} ns to {relative} ns", self.last));
            }
            self.info.time_reversals += 1;
        }
        self.last = self.last.max(relative);
        Ok(self.last)
    }
}

#[cold]
fn too_late(ns: u64) -> String {
    format!("time {ns} ns: expected less than 100 years; is the time unit right?")
}

struct Filter {
    keys: Vec<String>,
    decided: BTreeMap<u32, bool>,
    last: Option<(u32, bool)>,
    rejected: Vec<String>,
}

impl Filter {
    /// Volumes that are named in an error at most.
    const SHOWN: usize = 12;

    fn new(keys: &[String]) -> Self {
        Self { keys: keys.to_vec(), decided: BTreeMap::new(), last: None, rejected: Vec::new() }
    }

    #[inline]
    fn keeps<'a>(&mut self, volume: u32, label: impl Fn(u32) -> Option<&'a str>) -> bool {
        if self.keys.is_empty() {
            return true;
        }
        if let Some((same, kept)) = self.last
            && same == volume
        {
            return kept;
        }
        let kept = self.decide(volume, label(volume));
        self.last = Some((volume, kept));
        kept
    }

    fn decide(&mut self, volume: u32, label: Option<&str>) -> bool {
        if let Some(&kept) = self.decided.get(&volume) {
            return kept;
        }
        let kept = self.keys.iter().any(|key| {
            match label {
                // `0` for `hm_0`, `sdb` for `/dev/sdb`: the number of a named volume means nothing to anyone.
                Some(label) => label
                    .strip_suffix(key.as_str())
                    .is_some_and(|before| before.is_empty() || before.ends_with(['_', '/'])),
                None => key.parse() == Ok(volume) || major_minor(key) == Some(volume),
            }
        });
        if !kept && self.rejected.len() < Self::SHOWN {
            self.rejected.push(label.map_or_else(|| volume.to_string(), str::to_owned));
        }
        self.decided.insert(volume, kept);
        kept
    }

    fn rejected(&self) -> Option<String> {
        (!self.rejected.is_empty()).then(|| {
            let more = if self.rejected.len() == Self::SHOWN { ", ..." } else { "" };
            format!("the file has {}{more}", self.rejected.join(", "))
        })
    }
}

/// Linux device number as blkparse and FIU files give it, in the kernel's 12 + 20 bits.
pub(crate) fn device_number(major: u32, minor: u32) -> u32 {
    (major << 20) | (minor & 0xf_ffff)
}

fn major_minor(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once([',', ':'])?;
    Some(device_number(major.parse().ok()?, minor.parse().ok()?))
}

/// Names that a format gives its volumes (MSR hosts, fio files), numbered in order of first appearance.
#[derive(Default)]
pub(crate) struct Labels {
    ids: BTreeMap<Vec<u8>, u32>,
    names: Vec<String>,
    last: Option<u32>,
}

impl Labels {
    /// More names than this are refused: the column is not a volume name.
    const MOST: usize = 65_536;

    pub(crate) fn id(&mut self, name: &[u8]) -> Result<u32, String> {
        if let Some(last) = self.last
            && self.names[last as usize].as_bytes() == name
        {
            return Ok(last);
        }
        let id = if let Some(&id) = self.ids.get(name) {
            id
        } else {
            if self.ids.len() == Self::MOST {
                return Err(format!("more than {} volume names", Self::MOST));
            }
            let id = self.ids.len() as u32;
            self.ids.insert(name.to_vec(), id);
            self.names.push(String::from_utf8_lossy(name).into_owned());
            id
        };
        self.last = Some(id);
        Ok(id)
    }

    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.names.get(id as usize).map(String::as_str)
    }
}
