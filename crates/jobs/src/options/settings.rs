//! Options that say when a job runs, how deep, how fast, with which hints, and what is reported.

use super::engine::engine;
use super::{Given, Read, Set, read};
use crate::job::{DataPlacement, Job, PlacementSelect, Rate, RateProcess, SyncWrites, ThinkBlocks};
use crate::values::{Expected, flag, integer, per_direction, real, time_ns};

const SECOND: u64 = 1_000_000_000;
const MICRO: u64 = 1_000;

/// In the order of fio's documentation.
pub(super) static OPTIONS: &[Read] = &[
    read("description", |job, _, v| {
        v.text.unwrap_or_default().clone_into(&mut job.description);
        Ok(())
    }),
    read("name", |job, _, v| {
        v.text()?.clone_into(&mut job.name);
        Ok(())
    }),
    read("wait_for", |job, _, v| {
        job.wait_for = Some(v.text()?.to_owned());
        Ok(())
    }),
    // Read before all others, see `sections::kb_base`.
    read("kb_base", |_, _, _| Ok(())),
    read("ioengine", engine),
    read("iodepth", |job, _, v| {
        job.depth = v.count32(1..=1 << 20)?;
        Ok(())
    }),
    read("numjobs", |_, extra, v| {
        extra.copies = v.count32(1..=65_536)?;
        Ok(())
    }),
    ("loops", Set::Count(|job| &mut job.loops, 1..=u32::MAX as u64)),
    read("startdelay|start_delay", |job, _, v| {
        let text = v.text()?;
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (from, to) = (time_ns(from, SECOND)?, time_ns(to, SECOND)?);
        job.start_delay_ns = (from.min(to), from.max(to));
        Ok(())
    }),
    read("runtime|timeout", |job, _, v| {
        job.runtime_ns = Some(time_ns(v.text()?, SECOND)?).filter(|ns| *ns > 0);
        Ok(())
    }),
    ("time_based", Set::Flag(|job| &mut job.is_time_based)),
    ("ramp_time", Set::Time(|job| &mut job.ramp_ns, SECOND)),
    ("thinktime", Set::Time(|job| &mut job.think_ns, MICRO)),
    // Spinning is part of the think time and differs only in what it costs a processor.
    read("thinktime_spin", |_, _, v| time_ns(v.text()?, MICRO).map(|_| ())),
    ("thinktime_blocks", Set::Count(|job| &mut job.think_blocks, 1..=u64::MAX)),
    read("thinktime_blocks_type", |job, _, v| {
        job.think_blocks_type =
            v.choose(&[("complete", ThinkBlocks::Complete), ("issue", ThinkBlocks::Issue)])?;
        Ok(())
    }),
    ("thinktime_iotime", Set::Time(|job| &mut job.think_io_ns, SECOND)),
    read("rate", |job, _, v| rates(job, v, |rate, n| rate.bytes_per_s = n)),
    read("rate_iops", |job, _, v| rates(job, v, |rate, n| rate.iops = n)),
    read("rate_process", |job, _, v| {
        job.rate_process = v.choose(&[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)])?;
        Ok(())
    }),
    ("rate_ignore_thinktime", Set::Flag(|job| &mut job.rate_ignores_think)),
    ("fsync", Set::Count(|job| &mut job.fsync, 0..=u64::MAX)),
    ("fdatasync", Set::Count(|job| &mut job.fdatasync, 0..=u64::MAX)),
    ("end_fsync", Set::Flag(|job| &mut job.end_fsync)),
    read("fsync_on_close", |job, _, v| {
        job.end_fsync |= flag(v.text)?;
        Ok(())
    }),
    read("sync", |job, _, v| {
        job.sync = match v.text()? {
            "none" | "0" => SyncWrites::None,
            "sync" | "1" | "dsync" => SyncWrites::Each,
            _ => return Err("none, sync or dsync".to_owned()),
        };
        Ok(())
    }),
    read("write_hint", |job, _, v| {
        job.write_hint =
            v.choose(&[("none", 0), ("short", 1), ("medium", 2), ("long", 3), ("extreme", 4)])?;
        Ok(())
    }),
    read("fadvise_stream", |job, _, v| {
        job.stream = Some(v.count32(0..=65_535)? as u16);
        Ok(())
    }),
    read("fdp", |job, _, v| {
        job.placement = if flag(v.text)? { DataPlacement::Fdp } else { DataPlacement::None };
        Ok(())
    }),
    read("dataplacement", |job, _, v| {
        job.placement = v.choose(&[
            ("none", DataPlacement::None),
            ("fdp", DataPlacement::Fdp),
            ("streams", DataPlacement::Streams),
        ])?;
        Ok(())
    }),
    read("plids|fdp_pli", |job, _, v| placement_ids(job, v)),
    read("plid_select|fdp_pli_select", |job, _, v| {
        job.placement_select = match v.text()? {
            "roundrobin" => PlacementSelect::RoundRobin,
            "random" => PlacementSelect::Random,
            _ => return Err("roundrobin or random (a scheme file is not read)".to_owned()),
        };
        Ok(())
    }),
    ("exitall", Set::Flag(|job| &mut job.ends_all)),
    ("stonewall|wait_for_previous", Set::Flag(|job| &mut job.waits_for_previous)),
    read("new_group", |_, extra, v| {
        extra.new_group = flag(v.text)?;
        Ok(())
    }),
    ("group_reporting", Set::Flag(|job| &mut job.group_reporting)),
    read("percentile_list", |job, _, v| percentiles(job, v)),
    ("clat_percentiles", Set::Flag(|job| &mut job.clat_percentiles)),
    ("lat_percentiles", Set::Flag(|job| &mut job.lat_percentiles)),
    ("write_bw_log", Set::Log(|job| &mut job.logs.bandwidth)),
    ("write_iops_log", Set::Log(|job| &mut job.logs.iops)),
    ("write_lat_log", Set::Log(|job| &mut job.logs.latency)),
    ("write_iolog", Set::Log(|job| &mut job.logs.requests)),
    read("log_avg_msec", |job, _, v| {
        job.logs.average_ns = v.count(0..=86_400_000)? * 1_000_000;
        Ok(())
    }),
    ("per_job_logs", Set::Flag(|job| &mut job.logs.per_job)),
];

