//! How a disk that was used without its cache is told from one that was not.
//!
//! Both sides hold a number of the session, which grows each time the cache is about to write to the disk:
//! the superblock of the cache in the stamp of the volume, the disk in a [`Mark`] beside it. At the end of a
//! session both take down the [`DiskState`] that the cache leaves behind. The order is such that a cut
//! between two writes is told from a strange write:
//! * begin: mark (session + 1, open), then stamp (session + 1, open), then the first write to the disk;
//! * end: the disk is flushed, mark (session, state), then stamp (session, state).

use super::counts::GivenUp;
use crate::metadata::Volume;
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// A disk may have been written to so long after the last sign of life of its cache, in nanoseconds: signs
/// come each second, and may be a commit of the file system behind.
pub const TOLERANCE_NS: u64 = 10_000_000_000;

/// What a disk looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskState {
    /// Size in bytes.
    pub bytes: u64,
    /// When it was written to last, in nanoseconds since 1970; 0 where nobody keeps that.
    pub changed_ns: u64,
    /// See [`super::fingerprint()`].
    pub fingerprint: u64,
}

impl DiskState {
    /// All of it in one number, which is not 0.
    pub fn digest(&self) -> u64 {
        let mut bytes = [0; 24];
        for (place, number) in bytes.chunks_exact_mut(8).zip([self.bytes, self.changed_ns, self.fingerprint])
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        xxh3_64(&bytes).max(1)
    }
}

/// The stamp of a volume in the superblock of its cache ([`Volume::stamp`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The session; 0 if there never was one, so that nothing is known of the disk.
    pub session: u64,
    /// [`DiskState::digest`] at its end; 0 while it is open.
    pub digest: u64,
}

impl Stamp {
    /// From a superblock.
    pub fn decode(stamp: &[u8; 16]) -> Self {
        let number = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
        Self { session: number(&stamp[..8]), digest: number(&stamp[8..]) }
    }

    /// For a superblock.
    pub fn encode(self) -> [u8; 16] {
        let mut stamp = [0; 16];
        stamp[..8].copy_from_slice(&self.session.to_le_bytes());
        stamp[8..].copy_from_slice(&self.digest.to_le_bytes());
        stamp
    }
}

/// What lies beside a disk that has a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Of the cache.
    pub cache: [u8; 16],
    /// Of the volume in it.
    pub volume: [u8; 16],
    /// The session.
    pub session: u64,
    /// What the cache left at its end; `None` while it is open.
    pub closed: Option<DiskState>,
    /// That the cache was given up in this session.
    pub given_up: Option<GivenUp>,
}

const HEAD: &str = "# This disk has a cache (nandscape), which may hold newer data than the disk. Before the disk is used alone, the\n\
                    # cache has to be taken off: nandscape cache detach\n";

impl Mark {
    /// As text, with a checksum in its last line: less than 512 bytes, and 100 KiB if many ranges were lost
    /// when the cache was given up.
    pub fn to_text(&self) -> String {
        let mut text = HEAD.to_owned();
        let mut line = |name: &str, value: String| text.push_str(&[name, " = ", &value, "\n"].concat());
        line("cache", hex(&self.cache));
        line("volume", hex(&self.volume));
        line("session", self.session.to_string());
        if let Some(state) = self.closed {
            line("bytes", state.bytes.to_string());
            line("changed_ns", state.changed_ns.to_string());
            line("fingerprint", state.fingerprint.to_string());
        }
        if let Some(given_up) = &self.given_up {
            line("given_up", given_up.to_text());
        }
        let sum = xxh3_64(text.as_bytes()).to_string();
        [&text, "sum = ", &sum, "\n"].concat()
    }

