//! Where each job's requests go: names of namespaces and files, percentages, regions.

use super::planned::{Area, JobPlan, PlanError, Region, ZonesPlan, error, share};
use super::zones_plan;
use nandscape_core::NamespaceInfo;
use nandscape_core::state::mark_of;
use nandscape_core::units::format_bytes;
use nandscape_jobs::{Amount, Job};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub jobs: Vec<JobPlan>,
    /// Files that are read, to be written before the counted part, as fio lays them out.
    pub layout: Vec<Region>,
    /// Zones of the namespaces and files of jobs with `zonemode=zbd`.
    pub zones: Vec<ZonesPlan>,
    /// Where the files of each job lie.
    pub areas: Vec<Vec<Area>>,
    /// What a reader of the result must know.
    pub notes: Vec<String>,
}

impl Plan {
    /// The namespaces that a job uses, in order.
    pub fn namespaces(&self) -> BTreeSet<u32> {
        self.jobs.iter().flat_map(|job| job.regions.iter().map(|region| region.namespace)).collect()
    }

    /// What the state before the counted part depends on besides the preconditioning: the namespaces that
    /// are preconditioned, and the regions that are written.
    pub fn prepared(&self) -> String {
        let list = |list: Vec<String>| if list.is_empty() { "none".to_owned() } else { list.join(" ") };
        let namespaces =
            list(self.namespaces().iter().map(|namespace| (namespace + 1).to_string()).collect());
        let region = |region: &Region| format!("{}:{}+{}", region.namespace + 1, region.start, region.len);
        let regions = list(self.layout.iter().map(region).collect());
        let regions = match self.layout.len() {
            0..=4 => regions,
            many => format!("{many} (hash {:08x})", mark_of(&regions)),
        };
        format!("a job file on namespaces {namespaces}, regions written before: {regions}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Namespace(u32),
    /// Index into the files.
    File(usize),
}

#[derive(Clone, Debug, Default)]
struct File {
    name: String,
    len: u64,
    is_read: bool,
}

/// `spans` has what the recordings of jobs need that go to files as large as that.
pub(crate) fn plan(jobs: &[Job], spans: &[u64], namespaces: &[NamespaceInfo]) -> Result<Plan, PlanError> {
    let jobs = &zones_plan::without_zone_units(jobs, namespaces)?;
    let mut planner = Planner { namespaces, files: Vec::new(), by_name: BTreeMap::new(), notes: Vec::new() };
    let targets: Vec<Vec<Target>> = jobs.iter().map(|job| planner.targets(job)).collect::<Result<_, _>>()?;
    for ((job, targets), span) in jobs.iter().zip(&targets).zip(spans) {
        planner.grow_files(job, targets, *span)?;
    }
    let starts = planner.place_files(jobs)?;
    let mut plan = Plan::default();
    let mut zones = zones_plan::Zones::default();
    for (job, targets) in jobs.iter().zip(&targets) {
        let areas = planner.areas(targets, &starts);
        let mut job_plan = Planner::job_plan(job, &areas)?;
        job_plan.walk = zones.walk(job, &areas, &job_plan, namespaces)?;
        plan.jobs.push(job_plan);
        plan.areas.push(areas);
    }
    plan.zones = zones.plans;
    plan.layout = planner
        .files
        .iter()
        .zip(&starts)
        .filter(|(file, _)| file.is_read)
        .map(|(file, start)| Region { namespace: 0, start: *start, len: file.len })
        .collect();
    plan.notes = planner.notes;
    Ok(plan)
}

struct Planner<'a> {
    namespaces: &'a [NamespaceInfo],
    files: Vec<File>,
    by_name: BTreeMap<String, usize>,
    notes: Vec<String>,
}

fn text(bytes: u64) -> String {
    format!("{bytes} bytes ({})", format_bytes(bytes))
}

impl Planner<'_> {
    fn targets(&mut self, job: &Job) -> Result<Vec<Target>, PlanError> {
        if !job.filenames.is_empty() {
            return job.filenames.iter().map(|name| self.target(job, name)).collect();
        }
        // As in fio a job without a file name has a file of its own, and so has a recording, as large as it
        // needs; without a size in bytes, or where the namespace has zones, that cannot be meant.
        let has_file = matches!(job.size, Amount::Bytes(_)) || job.has_file_for_recording(|_| false);
        let may_have = self.namespaces.first().is_none_or(|info| info.zones.is_none());
        Ok(vec![if has_file && may_have {
            self.file(&format!("{}.{}.0", job.name, job.copy))
        } else {
            Target::Namespace(0)
        }])
    }

