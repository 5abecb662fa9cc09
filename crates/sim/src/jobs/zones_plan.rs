//! What is planned of zones: sizes in zones become bytes, regions are cut to whole zones, and jobs on one
//! namespace or file share its zones. Refused is what fio 3.33 refuses.

use super::planned::{Area, FilePlan, JobPlan, PlanError, WalkPlan, ZonesPlan, error, share};
use nandscape_core::NamespaceInfo;
use nandscape_jobs::job::{MAX_OPEN_ZONES, Pattern, ZoneMode};
use nandscape_jobs::{Amount, Direction, Job};

/// Jobs whose sizes in zones are bytes.
pub(super) fn without_zone_units(jobs: &[Job], namespaces: &[NamespaceInfo]) -> Result<Vec<Job>, PlanError> {
    jobs.iter().map(|job| in_bytes(job, namespaces)).collect()
}

fn in_bytes(job: &Job, namespaces: &[NamespaceInfo]) -> Result<Job, PlanError> {
    let mut out = job.clone();
    let named = job.filenames.first().map(|name| name.strip_prefix("/dev/").unwrap_or(name));
    let info = namespaces.iter().find(|info| Some(&*info.name) == named).or(namespaces.first());
    let shape = info.and_then(|info| info.zones).filter(|_| job.zoning.mode == ZoneMode::Zbd);
    let zone = if job.zoning.size > 0 { job.zoning.size } else { shape.map_or(0, |shape| shape.size) };
    let amounts = [
        ("size", &mut out.size),
        ("io_size", &mut out.io_size),
        ("offset", &mut out.offset),
        ("offset_increment", &mut out.offset_increment),
        ("zoneskip", &mut out.zoning.skip),
    ];
    for (key, amount) in amounts {
        let Amount::Zones(zones) = *amount else { continue };
        let bytes = zone.checked_mul(u64::from(zones)).filter(|bytes| *bytes > 0 || zones == 0);
        *amount = Amount::Bytes(bytes.ok_or_else(|| {
            error(
                job,
                format!("{key}={zones}z: expected a zonemode and a zonesize of which that is a multiple"),
            )
        })?);
    }
    Ok(out)
}

/// The zones of all jobs so far.
#[derive(Default)]
pub(super) struct Zones {
    pub plans: Vec<ZonesPlan>,
}

impl Zones {
    /// How a job with a `zonemode` walks through its files.
    pub fn walk(
        &mut self,
        job: &Job,
        areas: &[Area],
        plan: &JobPlan,
        namespaces: &[NamespaceInfo],
    ) -> Result<Option<WalkPlan>, PlanError> {
        let zoning = &job.zoning;
        // As in fio, strides need a single file.
        if zoning.mode == ZoneMode::None || zoning.mode == ZoneMode::Strided && areas.len() > 1 {
            return Ok(None);
        }
        let mut files = Vec::with_capacity(areas.len());
        let mut zone_size = zoning.size;
        for (area, region) in areas.iter().zip(&plan.regions) {
            let offset = region.start - area.start;
            let mut file = FilePlan {
                namespace: area.namespace,
                base: area.start,
                real_len: area.len,
                start: offset,
                offset,
                len: region.len,
                set: None,
            };
            if zoning.mode == ZoneMode::Zbd {
                let set = self.set_of(job, area, &namespaces[area.namespace as usize])?;
                zone_size = self.plans[set].size;
                cut(job, &mut file, &self.plans[set])?;
                check_blocks(job, &self.plans[set])?;
                file.set = Some(set as u32);
            }
            files.push(file);
        }
        let sum: u64 = plan.regions.iter().map(|region| region.len).sum();
        let (all, io_size) = match job.io_size {
            Amount::Percent(percent) => (share(sum, percent), 0),
            Amount::Bytes(bytes) => (sum, bytes),
            _ => (sum, 0),
        };
        let size = match job.size {
            Amount::Bytes(bytes) => bytes.min(all),
            _ => all,
        };
        let zone_range = if zoning.range > 0 { zoning.range } else { zone_size };
        let zone_skip = if let Amount::Bytes(bytes) = zoning.skip { bytes } else { 0 };
        if zoning.mode == ZoneMode::Zbd && !zone_skip.is_multiple_of(zone_size) {
            let message =
                format!("zoneskip={zone_skip}: expected a multiple of the zones of {zone_size} bytes");
            return Err(error(job, message));
        }
        Ok(Some(WalkPlan { files, size, io_size, zone_size, zone_range, zone_skip }))
    }