    /// From text; `None` if it is damaged or no mark.
    pub fn parse(text: &str) -> Option<Self> {
        let (body, sum) = text.trim_end_matches('\0').strip_suffix('\n')?.rsplit_once('\n')?;
        let body = [body, "\n"].concat();
        if sum.strip_prefix("sum = ")?.parse() != Ok(xxh3_64(body.as_bytes())) {
            return None;
        }
        let value = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let number = |name: &str| value(name)?.parse().ok();
        let state = || {
            Some(DiskState {
                bytes: number("bytes")?,
                changed_ns: number("changed_ns")?,
                fingerprint: number("fingerprint")?,
            })
        };
        Some(Self {
            cache: unhex(value("cache")?)?,
            volume: unhex(value("volume")?)?,
            session: number("session")?,
            closed: state(),
            given_up: value("given_up")
                .map(GivenUp::parse)
                .map_or(Some(None), |given_up| given_up.map(Some))?,
        })
    }
}

/// A uuid as 32 digits.
pub fn hex(uuid: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*uuid))
}

fn unhex(text: &str) -> Option<[u8; 16]> {
    let mut uuid = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in uuid.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(uuid)
}

/// What was found beside a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside {
    /// A mark.
    Mark(Mark),
    /// Something that was a mark, or should be.
    Damaged,
    /// Nothing.
    Nothing,
    /// Nothing can be kept there: a block device.
    NoPlace,
}

/// Why a disk is not as its cache left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The mark names another cache, or another volume of this one.
    OtherCache {
        /// Uuid that it names.
        found: [u8; 16],
        /// Uuid that was expected.
        expected: [u8; 16],
    },
    /// One of the two is a copy from an earlier time.
    Session {
        /// Of the disk.
        disk: u64,
        /// Of the cache.
        cache: u64,
    },
    /// It has another size.
    Size {
        /// Now.
        found: u64,
        /// When the cache left it.
        expected: u64,
    },
    /// It was written to after the cache had left it.
    Written {
        /// When, in nanoseconds since 1970.
        at_ns: u64,
        /// When the cache had last written to it, or was last known to be alive.
        left_ns: u64,
    },
    /// Its content is another one where it was sampled.
    Content,
    /// The mark is missing, and without it nobody can tell.
    NoMark,
    /// The mark is damaged.
    DamagedMark,
    /// The cache was given up in its last session.
    GivenUp(GivenUp),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCache { found, expected } => {
                write!(f, "its stamp names {}, expected {}", hex(found), hex(expected))
            }
            Self::Session { disk, cache } => {
                write!(
                    f,
                    "its stamp is of session {disk}, expected {cache}: disk or cache is a copy of an earlier time"
                )
            }
            Self::Size { found, expected } => write!(f, "it has {found} bytes, expected {expected}"),
            Self::Written { at_ns, left_ns } => {
                let [at, left] = [at_ns, left_ns].map(|ns| ns / 1_000_000_000);
                write!(f, "it was written to at {at} (seconds since 1970), and its cache left it at {left}")
            }
            Self::Content => f.write_str("its content is not what its cache left"),
            Self::NoMark => f.write_str("its stamp file is missing"),
            Self::DamagedMark => f.write_str("its stamp file is damaged"),
            Self::GivenUp(given_up) => given_up.fmt(f),
        }
    }
}

/// Whether the disk of a volume is as its cache left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Same,
    /// Nothing speaks against it, and nothing for it.
    Unknown,
    /// It is not.
    Changed(Change),
}