fn rates(job: &mut Job, v: Given<'_>, set: fn(&mut Rate, u64)) -> Result<(), Expected> {
    let mut numbers = [None; 3];
    per_direction(v.text()?, &mut numbers, |text| integer(text, v.base).map(Some))?;
    for (rate, number) in job.rate.iter_mut().zip(numbers) {
        if let Some(number) = number {
            set(rate, number);
        }
    }
    Ok(())
}

/// No directive or placement interface has more.
const MAX_PLACEMENT_IDS: usize = 4096;

fn placement_ids(job: &mut Job, v: Given<'_>) -> Result<(), Expected> {
    let expected = || "placement ids from 0 to 65535, such as 0,1,4-7".to_owned();
    let mut ids = Vec::new();
    for part in v.text()?.split([',', ':']) {
        let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (from, to): (u16, u16) =
            (from.parse().map_err(|_| expected())?, to.parse().map_err(|_| expected())?);
        ids.extend((from..=to).take(MAX_PLACEMENT_IDS + 1));
        if ids.is_empty() || ids.len() > MAX_PLACEMENT_IDS {
            return Err(expected());
        }
    }
    job.placement_ids = ids;
    Ok(())
}

fn percentiles(job: &mut Job, v: Given<'_>) -> Result<(), Expected> {
    let expected =
        || "at most 20 percentages above 0 and up to 100 with ':' between, such as 50:99:99.9999".to_owned();
    let mut list = Vec::new();
    for part in v.text()?.split(':') {
        list.push(real(part).ok().filter(|p| *p > 0.0 && *p <= 100.0).ok_or_else(expected)?);
    }
    if list.len() > 20 {
        return Err(expected());
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    job.percentiles = list;
    Ok(())
}