    /// The zones of a namespace or file, made for the first job on it.
    fn set_of(&mut self, job: &Job, area: &Area, info: &NamespaceInfo) -> Result<usize, PlanError> {
        let zoning = &job.zoning;
        let known = self.plans.iter().position(|p| (p.namespace, p.start) == (area.namespace, area.start));
        if let Some(known) = known {
            let plan = &self.plans[known];
            if zoning.size > 0 && zoning.size != plan.size {
                return Err(error(
                    job,
                    format!("zonesize={}: expected the {} bytes of {}", zoning.size, plan.size, area.name),
                ));
            }
            if zoning.max_open > 0 && zoning.max_open != plan.max_open {
                let message = format!(
                    "max_open_zones={}: expected the {} of the other jobs on {}",
                    zoning.max_open, plan.max_open, area.name
                );
                return Err(error(job, message));
            }
            check_job_limit(job, plan)?;
            return Ok(known);
        }
        let plan = match info.zones {
            Some(shape) if shape.conventional > 0 => {
                let message = format!(
                    "zonemode=zbd: expected a namespace without conventional zones; {} has {}",
                    area.name, shape.conventional
                );
                return Err(error(job, message));
            }
            Some(shape) => {
                if zoning.size > 0 && zoning.size != shape.size {
                    let message = format!(
                        "zonesize={}: expected the {} bytes of a zone of {}",
                        zoning.size, shape.size, area.name
                    );
                    return Err(error(job, message));
                }
                ZonesPlan {
                    namespace: area.namespace,
                    start: 0,
                    count: shape.zones,
                    size: shape.size,
                    capacity: shape.capacity,
                    max_open: open_limit(job, shape.max_open)?,
                    is_device: true,
                }
            }
            None => emulated(job, area)?,
        };
        check_job_limit(job, &plan)?;
        self.plans.push(plan);
        Ok(self.plans.len() - 1)
    }
}

/// Zones that only the jobs know of.
fn emulated(job: &Job, area: &Area) -> Result<ZonesPlan, PlanError> {
    let zoning = &job.zoning;
    if zoning.size == 0 {
        let message = format!("zonemode=zbd: expected a zonesize, since {} has no zones", area.name);
        return Err(error(job, message));
    }
    if area.len < zoning.size {
        let message =
            format!("zonesize={}: expected at most the {} bytes of {}", zoning.size, area.len, area.name);
        return Err(error(job, message));
    }
    let count = u32::try_from(area.len.div_ceil(zoning.size)).map_err(|_| {
        error(job, format!("zonesize={}: expected fewer than 2^32 zones on {}", zoning.size, area.name))
    })?;
    Ok(ZonesPlan {
        namespace: area.namespace,
        start: area.start,
        count,
        size: zoning.size,
        capacity: if zoning.capacity > 0 { zoning.capacity } else { zoning.size },
        max_open: zoning.max_open,
        is_device: false,
    })
}

fn open_limit(job: &Job, device: Option<u32>) -> Result<u32, PlanError> {
    let own = job.zoning.max_open;
    match device.filter(|_| !job.zoning.ignores_limits) {
        None => Ok(own),
        Some(device) if own == 0 => Ok(device.min(MAX_OPEN_ZONES)),
        Some(device) if own <= device => Ok(own),
        Some(device) => {
            Err(error(job, format!("max_open_zones={own}: expected at most the {device} of the namespace")))
        }
    }
}

fn check_job_limit(job: &Job, plan: &ZonesPlan) -> Result<(), PlanError> {
    let most = job.zoning.job_max_open;
    if most > 0 && plan.max_open == 0 {
        return Err(error(job, format!("job_max_open_zones={most}: expected max_open_zones with it")));
    }
    Ok(())
}

/// Cuts the region to whole zones, but for a sequential read.
fn cut(job: &Job, file: &mut FilePlan, zones: &ZonesPlan) -> Result<(), PlanError> {
    let Pattern { writes, trims, is_random, .. } = job.pattern;
    if !writes && !trims && !is_random {
        return Ok(());
    }
    let end = file.offset + file.len;
    let last = u64::from(zones.count) * zones.size;
    let (from, to) = (file.offset.next_multiple_of(zones.size), (end / zones.size * zones.size).min(last));
    if from >= to {
        let message = format!("its region of {} bytes has no whole zone of {} bytes", file.len, zones.size);
        return Err(error(job, message));
    }
    (file.offset, file.len) = (from, to - from);
    Ok(())
}