/// Compares both stamps and the disk.
///
/// `alive_ns`: the last sign of life of the session that is open. `watched`: whether the places of the disk
/// to which it has not written hold what they held then ([`super::Watch`]), if that is known.
pub fn judge(
    cache: &[u8; 16],
    volume: &Volume,
    beside: &Beside,
    state: &DiskState,
    alive_ns: Option<u64>,
    watched: Option<bool>,
) -> Verdict {
    let stamp = Stamp::decode(&volume.stamp);
    let mark = match beside {
        Beside::Mark(mark) => Some(mark),
        Beside::Damaged if stamp.session != 0 => return Verdict::Changed(Change::DamagedMark),
        _ => None,
    };
    if let Some(mark) = mark {
        for (found, expected) in [(mark.cache, *cache), (mark.volume, volume.uuid)] {
            if found != expected {
                return Verdict::Changed(Change::OtherCache { found, expected });
            }
        }
    }
    if state.bytes != volume.bytes {
        return Verdict::Changed(Change::Size { found: state.bytes, expected: volume.bytes });
    }
    let is_closed = stamp.digest != 0;
    match mark {
        _ if stamp.session == 0 => Verdict::Unknown,
        // The end of a session.
        Some(mark) if is_closed && mark.session == stamp.session => same_as(stamp.digest, mark.closed, state),
        // A beginning that was cut short before anything was written. One that was closed was of a newer
        // cache.
        Some(Mark { session, closed: None, .. }) if is_closed && *session == stamp.session + 1 => {
            same_as(stamp.digest, None, state)
        }
        // An end that was cut short, after everything was written.
        Some(Mark { session, closed: Some(closed), .. }) if *session == stamp.session => {
            same_as(closed.digest(), Some(*closed), state)
        }
        // A session that was cut short, or one begun after that.
        Some(Mark { session, closed: None, .. })
            if *session == stamp.session || *session == stamp.session + 1 =>
        {
            still_open(state, alive_ns, watched)
        }
        Some(mark) => Verdict::Changed(Change::Session { disk: mark.session, cache: stamp.session }),
        None if is_closed => same_as(stamp.digest, None, state),
        None if *beside == Beside::NoPlace => still_open(state, None, watched),
        None => Verdict::Changed(Change::NoMark),
    }
}

fn same_as(digest: u64, closed: Option<DiskState>, state: &DiskState) -> Verdict {
    if state.digest() == digest {
        return Verdict::Same;
    }
    Verdict::Changed(match closed {
        Some(closed) if closed.digest() == digest && closed.changed_ns != state.changed_ns => {
            Change::Written { at_ns: state.changed_ns, left_ns: closed.changed_ns }
        }
        _ => Change::Content,
    })
}

