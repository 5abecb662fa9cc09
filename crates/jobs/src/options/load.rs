//! Options that say what a job does and where.

use super::parts::{block_aligns, block_ranges, block_sizes, block_splits, distribution};
use super::{Given, Read, Set, read};
use crate::job::{FileService, Job, Pattern, Sequencer};
use crate::values::{Expected, integer, per_direction, signed};

/// In the order of fio's documentation.
pub(super) static OPTIONS: &[Read] = &[
    read("filename", |job, _, v| {
        job.filenames = names(v.text()?);
        if job.filenames.is_empty() { Err("a name such as ns1".to_owned()) } else { Ok(()) }
    }),
    read("file_service_type", |job, _, v| file_service(job, v)),
    read("rw|readwrite", |job, _, v| pattern(job, v)),
    read("rw_sequencer", |job, _, v| {
        job.sequencer =
            v.choose(&[("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)])?;
        Ok(())
    }),
    read("bs|blocksize", |job, _, v| block_sizes(v, &mut job.block_size)),
    read("bsrange|blocksize_range", |job, _, v| block_ranges(v, &mut job.block_size)),
    read("bssplit", |job, _, v| block_splits(v, &mut job.block_size)),
    ("bs_unaligned|blocksize_unaligned", Set::Flag(|job| &mut job.is_unaligned)),
    read("ba|blockalign", |job, _, v| block_aligns(v, &mut job.block_align)),
    ("size", Set::Amount(|job| &mut job.size)),
    ("io_size|io_limit", Set::Amount(|job| &mut job.io_size)),
    ("offset|fileoffset", Set::Amount(|job| &mut job.offset)),
    ("offset_increment", Set::Amount(|job| &mut job.offset_increment)),
    ("offset_align", Set::Count(|job| &mut job.offset_align, 0..=1 << 40)),
    read("number_ios", |job, _, v| {
        job.number_ios = Some(v.count(0..=u64::MAX)?).filter(|n| *n > 0);
        Ok(())
    }),
    read("random_distribution", |job, _, v| distribution(v, &mut job.distribution)),
    read("percentage_random", |job, _, v| {
        per_direction(v.text()?, &mut job.percent_random, |text| {
            Given { text: Some(text), ..v }.count32(0..=100)
        })
    }),
    ("norandommap", Set::Flag(|job| &mut job.no_random_map)),
    read("randseed", |job, _, v| {
        job.seed = Some(integer(v.text()?, v.base)?);
        Ok(())
    }),
    read("rwmixread", |job, _, v| {
        job.read_percent = v.count32(0..=100)?;
        Ok(())
    }),
    read("rwmixwrite", |job, _, v| {
        job.read_percent = 100 - v.count32(0..=100)?;
        Ok(())
    }),
];

/// Names with ':' between; one that belongs to a name stands as `\\:`.
pub(super) fn names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&':').is_some() => names.last_mut().expect("one").push(':'),
            ':' => names.push(String::new()),
            c => names.last_mut().expect("one").push(c),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn pattern(job: &mut Job, v: Given<'_>) -> Result<(), Expected> {
    let text = v.text()?;
    let (name, modifier) = text.split_once(':').map_or((text, None), |(name, by)| (name, Some(by)));
    let (base, is_random) = name.strip_prefix("rand").map_or((name, false), |base| (base, true));
    let (reads, writes, trims) = match base {
        "read" => (true, false, false),
        "write" => (false, true, false),
        "trim" => (false, false, true),
        "rw" => (true, true, false),
        "readwrite" if !is_random => (true, true, false),
        "trimwrite" => (false, true, true),
        _ => {
            let names = "read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite";
            return Err(format!("{names} or randtrimwrite, then :N if wanted"));
        }
    };
    job.pattern = Pattern { reads, writes, trims, is_random, trim_then_write: base == "trimwrite" };
    (job.jump_every, job.skip_bytes) = (1, 0);
    match modifier {
        None => {}
        Some(n) if is_random => {
            let n = integer(n, v.base).ok().filter(|n| (1..=u64::from(u32::MAX)).contains(n));
            job.jump_every =
                n.ok_or_else(|| format!("{name}:N with N requests between two jumps, 1 or more"))? as u32;
        }
        Some(n) => {
            let n = signed(n, v.base).ok().filter(|n| n.unsigned_abs() <= 1 << 50);
            job.skip_bytes = n.ok_or_else(|| {
                format!("{name}:BYTES with the bytes to skip after each request, such as 4k or -8k")
            })?;
        }
    }
    Ok(())
}

fn file_service(job: &mut Job, v: Given<'_>) -> Result<(), Expected> {
    let text = v.text()?;
    let (name, turn) = text.split_once(':').unwrap_or((text, "1"));
    job.file_service = match name {
        "roundrobin" => FileService::RoundRobin,
        "random" => FileService::Random,
        "sequential" => FileService::Sequential,
        _ => return Err("roundrobin, random or sequential, then :N requests a turn if wanted".to_owned()),
    };
    job.file_service_turn = Given { text: Some(turn), ..v }.count32(1..=u32::MAX)?;
    Ok(())
}
