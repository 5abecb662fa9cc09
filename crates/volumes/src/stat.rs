//! What a cache tells of itself, served or not, and the pages that each published design would print of it.

use super::{CacheFile, MirrorMember, Result, Settings};
use nandscape_cache::compose::Design;
use nandscape_cache::manage::{Change, Held, Verdict};
use nandscape_cache::status::{Facts, Health, Page, Printer};
use nandscape_cache::{Counters, Gauges, Mode};
use nandscape_core::command::HostCounts;
use nandscape_core::{CacheReport, Word as _};
use nandscape_policies::admission::Bypass;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A cache, as it stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct CacheStat {
    /// The fast file or device; `ram` in memory.
    pub fast: PathBuf,
    pub preset: String,
    /// Key and value of every setting.
    pub settings: Vec<(String, String)>,
    pub block_bytes: u32,
    /// Slots of a set; 0 where any block may lie in any slot.
    pub ways: u32,
    /// Bytes of neighbouring blocks that share a set, where a hash selects it; 0 otherwise.
    pub cluster_bytes: u64,
    /// Unit of metadata writes in bytes; 0 without metadata.
    pub metadata_block_bytes: u32,
    /// Bytes of a sequential stream from which it goes past the cache; 0: never.
    #[serde(default)]
    pub skip_sequential_bytes: u64,
    /// Blocks that are cached at most, where there is a limit below the slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_blocks: Option<u64>,
    /// Files or devices with the same bytes, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror: Vec<MirrorMember>,
    pub mode: Mode,
    pub gauges: Gauges,
    /// What the server counted since its start or the last reset; zeroes if none runs.
    pub counters: Counters,
    /// Of the counters what belongs to no single volume: metadata, errors and flushes of the cache device;
    /// `None` without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_together: Option<Counters>,
    pub volumes: Vec<VolumeStat>,
    /// How the fast side does: `normal`, `degraded` (it, or a member of its mirror, is used no more) or
    /// `failed` (something is lost).
    pub health: String,
    /// What is wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Why the fast side was given up while it was served; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
    /// Why it is served read-only; `None` if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// What was lost with the fast side and not written anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostRange>,
    /// Share of read requests that were answered wholly from the cache; `None` without reads, or a server.
    #[serde(default)]
    pub read_hit_ratio: Option<f64>,
    /// Share of write requests whose blocks were all cached.
    #[serde(default)]
    pub write_hit_ratio: Option<f64>,
    /// Whether a server runs it.
    pub is_served: bool,
    /// What the start of the server found, or would find. Of a server that found a new cache, no more than
    /// that once something is cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<String>,
}

/// A volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct VolumeStat {
    pub name: String,
    pub disk: PathBuf,
    pub bytes: u64,
    pub blocks: u64,
    /// Of these, dirty ones.
    pub dirty_blocks: u64,
    /// Bytes that the disk does not have, in sub-blocks.
    pub dirty_bytes: u64,
    /// Blocks that it may hold at most, where it has a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_blocks: Option<u64>,
    /// What the server counted of this volume; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// Commands that went to the disk since the server started, or its last reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_counts: Option<HostCounts>,
    /// Whether the disk is as the cache left it: `same`, `unknown`, or how it has changed.
    pub state: String,
}

/// Bytes of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRange {
    /// Name of the volume.
    pub volume: String,
    /// First byte.
    pub offset: u64,
    /// How many.
    pub len: u64,
}

impl CacheStat {
    /// What every cache of this design says of itself.
    pub(super) fn of_design(fast: PathBuf, design: &Design) -> Self {
        let (ways, cluster) = match design.map {
            nandscape_policies::Map::Full => (0, 0),
            nandscape_policies::Map::Linear { ways } => (ways, 0),
            nandscape_policies::Map::ClusterHashed { ways, cluster } => (ways, cluster),
        };
        Self {
            fast,
            preset: design.preset.info.name.to_owned(),
            settings: design.settings(),
            block_bytes: design.block_bytes,
            ways,
            cluster_bytes: u64::from(cluster) * u64::from(design.block_bytes),
            skip_sequential_bytes: design.skip_sequential_bytes(),
            mode: design.mode,
            health: Health::Normal.name().to_owned(),
            ..Self::default()
        }
    }