fn still_open(state: &DiskState, alive_ns: Option<u64>, watched: Option<bool>) -> Verdict {
    match alive_ns {
        Some(alive_ns) if state.changed_ns > alive_ns.saturating_add(TOLERANCE_NS) => {
            Verdict::Changed(Change::Written { at_ns: state.changed_ns, left_ns: alive_ns })
        }
        _ if watched == Some(false) => Verdict::Changed(Change::Content),
        _ if watched == Some(true) => Verdict::Same,
        Some(_) if state.changed_ns != 0 => Verdict::Same,
        _ => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Counts;
    use super::*;

    const CACHE: [u8; 16] = [7; 16];
    const LEFT: DiskState = DiskState { bytes: 1 << 20, changed_ns: 5_000_000_000, fingerprint: 77 };

    fn volume(session: u64, closed: Option<DiskState>) -> Volume {
        let digest = closed.map_or(0, |state| state.digest());
        let stamp = Stamp { session, digest }.encode();
        Volume { id: 0, uuid: [9; 16], bytes: LEFT.bytes, stamp }
    }

    fn mark(session: u64, closed: Option<DiskState>) -> Mark {
        Mark { cache: CACHE, volume: [9; 16], session, closed, given_up: None }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_never_when_a_byte_of_it_is_another() {
        let given_up = Some(GivenUp { number: u32::MAX, counts: Counts::Within(Vec::new()) });
        for mark in [mark(3, None), mark(u64::MAX, Some(LEFT)), Mark { given_up, ..mark(u64::MAX, None) }] {
            let text = mark.to_text();
            assert!(text.len() < 512, "{} bytes", text.len());
            assert_eq!(Mark::parse(&text), Some(mark.clone()));
            assert_eq!(
                Mark::parse(&(text.clone() + "\0\0")),
                Some(mark),
                "what pads a block is no part of it"
            );
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                assert_eq!(
                    String::from_utf8(bytes).ok().and_then(|text| Mark::parse(&text)),
                    None,
                    "byte {at}"
                );
            }
        }
        assert_eq!(Mark::parse(""), None);
    }

    #[test]
    fn every_cut_of_a_session_leaves_what_counts_as_the_same_disk() {
        let later = DiskState { changed_ns: 9_000_000_000, fingerprint: 78, ..LEFT };
        // Each write in order: mark and stamp of the beginning, writes to the disk, mark and stamp of the
        // end.
        let steps = [
            (mark(3, Some(LEFT)), volume(3, Some(LEFT)), LEFT),
            (mark(4, None), volume(3, Some(LEFT)), LEFT),
            (mark(4, None), volume(4, None), LEFT),
            (mark(4, None), volume(4, None), later),
            (mark(4, Some(later)), volume(4, None), later),
            (mark(4, Some(later)), volume(4, Some(later)), later),
        ];
        for (at, (mark, volume, state)) in steps.into_iter().enumerate() {
            let verdict =
                judge(&CACHE, &volume, &Beside::Mark(mark.clone()), &state, Some(9_000_000_000), None);
            assert_eq!(verdict, Verdict::Same, "step {at}");
            // The same with a strange write afterwards, which shows in the time or, where there is none, in
            // the content.
            let strange = DiskState { changed_ns: 60_000_000_000, fingerprint: 79, ..state };
            let verdict = judge(&CACHE, &volume, &Beside::Mark(mark), &strange, Some(9_000_000_000), None);
            assert!(matches!(verdict, Verdict::Changed(_)), "step {at}: {verdict:?}");
        }
    }

    #[test]
    fn copies_of_either_side_from_an_earlier_time_are_told() {
        let earlier = judge(&CACHE, &volume(4, None), &Beside::Mark(mark(3, Some(LEFT))), &LEFT, None, None);
        assert_eq!(earlier, Verdict::Changed(Change::Session { disk: 3, cache: 4 }), "the disk");
        let later = DiskState { changed_ns: 9_000_000_000, ..LEFT };
        let old = judge(&CACHE, &volume(3, Some(LEFT)), &Beside::Mark(mark(4, None)), &later, None, None);
        assert!(matches!(old, Verdict::Changed(_)), "the cache: {old:?}");
        let old =
            judge(&CACHE, &volume(3, Some(LEFT)), &Beside::Mark(mark(7, Some(LEFT))), &LEFT, None, None);
        assert_eq!(old, Verdict::Changed(Change::Session { disk: 7, cache: 3 }));
    }

    #[test]
    fn what_cannot_be_told_is_not_called_the_same() {
        let judged = |volume: &Volume, beside| judge(&CACHE, volume, &beside, &LEFT, None, None);
        assert_eq!(judged(&volume(4, None), Beside::NoPlace), Verdict::Unknown);
        assert_eq!(judged(&volume(4, Some(LEFT)), Beside::NoPlace), Verdict::Same);
        assert_eq!(judged(&volume(4, None), Beside::Nothing), Verdict::Changed(Change::NoMark));
        assert_eq!(
            judged(&volume(4, Some(LEFT)), Beside::Nothing),
            Verdict::Same,
            "the state alone shows it"
        );
        assert_eq!(judged(&volume(0, None), Beside::Nothing), Verdict::Unknown);
        // A session that was cut short, and one more that was begun over it and cut short before the cache
        // knew.
        for session in [4, 5] {
            let beside = Beside::Mark(mark(session, None));
            let alive = Some(LEFT.changed_ns);
            assert_eq!(
                judge(&CACHE, &volume(4, None), &beside, &LEFT, alive, None),
                Verdict::Same,
                "{session}"
            );
            assert_eq!(
                judge(&CACHE, &volume(4, None), &beside, &LEFT, None, None),
                Verdict::Unknown,
                "{session}"
            );
        }
        let other = Mark { cache: [8; 16], ..mark(4, Some(LEFT)) };
        let found = judged(&volume(4, Some(LEFT)), Beside::Mark(other));
        assert_eq!(found, Verdict::Changed(Change::OtherCache { found: [8; 16], expected: CACHE }));
        assert_eq!(judged(&volume(4, None), Beside::Damaged), Verdict::Changed(Change::DamagedMark));
    }
}