fn check_blocks(job: &Job, zones: &ZonesPlan) -> Result<(), PlanError> {
    let [_, write, trim] = &job.block_size;
    if job.does(Direction::Write) && write.max > zones.size {
        return Err(error(
            job,
            format!("bs={}: expected at most the {} bytes of a zone", write.max, zones.size),
        ));
    }
    if job.does(Direction::Write) && write.min > zones.capacity {
        let message =
            format!("bs={}: expected at most the {} bytes of a zone's capacity", write.min, zones.capacity);
        return Err(error(job, message));
    }
    if job.does(Direction::Trim) && trim.max != zones.size {
        let message = format!("bs={} of trims: expected the {} bytes of a zone", trim.max, zones.size);
        return Err(error(job, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::plan::{Plan, plan};
    use nandscape_core::zone::ZoneShape;
    use nandscape_jobs::JobFile;

    const M: u64 = 1 << 20;

    /// Plans a job file on a namespace of 8 MiB, with zones or without.
    fn planned(text: &str, has_zones: bool) -> Result<Plan, String> {
        let shape = ZoneShape {
            zones: 4,
            conventional: 0,
            size: 2 * M,
            capacity: M + M / 2,
            block: 512,
            max_active: Some(3),
            max_open: Some(3),
            durable_pages: false,
        };
        let info = NamespaceInfo {
            name: "ns1".to_owned(),
            capacity_bytes: 8 * M,
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: has_zones.then_some(shape),
            objects: false,
        };
        let text = format!("[global]\nzonemode=zbd\nrw=write\nbs=64k\n{text}");
        let file = JobFile::parse("t.fio", &text).map_err(|error| error.to_string())?;
        plan(&file.jobs, &vec![0; file.jobs.len()], &[info]).map_err(|error| error.to_string())
    }

    #[test]
    fn zones_are_those_of_the_namespace_or_of_zonesize() {
        let plan = planned("[a]\nfilename=ns1\n", true).unwrap();
        let zones = plan.zones[0];
        assert!(zones.is_device);
        assert_eq!((zones.count, zones.size, zones.capacity, zones.max_open), (4, 2 * M, M + M / 2, 3));
        let text = "zonesize=1m\nzonecapacity=768k\nmax_open_zones=2\n[a]\nfilename=ns1\n[b]\nfilename=ns1\n";
        let plan = planned(text, false).unwrap();
        assert_eq!(plan.zones.len(), 1, "jobs on one namespace share its zones");
        let zones = plan.zones[0];
        assert!(!zones.is_device);
        assert_eq!((zones.count, zones.size, zones.capacity, zones.max_open), (8, M, 768 * 1024, 2));
        let plan = planned("[a]\nignore_zone_limits=1\n", true).unwrap();
        assert_eq!(plan.zones[0].max_open, 0);
        let plan = planned("size=4m\nzonesize=1m\n[a]\n[b]\n", false).unwrap();
        assert_eq!(plan.zones.iter().map(|zones| zones.start).collect::<Vec<_>>(), [0, 4 * M], "two files");
    }

    #[test]
    fn regions_are_cut_to_whole_zones_and_sizes_may_count_zones() {
        let region = |text: &str| {
            let plan = planned(text, true).unwrap();
            let file = plan.jobs[0].walk.as_ref().unwrap().files[0];
            (file.offset / M, file.len / M)
        };
        assert_eq!(region("[a]\noffset=1m\nsize=6m\n"), (2, 4));
        assert_eq!(region("[a]\noffset=1z\nsize=2z\n"), (2, 4));
        assert_eq!(region("rw=read\n[a]\noffset=1m\nsize=6m\n"), (1, 6), "a sequential read is not cut");
        assert_eq!(region("rw=randread\n[a]\noffset=1m\nsize=6m\n"), (2, 4));
    }

    #[test]
    fn what_fio_refuses_is_named_with_key_and_value() {
        for (text, has_zones, named) in [
            ("[a]\n", false, "zonesize"),
            ("[a]\nzonesize=1m\n", true, "zonesize=1048576"),
            ("[a]\nzonesize=16m\n", false, "zonesize=16777216"),
            ("[a]\nbs=4m\n", true, "bs=4194304"),
            ("[a]\nbs=1792k\n", true, "bs=1835008"),
            ("[a]\nbs=5000\n", true, "bs=5000"),
            ("[a]\nrw=trim\n", true, "bs=65536"),
            ("[a]\nmax_open_zones=4\n", true, "max_open_zones=4"),
            ("[a]\nmax_open_zones=2\n[b]\nmax_open_zones=3\n", true, "max_open_zones=3"),
            ("[a]\nzonesize=1m\njob_max_open_zones=2\n", false, "job_max_open_zones=2"),
            ("[a]\nzoneskip=64k\n", true, "zoneskip=65536"),
            ("[a]\nsize=1m\n", true, "no whole zone"),
            ("[a]\nzonesize=1m\nzonecapacity=2m\n", false, "zonecapacity=2097152"),
            ("[a]\nfilename=/tmp/x\nsize=2m\n", true, "filename=/tmp/x"),
        ] {
            let message = planned(text, has_zones).expect_err(text);
            assert!(message.contains(named) && message.contains("t.fio"), "{text}: {message}");
        }
    }
}
