//! From sections to jobs: inheritance from `[global]`, copies, order and groups.

use crate::error::{JobError, Place};
use crate::job::{Job, Pattern, ZoneMode};
use crate::options::{Extra, apply, matters_not, matters_only_with_zones};
use crate::sections::{Entry, Section, Source, System, kb_base, read_sections};
use std::path::Path;

/// Processes of one job file, `numjobs` copies included. fio's own limit is about 4096.
pub const MAX_JOBS: usize = 65_536;

/// A job file, read and expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFile {
    /// The file, as it was named.
    pub name: String,
    /// Every process, in fio's order.
    pub jobs: Vec<Job>,
    /// Options of the `[global]` sections as typed, for reports.
    pub global: Vec<(String, String)>,
    /// What a reader of the results must know: options that were ignored, and why.
    pub notes: Vec<String>,
}

impl JobFile {
    /// Reads a job file and those it includes.
    pub fn read(path: &str) -> Result<Self, JobError> {
        let place = Place { file: path.to_owned(), line: 0 };
        let text = System.read(Path::new(path));
        let text =
            text.map_err(|error| JobError { place, message: format!("cannot read the job file: {error}") })?;
        Self::parse(path, &text)
    }

    /// Reads a job file's text; `name` is for messages, and included files are looked for beside it.
    pub fn parse(name: &str, text: &str) -> Result<Self, JobError> {
        Self::parse_from(name, text, &System)
    }

    pub(crate) fn parse_from(name: &str, text: &str, source: &dyn Source) -> Result<Self, JobError> {
        let sections = read_sections(name, text, source)?;
        let mut file = Self { name: name.to_owned(), ..Self::default() };
        let mut ignored: Vec<(&'static str, &'static str)> = Vec::new();
        let mut global: Vec<Entry> = Vec::new();
        let mut group = None;
        for section in &sections {
            if section.name == "global" {
                global.extend(section.entries.iter().cloned());
                file.global.extend(typed(&section.entries));
            } else {
                file.expand(section, &global, &mut group, &mut ignored)?;
            }
        }
        if file.jobs.is_empty() {
            let place = Place { file: name.to_owned(), line: 0 };
            let expected = "at least one section beside [global], such as [load]";
            return Err(JobError::syntax(place, "no job", expected));
        }
        file.check_waits()?;
        file.note_ignored(&ignored);
        Ok(file)
    }

    fn expand(
        &mut self,
        section: &Section,
        global: &[Entry],
        group: &mut Option<u32>,
        ignored: &mut Vec<(&'static str, &'static str)>,
    ) -> Result<(), JobError> {
        let entries: Vec<Entry> = global.iter().chain(&section.entries).cloned().collect();
        let base = kb_base(&entries)?;
        let mut job = Job::new(&section.name);
        job.place = section.place.clone();
        let mut extra = Extra { copies: 1, ..Extra::default() };
        for entry in &entries {
            if let Some(option) = apply(entry, &mut job, &mut extra, base)?
                && !ignored.contains(&option)
            {
                ignored.push(option);
            }
        }
        if job.zoning.mode == ZoneMode::None {
            for name in entries.iter().filter_map(|entry| matters_only_with_zones(&entry.key)) {
                let option = (name, "matters only with zonemode=strided or zbd");
                if !ignored.contains(&option) {
                    ignored.push(option);
                }
            }
        }
        let has_recording = !job.recording.files.is_empty();
        for option in entries.iter().filter_map(|entry| matters_not(&entry.key, has_recording)) {
            if !ignored.contains(&option) {
                ignored.push(option);
            }
        }
        if has_recording {
            // A recording may ask for anything.
            job.pattern = Pattern { reads: true, writes: true, trims: true, ..Pattern::default() };
            if let Some(name) = job.recording.redirect.take() {
                job.filenames = vec![name];
            }
            if !entries.iter().any(|entry| entry.key == "iodepth") {
                job.depth = u32::from(extra.is_synchronous == Some(true));
            }
        }
        job.options = typed(&section.entries);
        if extra.is_synchronous == Some(true) && job.depth > 1 {
            self.notes.push(format!(
                "job {}: a synchronous ioengine has one request outstanding, so iodepth={} is 1, as in fio",
                job.name, job.depth
            ));
            job.depth = 1;
        }
        job.is_synchronous = extra.is_synchronous.unwrap_or(job.depth == 1);
        check(&job)?;
        if self.jobs.len() + extra.copies as usize > MAX_JOBS {
            let message = format!("numjobs={} makes more than {MAX_JOBS} jobs in all", extra.copies);
            return Err(conflict(&job, &message));
        }
        let begins_group = extra.new_group || job.waits_for_previous;
        *group = Some(match *group {
            None => 0,
            Some(number) => number + u32::from(begins_group),
        });
        for copy in 0..extra.copies {
            let mut job = job.clone();
            job.copy = copy;
            job.number = self.jobs.len() as u32;
            job.group = group.unwrap_or(0);
            job.waits_for_previous &= copy == 0;
            self.jobs.push(job);
        }
        Ok(())
    }

