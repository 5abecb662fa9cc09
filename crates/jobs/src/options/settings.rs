//! Options that say when a job runs, how deep, how fast, with which hints, and what is reported.

use super::engine::engine;
use super::parts::{count, count32};
use super::{Given, Option_, read};
use crate::job::{DataPlacement, Job, PlacementSelect, Rate, RateProcess, SyncWrites, ThinkBlocks};
use crate::values::{Expected, flag, integer, per_direction, real, time_ns};

const SECOND: u64 = 1_000_000_000;
const MICRO: u64 = 1_000;

/// In the order of fio's documentation.
pub(super) static OPTIONS: &[Option_] = &[
    read("description", &[], |job, _, v| {
        v.text.unwrap_or_default().clone_into(&mut job.description);
        Ok(())
    }),
    read("name", &[], |job, _, v| {
        v.text()?.clone_into(&mut job.name);
        Ok(())
    }),
    read("wait_for", &[], |job, _, v| {
        job.wait_for = Some(v.text()?.to_owned());
        Ok(())
    }),
    // Read before all others, see `sections::kb_base`.
    read("kb_base", &[], |_, _, _| Ok(())),
    read("ioengine", &[], engine),
    read("iodepth", &[], |job, _, v| {
        job.depth = count32(v, 1, 1 << 20)?;
        Ok(())
    }),
    read("numjobs", &[], |_, extra, v| {
        extra.copies = count32(v, 1, 65_536)?;
        Ok(())
    }),
    read("loops", &[], |job, _, v| {
        job.loops = count(v, 1, u64::from(u32::MAX))?;
        Ok(())
    }),
    read("startdelay", &["start_delay"], |job, _, v| {
        let text = v.text()?;
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (from, to) = (time_ns(from, SECOND)?, time_ns(to, SECOND)?);
        job.start_delay_ns = (from.min(to), from.max(to));
        Ok(())
    }),
    read("runtime", &["timeout"], |job, _, v| {
        job.runtime_ns = Some(time_ns(v.text()?, SECOND)?).filter(|ns| *ns > 0);
        Ok(())
    }),
    read("time_based", &[], |job, _, v| {
        job.is_time_based = flag(v.text)?;
        Ok(())
    }),
    read("ramp_time", &[], |job, _, v| {
        job.ramp_ns = time_ns(v.text()?, SECOND)?;
        Ok(())
    }),
    read("thinktime", &[], |job, _, v| {
        job.think_ns = time_ns(v.text()?, MICRO)?;
        Ok(())
    }),
    // Spinning is part of the think time and differs only in what it costs a processor.
    read("thinktime_spin", &[], |_, _, v| time_ns(v.text()?, MICRO).map(|_| ())),
    read("thinktime_blocks", &[], |job, _, v| {
        job.think_blocks = count(v, 1, u64::MAX)?;
        Ok(())
    }),
    read("thinktime_blocks_type", &[], |job, _, v| {
        job.think_blocks_type = match v.text()? {
            "complete" => ThinkBlocks::Complete,
            "issue" => ThinkBlocks::Issue,
            _ => return Err("complete or issue".to_owned()),
        };
        Ok(())
    }),
    read("thinktime_iotime", &[], |job, _, v| {
        job.think_io_ns = time_ns(v.text()?, SECOND)?;
        Ok(())
    }),
    read("rate", &[], |job, _, v| rates(job, v, |rate, n| rate.bytes_per_s = n)),
    read("rate_iops", &[], |job, _, v| rates(job, v, |rate, n| rate.iops = n)),
    read("rate_process", &[], |job, _, v| {
        job.rate_process = match v.text()? {
            "linear" => RateProcess::Linear,
            "poisson" => RateProcess::Poisson,
            _ => return Err("linear or poisson".to_owned()),
        };
        Ok(())
    }),
    read("rate_ignore_thinktime", &[], |job, _, v| {
        job.rate_ignores_think = flag(v.text)?;
        Ok(())
    }),
    read("fsync", &[], |job, _, v| {
        job.fsync = count(v, 0, u64::MAX)?;
        Ok(())
    }),
    read("fdatasync", &[], |job, _, v| {
        job.fdatasync = count(v, 0, u64::MAX)?;
        Ok(())
    }),
    read("end_fsync", &[], |job, _, v| {
        job.end_fsync = flag(v.text)?;
        Ok(())
    }),
    read("fsync_on_close", &[], |job, _, v| {
        job.end_fsync |= flag(v.text)?;
        Ok(())
    }),
    read("sync", &[], |job, _, v| {
        job.sync = match v.text()? {
            "none" | "0" => SyncWrites::None,
            "sync" | "1" | "dsync" => SyncWrites::Each,
            _ => return Err("none, sync or dsync".to_owned()),
        };
        Ok(())
    }),
    read("write_hint", &[], |job, _, v| {
        job.write_hint = match v.text()? {
            "none" => 0,
            "short" => 1,
            "medium" => 2,
            "long" => 3,
            "extreme" => 4,
            _ => return Err("none, short, medium, long or extreme".to_owned()),
        };
        Ok(())
    }),
    read("fadvise_stream", &[], |job, _, v| {
        job.stream = Some(count32(v, 0, 65_535)? as u16);
        Ok(())
    }),
    read("fdp", &[], |job, _, v| {
        job.placement = if flag(v.text)? { DataPlacement::Fdp } else { DataPlacement::None };
        Ok(())
    }),
    read("dataplacement", &[], |job, _, v| {
        job.placement = match v.text()? {
            "none" => DataPlacement::None,
            "fdp" => DataPlacement::Fdp,
            "streams" => DataPlacement::Streams,
            _ => return Err("none, fdp or streams".to_owned()),
        };
        Ok(())
    }),
    read("plids", &["fdp_pli"], |job, _, v| placement_ids(job, v)),
    read("plid_select", &["fdp_pli_select"], |job, _, v| {
        job.placement_select = match v.text()? {
            "roundrobin" => PlacementSelect::RoundRobin,
            "random" => PlacementSelect::Random,
            _ => return Err("roundrobin or random (a scheme file is not read)".to_owned()),
        };
        Ok(())
    }),
    read("exitall", &[], |job, _, v| {
        job.ends_all = flag(v.text)?;
        Ok(())
    }),
    read("stonewall", &["wait_for_previous"], |job, _, v| {
        job.waits_for_previous = flag(v.text)?;
        Ok(())
    }),
    read("new_group", &[], |_, extra, v| {
        extra.new_group = flag(v.text)?;
        Ok(())
    }),
    read("group_reporting", &[], |job, _, v| {
        job.group_reporting = flag(v.text)?;
        Ok(())
    }),
    read("percentile_list", &[], |job, _, v| percentiles(job, v)),
    read("clat_percentiles", &[], |job, _, v| {
        job.clat_percentiles = flag(v.text)?;
        Ok(())
    }),
    read("lat_percentiles", &[], |job, _, v| {
        job.lat_percentiles = flag(v.text)?;
        Ok(())
    }),
    read("write_bw_log", &[], |job, _, v| {
        job.logs.bandwidth = Some(v.text.unwrap_or_default().to_owned());
        Ok(())
    }),
    read("write_iops_log", &[], |job, _, v| {
        job.logs.iops = Some(v.text.unwrap_or_default().to_owned());
        Ok(())
    }),
    read("write_lat_log", &[], |job, _, v| {
        job.logs.latency = Some(v.text.unwrap_or_default().to_owned());
        Ok(())
    }),
    read("log_avg_msec", &[], |job, _, v| {
        job.log_average_ns = count(v, 0, 86_400_000)? * 1_000_000;
        Ok(())
    }),
    read("log_offset", &[], |job, _, v| {
        job.log_offset = flag(v.text)?;
        Ok(())
    }),
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