    fn target(&mut self, job: &Job, name: &str) -> Result<Target, PlanError> {
        let short = name.strip_prefix("/dev/").unwrap_or(name);
        if let Some(index) = self.namespaces.iter().position(|n| n.name == short) {
            return Ok(Target::Namespace(index as u32));
        }
        let unknown = || {
            let names: Vec<&str> = self.namespaces.iter().map(|n| n.name.as_str()).collect();
            let names = names.join(", ");
            let message = format!(
                "filename={name}: no such namespace; expected one of {names}; namespaces.count says how many there are"
            );
            error(job, message)
        };
        if let Some(number) = namespace_number(short) {
            return match number.checked_sub(1).filter(|i| (*i as usize) < self.namespaces.len()) {
                Some(index) => Ok(Target::Namespace(index)),
                None => Err(unknown()),
            };
        }
        if name.starts_with("/dev/") {
            if self.namespaces.len() > 1 {
                return Err(unknown());
            }
            let note = format!("{name} is taken to be {}, the only namespace", self.namespaces[0].name);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
            return Ok(Target::Namespace(0));
        }
        if self.namespaces.first().is_some_and(|info| info.zones.is_some()) {
            let first = &self.namespaces[0].name;
            let message = format!("filename={name}: a namespace with zones holds no files; expected {first}");
            return Err(error(job, message));
        }
        Ok(self.file(name))
    }

    fn file(&mut self, name: &str) -> Target {
        let next = self.files.len();
        let index = *self.by_name.entry(name.to_owned()).or_insert(next);
        if index == next {
            self.files.push(File { name: name.to_owned(), ..File::default() });
        }
        Target::File(index)
    }

    /// Files are as long as the jobs that give their size in bytes need them.
    fn grow_files(&mut self, job: &Job, targets: &[Target], span: u64) -> Result<(), PlanError> {
        for target in targets {
            let Target::File(index) = *target else { continue };
            let file = &mut self.files[index];
            file.len = file.len.max(span);
            // What a recording reads, it may have written.
            file.is_read |= job.pattern.reads && job.recording_file().is_none();
            if let Amount::Bytes(size) = job.size {
                let offset = bytes_of(job.offset, 0)
                    .saturating_add(bytes_of(job.offset_increment, 0).saturating_mul(u64::from(job.copy)));
                let end = align_up(offset, job.offset_align)
                    .and_then(|o| o.checked_add(size / targets.len() as u64));
                let end = end.ok_or_else(|| error(job, "offset and size reach beyond 64 bits".to_owned()))?;
                file.len = file.len.max(end);
            }
        }
        Ok(())
    }

    /// Files lie behind each other on the first namespace, in the order in which they are named.
    fn place_files(&mut self, jobs: &[Job]) -> Result<Vec<u64>, PlanError> {
        let Some(first) = self.namespaces.first() else { return Ok(Vec::new()) };
        let page = u64::from(first.page_bytes);
        let mut starts = Vec::with_capacity(self.files.len());
        let mut end = 0u64;
        for file in &self.files {
            starts.push(end);
            end = end.saturating_add(file.len).checked_next_multiple_of(page).unwrap_or(u64::MAX);
        }
        if end > first.capacity_bytes {
            let message = format!(
                "the files of this job file need {}, and {} has {}; give a smaller size, or name the namespace itself with \
                 filename={} and a size in percent",
                text(end),
                first.name,
                text(first.capacity_bytes),
                first.name
            );
            return Err(error(&jobs[0], message));
        }
        if !self.files.is_empty() {
            let names: Vec<&str> = self.files.iter().take(4).map(|f| f.name.as_str()).collect();
            let more = if self.files.len() > 4 { " ..." } else { "" };
            let has_read = self.files.iter().any(|file| file.is_read);
            let before = if has_read { ", those that are read are written before" } else { "" };
            self.notes.push(format!(
                "files lie behind each other on {}{before}: {}{more}",
                first.name,
                names.join(", ")
            ));
        }
        Ok(starts)
    }

