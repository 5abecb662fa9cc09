//! Options of jobs that issue the requests of a recording.

use super::load::names;
use super::{Read, Set, read};
use crate::Direction;
use crate::values::flag;

/// In the order of fio's documentation.
pub(super) static OPTIONS: &[Read] = &[
    read("read_iolog", |job, _, v| {
        let files = names(v.text()?);
        if files.is_empty() || files.iter().any(|file| file == "-") {
            return Err("a trace file, or one for each copy of numjobs with ':' between".to_owned());
        }
        job.recording.files = files;
        Ok(())
    }),
    // Recordings are always read as the run goes on.
    read("read_iolog_chunked", |_, _, v| flag(v.text).map(|_| ())),
    ("replay_no_stall", Set::Flag(|job| &mut job.recording.never_stalls)),
    ("replay_time_scale", Set::Count(|job| &mut job.recording.rate_percent, 1..=1_000_000)),
    read("replay_redirect", |job, _, v| {
        job.recording.redirect = Some(v.text()?.to_owned());
        Ok(())
    }),
    read("replay_align", |job, _, v| {
        let align = v.count(0..=1 << 40)?.max(1);
        if !align.is_power_of_two() {
            return Err("a power of two such as 4k".to_owned());
        }
        job.recording.align = align;
        Ok(())
    }),
    read("replay_scale", |job, _, v| {
        job.recording.scale = v.count(0..=1 << 40)?.max(1);
        Ok(())
    }),
    read("replay_skip", |job, _, v| {
        let recording = &mut job.recording;
        (recording.skips, recording.skips_flushes) = ([false; 3], false);
        for name in v.text()?.split(',').map(str::trim) {
            match name {
                "read" => recording.skips[Direction::Read as usize] = true,
                "write" => recording.skips[Direction::Write as usize] = true,
                "trim" => recording.skips[Direction::Trim as usize] = true,
                "sync" => recording.skips_flushes = true,
                _ => return Err("a list of read, write, trim and sync, such as trim,sync".to_owned()),
            }
        }
        Ok(())
    }),
];

/// Options that say what a job requests, which a recording says itself.
const OF_REQUESTS: &[&str] = &[
    "rw",
    "readwrite",
    "rw_sequencer",
    "bs",
    "blocksize",
    "bsrange",
    "blocksize_range",
    "bssplit",
    "bs_unaligned",
    "blocksize_unaligned",
    "ba",
    "blockalign",
    "file_service_type",
    "random_distribution",
    "percentage_random",
    "norandommap",
    "randseed",
    "rwmixread",
    "rwmixwrite",
];

/// Why an option changes nothing in a job with or without a recording, if it does not.
pub(crate) fn matters_not(key: &str, has_recording: bool) -> Option<(&'static str, &'static str)> {
    if has_recording {
        let of_requests = OF_REQUESTS.iter().find(|name| **name == key);
        return of_requests.map(|name| (*name, "read_iolog says what is requested"));
    }
    let own = OPTIONS.iter().map(|(name, _)| *name).find(|name| *name == key);
    own.map(|name| (name, "matters only with read_iolog"))
}