    /// Takes settings that may have changed: what they make of the slots and volumes that are there.
    pub(super) fn follow(&mut self, design: &Design, settings: &Settings) {
        self.settings = design.settings();
        self.settings
            .extend(settings.data.iter().map(|path| ("data".to_owned(), path.display().to_string())));
        self.skip_sequential_bytes = design.skip_sequential_bytes();
        let slots = u32::try_from(self.gauges.slots).unwrap_or(u32::MAX);
        // They were checked when they were set.
        let shares = settings.shares(design, slots).unwrap_or_default();
        self.limit_blocks = shares.limit.filter(|limit| *limit < slots).map(u64::from);
        for (id, quota) in shares.quotas {
            let name = settings.volumes.get(&id).map(|volume| &volume.name);
            if let Some(volume) = self.volumes.iter_mut().find(|volume| Some(&volume.name) == name) {
                volume.quota_blocks = quota.map(u64::from);
            }
        }
    }

    /// How a volume stands, and what was counted of it and of the cache as a whole.
    fn of_volume(&self, volume: &VolumeStat) -> (Gauges, Counters) {
        let (used, dirty, dirty_bytes) = (volume.blocks, volume.dirty_blocks, volume.dirty_bytes);
        let mut counters = volume.counters.clone().unwrap_or_else(|| self.counters.clone());
        if let Some(together) = self.counted_together.as_ref().filter(|_| volume.counters.is_some()) {
            counters.add(together);
        }
        (Gauges { used, dirty, dirty_bytes, ..self.gauges }, counters)
    }

    /// The same cache with what its server counted, over all volumes.
    pub(super) fn with(&self, report: &CacheReport) -> Self {
        let mut counters = Counters::from(report.counters);
        for why in Bypass::ALL {
            if let Some(count) = report.bypass.get(why.name()) {
                counters.bypass.read_pieces[why.index()] = count.read_pieces;
                counters.bypass.write_pieces[why.index()] = count.write_pieces;
                counters.bypass.bytes[why.index()] = count.bytes;
            }
        }
        let mut disk = HostCounts::default();
        report.disks.iter().for_each(|counts| disk.add(counts));
        if counters.disk_reads + counters.disk_writes == 0 {
            (counters.disk_reads, counters.disk_read_bytes) = (disk.reads, disk.read_bytes);
            (counters.disk_writes, counters.disk_write_bytes) = (disk.writes, disk.write_bytes);
            counters.disk_flushes = disk.flushes;
        }
        if counters.fast_reads + counters.fast_writes == 0 {
            let fast = &report.fast;
            (counters.fast_reads, counters.fast_read_bytes) = (fast.reads, fast.read_bytes);
            (counters.fast_writes, counters.fast_write_bytes) = (fast.writes, fast.write_bytes);
            counters.fast_flushes = fast.flushes;
        }
        let gauges = Gauges {
            slots: report.slots,
            used: report.used,
            dirty: report.dirty,
            dirty_bytes: report.dirty_bytes,
            memory_bytes: report.memory_bytes,
            ..self.gauges
        };
        Self {
            mode: Mode::of_word(&report.mode).unwrap_or(self.mode),
            gauges,
            counters,
            read_hit_ratio: report.counters.read_hit_ratio(),
            write_hit_ratio: report.counters.write_hit_ratio(),
            ..self.clone()
        }
    }

    /// The page of a design for a volume, by its place in [`CacheStat::volumes`]; of the whole cache where
    /// there is none.
    pub fn page(&self, printer: &Printer, volume: Option<usize>, is_table: bool) -> Page {
        self.with_facts(volume, if is_table { printer.table } else { printer.status })
    }

    /// What `FlashCache` says when a cache is made for a disk, on a machine with so much memory.
    pub fn flashcache_created(&self, volume: usize, main_memory_bytes: u64) -> Page {
        let name = self.volumes.get(volume).map_or("", |volume| volume.name.as_str());
        let setting = self.settings.iter().find(|(key, _)| key == "size").map(|(_, value)| value.as_str());
        let blocks = setting.and_then(|text| text.strip_suffix('b')?.parse::<u64>().ok()).unwrap_or(0);
        let sectors = blocks * u64::from(self.block_bytes) / 512;
        self.with_facts(Some(volume), |facts| {
            nandscape_cache::status::flashcache_created(name, facts, sectors, main_memory_bytes)
        })
    }