    /// Where the targets of a job lie.
    fn areas(&self, targets: &[Target], starts: &[u64]) -> Vec<Area> {
        let area = |target: &Target| match *target {
            Target::Namespace(index) => {
                let info = &self.namespaces[index as usize];
                Area { namespace: index, start: 0, len: info.capacity_bytes, name: info.name.clone() }
            }
            Target::File(index) => {
                let file = &self.files[index];
                Area { namespace: 0, start: starts[index], len: file.len, name: file.name.clone() }
            }
        };
        targets.iter().map(area).collect()
    }

    fn job_plan(job: &Job, areas: &[Area]) -> Result<JobPlan, PlanError> {
        let mut regions = Vec::with_capacity(areas.len());
        for Area { namespace, start, len: capacity, name } in areas {
            let (offset, len) = region(job, *capacity, areas.len() as u64, name)?;
            regions.push(Region { namespace: *namespace, start: start + offset, len });
        }
        let sum: u64 = regions.iter().map(|r| r.len).sum();
        let once = match job.io_size {
            Amount::None => sum,
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => share(sum, percent),
            Amount::Zones(_) => unreachable!("zones were made bytes"),
        };
        if once == 0 {
            return Err(error(job, "there is nothing to transfer: expected an io_size above 0".to_owned()));
        }
        // A recording says itself how much there is of it, unless io_size ends it, whatever its loops.
        let total_bytes = match job.recording_file() {
            Some(_) if job.io_size == Amount::None => u64::MAX,
            Some(_) => once,
            None => once.saturating_mul(job.loops),
        };
        Ok(JobPlan {
            regions,
            total_bytes,
            wraps: job.is_time_based || job.loops > 1 || once > sum,
            walk: None,
        })
    }
}

/// Whether a name of a job is that of a file, and not of a namespace.
pub fn is_file(name: &str, namespaces: &[NamespaceInfo]) -> bool {
    let is_namespace = |n: &NamespaceInfo| n.name == name || n.zones.is_some();
    !name.starts_with("/dev/") && namespace_number(name).is_none() && !namespaces.iter().any(is_namespace)
}

/// `ns2`, `nvme0n2` and `ng0n2` are number 2.
fn namespace_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("ns").or_else(|| {
        let rest = name.strip_prefix("nvme").or_else(|| name.strip_prefix("ng"))?;
        let (controller, number) = rest.split_once('n')?;
        (!controller.is_empty() && controller.bytes().all(|b| b.is_ascii_digit())).then_some(number)
    })?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn bytes_of(amount: Amount, capacity: u64) -> u64 {
    match amount {
        Amount::None => 0,
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => share(capacity, percent),
        Amount::Zones(_) => unreachable!("zones were made bytes"),
    }
}

fn align_up(value: u64, align: u64) -> Option<u64> {
    if align == 0 { Some(value) } else { value.checked_next_multiple_of(align) }
}

