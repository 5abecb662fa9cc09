//! Options that say what a job does and where.

use super::parts::{
    amount, block_aligns, block_ranges, block_sizes, block_splits, count, count32, distribution,
};
use super::{Given, Option_, read};
use crate::job::{FileService, Job, Pattern, Sequencer};
use crate::values::{Expected, flag, integer, per_direction, signed};

/// In the order of fio's documentation.
pub(super) static OPTIONS: &[Option_] = &[
    read("filename", &[], |job, _, v| {
        job.filenames = v.text()?.split(':').filter(|f| !f.is_empty()).map(str::to_owned).collect();
        if job.filenames.is_empty() { Err("a name such as ns1".to_owned()) } else { Ok(()) }
    }),
    read("file_service_type", &[], |job, _, v| file_service(job, v)),
    read("rw", &["readwrite"], |job, _, v| pattern(job, v)),
    read("rw_sequencer", &[], |job, _, v| {
        job.sequencer = match v.text()? {
            "sequential" => Sequencer::Sequential,
            "identical" => Sequencer::Identical,
            _ => return Err("sequential or identical".to_owned()),
        };
        Ok(())
    }),
    read("bs", &["blocksize"], |job, _, v| block_sizes(v, &mut job.block_size)),
    read("bsrange", &["blocksize_range"], |job, _, v| block_ranges(v, &mut job.block_size)),
    read("bssplit", &[], |job, _, v| block_splits(v, &mut job.block_size)),
    read("bs_unaligned", &["blocksize_unaligned"], |job, _, v| {
        job.is_unaligned = flag(v.text)?;
        Ok(())
    }),
    read("ba", &["blockalign"], |job, _, v| block_aligns(v, &mut job.block_align)),
    read("size", &[], |job, _, v| {
        job.size = amount(v)?;
        Ok(())
    }),
    read("io_size", &["io_limit"], |job, _, v| {
        job.io_size = amount(v)?;
        Ok(())
    }),
    read("offset", &["fileoffset"], |job, _, v| {
        job.offset = amount(v)?;
        Ok(())
    }),
    read("offset_increment", &[], |job, _, v| {
        job.offset_increment = amount(v)?;
        Ok(())
    }),
    read("offset_align", &[], |job, _, v| {
        job.offset_align = count(v, 0, 1 << 40)?;
        Ok(())
    }),
    read("number_ios", &[], |job, _, v| {
        job.number_ios = Some(count(v, 0, u64::MAX)?).filter(|n| *n > 0);
        Ok(())
    }),
    read("random_distribution", &[], |job, _, v| distribution(v, &mut job.distribution)),
    read("percentage_random", &[], |job, _, v| {
        per_direction(v.text()?, &mut job.percent_random, |text| {
            count32(Given { text: Some(text), ..v }, 0, 100)
        })
    }),
    read("norandommap", &[], |job, _, v| {
        job.no_random_map = flag(v.text)?;
        Ok(())
    }),
    read("randseed", &[], |job, _, v| {
        job.seed = Some(integer(v.text()?, v.base)?);
        Ok(())
    }),
    read("rwmixread", &[], |job, _, v| {
        job.read_percent = count32(v, 0, 100)?;
        Ok(())
    }),
    read("rwmixwrite", &[], |job, _, v| {
        job.read_percent = 100 - count32(v, 0, 100)?;
        Ok(())
    }),
];

fn pattern(job: &mut Job, v: Given<'_>) -> Result<(), Expected> {
    let text = v.text()?;
    let (name, modifier) = match text.split_once(':') {
        Some((name, modifier)) => (name, Some(modifier)),
        None => (text, None),
    };
    let (reads, writes, trims, is_random, trim_then_write) = match name {
        "read" => (true, false, false, false, false),
        "write" => (false, true, false, false, false),
        "trim" => (false, false, true, false, false),
        "randread" => (true, false, false, true, false),
        "randwrite" => (false, true, false, true, false),
        "randtrim" => (false, false, true, true, false),
        "rw" | "readwrite" => (true, true, false, false, false),
        "randrw" => (true, true, false, true, false),
        "trimwrite" => (false, true, true, false, true),
        "randtrimwrite" => (false, true, true, true, true),
        _ => {
            return Err(
                "read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite or \
                        randtrimwrite, then :N if wanted"
                    .to_owned(),
            );
        }
    };
    job.pattern = Pattern { reads, writes, trims, is_random, trim_then_write };
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
    job.file_service_turn = count32(Given { text: Some(turn), ..v }, 1, u32::MAX)?;
    Ok(())
}