    /// `wait_for` names a job before the one that waits, so that nobody waits in a circle.
    fn check_waits(&self) -> Result<(), JobError> {
        for job in &self.jobs {
            let Some(name) = &job.wait_for else { continue };
            let is_before = |other: &&Job| other.number < job.number && other.name == *name;
            if *name == job.name || !self.jobs.iter().any(|other| is_before(&other)) {
                return Err(conflict(job, &format!("wait_for={name}: expected the name of a job before it")));
            }
        }
        Ok(())
    }

    fn note_ignored(&mut self, ignored: &[(&'static str, &'static str)]) {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, reason) in ignored {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names.push(name),
                None => reasons.push((reason, vec![name])),
            }
        }
        for (reason, names) in reasons {
            self.notes.push(format!("ignored: {} ({reason})", names.join(", ")));
        }
    }
}

fn typed(entries: &[Entry]) -> Vec<(String, String)> {
    entries.iter().map(|e| (e.key.clone(), e.value.clone().unwrap_or_else(|| "1".to_owned()))).collect()
}

fn conflict(job: &Job, message: &str) -> JobError {
    JobError { place: job.place.clone(), message: format!("job '{}': {message}", job.name) }
}

/// Options that are each fine and do not go together.
fn check(job: &Job) -> Result<(), JobError> {
    let mut used = crate::Direction::ALL.into_iter().filter(|d| job.does(*d)).map(|d| d as usize);
    let is_off_block = |d: usize| job.block_align[d].is_some_and(|align| align != job.block_size[d].min);
    let has_recording = !job.recording.files.is_empty();
    let has_map = job.pattern.is_random && !job.no_random_map;
    let [_, write, trim] = &job.block_size;
    let has_one_size = write.is_fixed() && write == trim;
    let conflicts = [
        (job.is_time_based && job.runtime_ns.is_none(), "time_based needs a runtime"),
        (
            job.rate.iter().any(|rate| rate.bytes_per_s > 0 && rate.iops > 0),
            "rate and rate_iops are both given: expected one of them",
        ),
        (has_map && used.any(is_off_block), "blockalign other than the block size needs norandommap"),
        (
            job.pattern.trim_then_write && !has_one_size,
            "trimwrite writes what it discarded, so both need one and the same block size",
        ),
        (
            has_recording && job.rate.iter().any(|rate| rate.bytes_per_s > 0 || rate.iops > 0),
            "read_iolog has times of its own: expected replay_time_scale instead of rate and rate_iops",
        ),
        (
            has_recording && job.zoning.mode != ZoneMode::None,
            "read_iolog says where requests go: expected no zonemode with it",
        ),
        (
            has_recording && job.filenames.len() > 1,
            "read_iolog goes to one namespace or file: expected one filename with it",
        ),
        (
            !job.placement_ids.is_empty() && job.placement == crate::job::DataPlacement::None,
            "plids need dataplacement=streams or fdp=1",
        ),
    ];
    match conflicts.into_iter().find(|(is_there, _)| *is_there) {
        Some((_, message)) => Err(conflict(job, message)),
        None => check_zoning(job).map_err(|message| conflict(job, &message)),
    }
}

/// What fio refuses of zones, as far as it does not depend on the device.
fn check_zoning(job: &Job) -> Result<(), String> {
    let zoning = &job.zoning;
    let size = zoning.size;
    match zoning.mode {
        ZoneMode::None if size > 0 => {
            return Err(format!("zonesize={size}: expected zonemode=strided or zbd with it"));
        }
        ZoneMode::Strided if size == 0 => {
            return Err("zonemode=strided: expected a zonesize with it".to_owned());
        }
        ZoneMode::None | ZoneMode::Strided => return Ok(()),
        ZoneMode::Zbd => {}
    }
    if size > 0 && size < 512 {
        return Err(format!("zonesize={size}: expected at least 512 bytes with zonemode=zbd"));
    }
    if size > 0 && zoning.capacity > size {
        return Err(format!("zonecapacity={}: expected at most zonesize={size}", zoning.capacity));
    }
    if let crate::Amount::Bytes(skip) = zoning.skip
        && size > 0
        && !skip.is_multiple_of(size)
    {
        return Err(format!("zoneskip={skip}: expected a multiple of zonesize={size}"));
    }
    for direction in crate::Direction::ALL.into_iter().filter(|d| job.does(*d)) {
        let bytes = &job.block_size[direction as usize];
        if direction == crate::Direction::Trim && !bytes.is_fixed() {
            return Err(
                "trims with zonemode=zbd reset whole zones: expected bs=READ,WRITE,ZONESIZE".to_owned()
            );
        }
        // fio itself ends at an assertion.
        if direction == crate::Direction::Write && !bytes.min.is_multiple_of(512) {
            return Err(format!("bs={}: expected a multiple of 512 with zonemode=zbd", bytes.min));
        }
    }
    Ok(())
}