/// Offset and length of a job's region in a target of `capacity` bytes.
fn region(job: &Job, capacity: u64, targets: u64, name: &str) -> Result<(u64, u64), PlanError> {
    let block = job.smallest_block();
    // A percentage rarely hits a block; a region that begins inside one would make every request partial.
    let rounded = |amount: Amount| match amount {
        Amount::Percent(_) => bytes_of(amount, capacity) / block * block,
        _ => bytes_of(amount, capacity),
    };
    let offset = rounded(job.offset_increment)
        .checked_mul(u64::from(job.copy))
        .and_then(|step| step.checked_add(rounded(job.offset)))
        .and_then(|offset| align_up(offset, job.offset_align))
        .filter(|offset| *offset < capacity)
        .ok_or_else(|| {
            if capacity == 0 {
                error(job, format!("file {name} has no size: expected size=BYTES in a job that uses it"))
            } else {
                error(job, format!("its offset lies beyond {name}, which has {}", text(capacity)))
            }
        })?;
    let room = capacity - offset;
    let len = match job.size {
        Amount::None => room,
        Amount::Percent(_) => rounded(job.size).min(room),
        Amount::Bytes(size) => {
            let size = size / targets;
            if size > room {
                let message = format!(
                    "size {} from offset {offset} reaches beyond {name}, which has {}",
                    text(size),
                    text(capacity)
                );
                return Err(error(job, message));
            }
            size
        }
        Amount::Zones(_) => unreachable!("zones were made bytes"),
    };
    let largest = nandscape_jobs::Direction::ALL
        .into_iter()
        .filter(|d| job.does(*d) && job.recording_file().is_none())
        .map(|d| job.block_size[d as usize].max)
        .max()
        .unwrap_or(1);
    if len < largest {
        let message =
            format!("its region on {name} has {}, less than a request of {}", text(len), text(largest));
        return Err(error(job, message));
    }
    Ok((offset, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_jobs::JobFile;

    fn namespaces(capacities: &[u64]) -> Vec<NamespaceInfo> {
        let info = |(i, capacity): (usize, &u64)| NamespaceInfo {
            name: format!("ns{}", i + 1),
            capacity_bytes: *capacity,
            page_bytes: 4096,
            set: i as u16,
            endurance_group: 0,
            zones: None,
            objects: false,
        };
        capacities.iter().enumerate().map(info).collect()
    }

    fn planned(text: &str, capacities: &[u64]) -> Result<Plan, PlanError> {
        let file = JobFile::parse("t.fio", text).expect("the job file is fine");
        plan(&file.jobs, &vec![0; file.jobs.len()], &namespaces(capacities))
    }

    const M: u64 = 1 << 20;

    #[test]
    fn names_choose_namespaces() {
        for (name, index) in [("ns1", 0), ("ns2", 1), ("nvme0n2", 1), ("/dev/nvme1n1", 0), ("/dev/ng0n2", 1)]
        {
            let plan = planned(&format!("[a]\nfilename={name}\n"), &[M, 2 * M]).unwrap();
            assert_eq!(plan.jobs[0].regions[0].namespace, index, "{name}");
            assert_eq!(plan.jobs[0].regions[0].len, [M, 2 * M][index as usize]);
        }
        let message = planned("[a]\nfilename=/dev/nvme0n3\n", &[M, M]).unwrap_err().to_string();
        assert!(message.contains("t.fio:1") && message.contains("ns1, ns2"), "{message}");
        assert!(planned("[a]\nfilename=/dev/sdb\n", &[M, M]).is_err());
        let plan = planned("[a]\nfilename=/dev/sdb\n", &[M]).unwrap();
        assert!(plan.notes[0].contains("/dev/sdb"));
    }

    #[test]
    fn files_lie_behind_each_other_and_those_read_are_laid_out() {
        let text = "[global]\nsize=100k\nbs=4k\n[w]\nrw=write\nnumjobs=2\n[r]\nrw=randread\nfilename=/tmp/x\n[s]\nrw=write\nfilename=/tmp/x\noffset=100k\n";
        let plan = planned(text, &[M]).unwrap();
        let starts: Vec<(u64, u64)> =
            plan.jobs.iter().map(|j| (j.regions[0].start, j.regions[0].len)).collect();
        let k = 1024;
        assert_eq!(starts, [(0, 100 * k), (100 * k, 100 * k), (200 * k, 100 * k), (300 * k, 100 * k)]);
        assert_eq!(plan.layout, [Region { namespace: 0, start: 200 * k, len: 200 * k }]);
        let message = planned(text, &[256 * k]).unwrap_err().to_string();
        assert!(message.contains("409600 bytes"), "{message}");
    }

    #[test]
    fn regions_follow_percentages_increments_and_alignment() {
        let text = "[a]\nfilename=ns1\nbs=4k\nsize=10%\noffset=50%\noffset_increment=10%\nnumjobs=3\n";
        let plan = planned(text, &[1000 * 4096]).unwrap();
        let found: Vec<(u64, u64)> =
            plan.jobs.iter().map(|j| (j.regions[0].start / 4096, j.regions[0].len / 4096)).collect();
        assert_eq!(found, [(500, 100), (600, 100), (700, 100)]);
        let plan = planned("[a]\nfilename=ns1\noffset=5000\noffset_align=8k\n", &[M]).unwrap();
        assert_eq!(plan.jobs[0].regions[0].start, 8192);
        assert!(planned("[a]\nfilename=ns1\noffset=2m\n", &[M]).is_err());
        assert!(planned("[a]\nfilename=ns1\nsize=2m\n", &[M]).is_err());
        assert!(planned("[a]\nfilename=ns1\nsize=8k\nbs=16k\n", &[M]).is_err());
        assert!(planned("[a]\nfilename=x\n", &[M]).unwrap_err().to_string().contains("has no size"));
    }
}