    fn with_facts(&self, volume: Option<usize>, print: impl FnOnce(&Facts<'_>) -> Page) -> Page {
        let volume = volume.and_then(|at| self.volumes.get(at));
        let setting = |key: &str| {
            let found = self.settings.iter().find(|(name, _)| name == key);
            found.map_or("", |(_, value)| value.as_str())
        };
        let fast_name = self.fast.display().to_string();
        let disk_name = volume.map_or_else(String::new, |volume| volume.disk.display().to_string());
        let (gauges, counters) =
            volume.map_or_else(|| (self.gauges, self.counters.clone()), |volume| self.of_volume(volume));
        let health = [Health::Normal, Health::Degraded, Health::Failed];
        let facts = Facts {
            fast_name: &fast_name,
            disk_name: &disk_name,
            volume_bytes: volume.map_or(0, |volume| volume.bytes),
            dirty_of_all: self.gauges.dirty,
            block_bytes: self.block_bytes,
            ways: self.ways.min(u32::try_from(gauges.slots).unwrap_or(u32::MAX)),
            cluster_bytes: self.cluster_bytes,
            metadata_block_bytes: self.metadata_block_bytes,
            skip_sequential_bytes: self.skip_sequential_bytes,
            mode: self.mode,
            eviction: setting("eviction"),
            admission: setting("admission"),
            cleaning: setting("cleaning"),
            metadata: setting("metadata"),
            health: health.into_iter().find(|health| health.name() == self.health).unwrap_or_default(),
            gauges,
            counters: &counters,
        };
        print(&facts)
    }
}

fn gauges(held: &Held, design: &Design) -> Gauges {
    let (usage, shape) = (held.usage(None), held.superblock.shape);
    Gauges {
        slots: design.whole_slots(shape.slots).into(),
        used: usage.blocks,
        dirty: usage.dirty_blocks,
        dirty_bytes: usage.dirty_bytes,
        metadata_total_bytes: shape.data_offset(),
        metadata_used_bytes: shape.data_offset(),
        ..Gauges::default()
    }
}

impl CacheFile {
    /// What is known of a cache that nobody serves.
    pub fn stat(&mut self) -> Result<CacheStat> {
        let (mut held, settings) = self.look()?;
        let design = settings.design()?;
        let mut stat = CacheStat::of_design(self.path().to_owned(), &design);
        let volumes = held.superblock.volumes.clone();
        // A disk that is away is worth a word, and no reason to tell nothing.
        let verdicts: Vec<_> = volumes.iter().map(|volume| self.verdict(volume.id, None)).collect();
        for (volume, verdict) in volumes.iter().zip(&verdicts) {
            if let Ok(Verdict::Changed(Change::GivenUp(given_up))) = verdict {
                held.count_only(volume.id, &given_up.counts);
            }
        }
        stat.gauges = gauges(&held, &design);
        stat.metadata_block_bytes = nandscape_cache::metadata::METADATA_BLOCK;
        stat.recovery = Some(held.report.to_string());
        stat.mirror = self.fast.mirror();
        if stat.mirror.iter().any(|member| member.failed.is_some()) {
            Health::Degraded.name().clone_into(&mut stat.health);
        }
        if held.report.lost_session {
            Health::Failed.name().clone_into(&mut stat.health);
            stat.trouble = Some("flushed writes of the last session may be lost".to_owned());
        }
        for (volume, verdict) in volumes.iter().zip(verdicts) {
            let (usage, named) = (held.usage(Some(volume.id)), settings.volumes.get(&volume.id));
            let state = match verdict {
                Ok(Verdict::Same) => "same".to_owned(),
                Ok(Verdict::Unknown) => "unknown".to_owned(),
                Ok(Verdict::Changed(Change::GivenUp(given_up))) => given_up.to_string(),
                Ok(Verdict::Changed(change)) => format!("changed: {change}"),
                Err(error) => format!("not there: {error}"),
            };
            stat.volumes.push(VolumeStat {
                name: named.map_or_else(|| format!("volume {}", volume.id), |named| named.name.clone()),
                disk: named.map(|named| named.path.clone()).unwrap_or_default(),
                bytes: volume.bytes,
                blocks: usage.blocks,
                dirty_blocks: usage.dirty_blocks,
                dirty_bytes: usage.dirty_bytes,
                state,
                ..VolumeStat::default()
            });
        }
        stat.follow(&design, &settings);
        Ok(stat)
    }
}
