//! Commands of NVM sets and endurance groups: identify data, features 12h to 14h, log pages 09h to 0Bh.
//!
//! Sets and groups are numbered from 0 here and from 1 on the wire, where 0 means none.

use super::NvmSubsystem;
use crate::sets::{
    Budget, EnduranceGroupLog, PlmConfig, PlmError, PlmLog, PredictableLatency, ReadRecovery, SetAttributes,
    Window, controller_attribute, encode_aggregate, encode_group_list, encode_set_list,
};
use nandscape_core::{Archive, BlockId, FtlError, FtlResult, SimTime, State, StateResult, Subsystem};

/// What a set cannot find out by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFacts {
    /// A 4 KiB read on an idle set, in nanoseconds.
    pub read_typical_ns: u64,
    /// Erases of a block, if they are limited.
    pub endurance: Option<u32>,
    /// Reads of 4 KiB in a deterministic window.
    pub dtwin_reads: u64,
    /// Longest deterministic window.
    pub dtwin_ms: u64,
    /// Time between two windows, recommended.
    pub ndwin_high_ms: u64,
    /// Time between two windows, enforced.
    pub ndwin_low_ms: u64,
    /// Read recovery level at the start.
    pub read_recovery: u8,
    /// The host enables the mode at once and asks for a deterministic window whenever it may.
    pub keeps_windows: bool,
}

impl Default for SetFacts {
    fn default() -> Self {
        Self {
            read_typical_ns: 100_000,
            endurance: None,
            dtwin_reads: 10_000_000,
            dtwin_ms: 60_000,
            ndwin_high_ms: 10_000,
            ndwin_low_ms: 1_000,
            read_recovery: 4,
            keeps_windows: false,
        }
    }
}

/// The state of the standard's commands, for all sets.
#[derive(Debug)]
pub(super) struct Standard {
    facts: Vec<SetFacts>,
    recovery: ReadRecovery,
    /// One a set; `None` where the layer cannot put its work off.
    plm: Vec<Option<PredictableLatency>>,
    /// Some set has the mode enabled, so commands have to look.
    pub is_watching: bool,
}

impl State for Standard {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let Self { facts: _, recovery, plm, is_watching } = self;
        recovery.state(archive)?;
        plm.iter_mut().try_for_each(|plm| archive.part(plm))?;
        is_watching.state(archive)
    }
}

impl Standard {
    pub fn new(sets: &[super::NvmSet]) -> Self {
        let plm = sets.iter().map(|set| {
            let room = set.ftl.quiet_room()?;
            let page_bytes = set.ftl.device().geometry().page_bytes;
            let write_bytes = page_bytes * set.ftl.device().capabilities().program_pages;
            let room_bytes = room.least_pages * u64::from(page_bytes);
            Some(PredictableLatency::new(Budget {
                reads_typical: set.facts.dtwin_reads,
                writes_typical: room_bytes / u64::from(write_bytes),
                time_max_ms: set.facts.dtwin_ms,
                ndwin_high_ms: set.facts.ndwin_high_ms.max(set.facts.ndwin_low_ms),
                ndwin_low_ms: set.facts.ndwin_low_ms.max(1),
                write_bytes,
            }))
        });
        Self {
            facts: sets.iter().map(|set| set.facts).collect(),
            recovery: ReadRecovery::new(sets.iter().map(|set| set.facts.read_recovery).collect()),
            plm: plm.collect(),
            is_watching: false,
        }
    }
}

impl NvmSubsystem {
    /// Bits of CTRATT that this subsystem sets: see [`controller_attribute`].
    pub fn controller_attributes(&self) -> u32 {
        use controller_attribute as bit;
        let plm = if self.standard.plm.iter().all(Option::is_some) { bit::PREDICTABLE_LATENCY } else { 0 };
        bit::NVM_SETS | bit::READ_RECOVERY_LEVELS | bit::ENDURANCE_GROUPS | plm
    }

    /// Attributes of a set.
    pub fn set_attributes(&self, set: u16) -> SetAttributes {
        let index = usize::from(set);
        let device = self.inspect().device(set);
        let (total_bytes, unallocated_bytes) = self.capacity(|other| other == set);
        SetAttributes {
            set_id: set + 1,
            endurance_group_id: self.groups[index] + 1,
            read_typical_100ns: self.standard.facts[index].read_typical_ns.div_ceil(100) as u32,
            optimal_write_bytes: device.geometry().page_bytes * device.capabilities().program_pages,
            total_bytes,
            unallocated_bytes,
        }
    }

    /// Identify, CNS 04h, from a set identifier on.
    pub fn identify_sets(&self, from: u16) -> Vec<u8> {
        let sets: Vec<SetAttributes> =
            (0..self.inspect().sets()).map(|set| self.set_attributes(set)).collect();
        encode_set_list(&sets, from)
    }

    /// Endurance groups, ascending.
    pub fn endurance_groups(&self) -> Vec<u16> {
        let mut groups: Vec<u16> = self.groups.clone();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Identify, CNS 19h, from a group identifier on.
    pub fn identify_groups(&self, from: u16) -> Vec<u8> {
        let groups: Vec<u16> = self.endurance_groups().iter().map(|group| group + 1).collect();
        encode_group_list(&groups, from)
    }

    /// Logical and unallocated bytes of some sets.
    fn capacity(&self, is_meant: impl Fn(u16) -> bool) -> (u128, u128) {
        let sets = (0..self.inspect().sets()).filter(|set| is_meant(*set));
        let total: u128 = sets.map(|set| u128::from(self.inspect().layer(set).cost().usable_bytes)).sum();
        let spaces = self.spaces.iter().filter(|space| is_meant(space.set as u16));
        let allocated: u128 = spaces.map(|space| u128::from(space.capacity_bytes)).sum();
        (total, total - allocated)
    }

    /// Log page 09h of a group, counted since the last reset except for wear. `None` without sets.
    pub fn endurance_log(&self, group: u16) -> Option<EnduranceGroupLog> {
        let is_meant = |set: u16| self.groups[usize::from(set)] == group;
        let members: Vec<u16> = (0..self.inspect().sets()).filter(|set| is_meant(*set)).collect();
        let (total_bytes, unallocated_bytes) = self.capacity(is_meant);
        let mut log = EnduranceGroupLog {
            spare_threshold_percent: 10,
            total_bytes,
            unallocated_bytes,
            ..EnduranceGroupLog::default()
        };
        for space in self.spaces.iter().filter(|space| is_meant(space.set as u16)) {
            log.read_bytes += u128::from(space.counts.read_bytes);
            log.written_bytes += u128::from(space.counts.write_bytes);
            log.read_commands += u128::from(space.counts.reads);
            log.write_commands += u128::from(space.counts.writes);
        }
        let (mut blocks, mut good, mut erases, mut lives) = (0u64, 0u64, 0u64, 0u128);
        for set in &members {
            let device = self.inspect().device(*set);
            let geometry = device.geometry();
            log.media_bytes += u128::from(device.tally().totals.programs) * u128::from(geometry.page_bytes);
            blocks += u64::from(geometry.blocks());
            for block in (0..geometry.blocks()).map(BlockId).filter(|block| !device.is_bad(*block)) {
                good += 1;
                erases += u64::from(device.erase_count(block));
                let life = self.standard.facts[usize::from(*set)].endurance.unwrap_or(0);
                lives += u128::from(life) * u128::from(geometry.block_bytes());
            }
        }
        let endurance = members.iter().find_map(|set| self.standard.facts[usize::from(*set)].endurance);
        log.spare_percent = (good * 100).checked_div(blocks)? as u8;
        if let Some(endurance) = endurance {
            let used = erases as f64 / (good as f64 * f64::from(endurance)) * 100.0;
            log.used_percent = used.clamp(0.0, 255.0) as u8;
            log.endurance_bytes = (lives as f64 / log.waf().unwrap_or(1.0).max(f64::MIN_POSITIVE)) as u128;
        }
        Some(log)
    }

    /// Read recovery levels (feature 12h).
    pub const fn read_recovery(&self) -> &ReadRecovery {
        &self.standard.recovery
    }

    /// Set Features 12h.
    pub fn set_read_recovery(&mut self, set: u16, level: u8) -> Result<(), PlmError> {
        self.standard.recovery.set_level(set, level)
    }

    /// The predictable latency state of a set, if its layer can put work off.
    pub fn predictable(&self, set: u16) -> Option<&PredictableLatency> {
        self.standard.plm.get(usize::from(set))?.as_ref()
    }

    /// Set Features 13h: enables or disables the mode of a set.
    pub fn configure_predictable(
        &mut self,
        set: u16,
        enable: bool,
        config: PlmConfig,
        at: SimTime,
    ) -> Result<(), NvmSetError> {
        self.plm_step(set, at, |plm| {
            plm.configure(enable, config, at);
            Ok(())
        })
    }

    /// Set Features 14h: asks for a window.
    pub fn select_window(&mut self, set: u16, window: u8, at: SimTime) -> Result<(), NvmSetError> {
        self.plm_step(set, at, |plm| plm.select(window, at))
    }

    /// Get Log Page 0Ah.
    pub fn predictable_log(&mut self, set: u16, retain: bool, at: SimTime) -> Result<PlmLog, NvmSetError> {
        self.plm_step(set, at, |plm| Ok(plm.log(retain, at)))
    }

    /// Get Log Page 0Bh: the sets with events.
    pub fn predictable_events(&self) -> Vec<u8> {
        let has_events =
            |plm: &Option<PredictableLatency>| plm.as_ref().is_some_and(PredictableLatency::has_events);
        let plm = self.standard.plm.iter().zip(1..);
        let identifiers: Vec<u16> = plm.filter(|(plm, _)| has_events(plm)).map(|(_, id)| id).collect();
        encode_aggregate(&identifiers)
    }

    /// Whether a set has come into log 0Bh since the last call, so that an asynchronous event is due.
    pub fn take_predictable_news(&mut self) -> bool {
        self.standard.plm.iter_mut().flatten().fold(false, |news, plm| news | plm.take_news())
    }

    /// Begins anew what the configuration asks for: windows kept for hosts that do not speak of them.
    pub(super) fn keep_windows(&mut self, at: SimTime) {
        for set in 0..self.inspect().sets() {
            let index = usize::from(set);
            if self.standard.facts[index].keeps_windows && self.standard.plm[index].is_some() {
                let begun = self.step(set, at, |plm| {
                    plm.configure(false, PlmConfig::default(), at);
                    plm.configure(true, PlmConfig::default(), at);
                    plm.select(1, at)
                });
                // A layer without room to make up for what it put off says so again at the next write.
                debug_assert!(!matches!(begun, Ok(Err(_))), "{begun:?}");
            }
        }
    }

    fn plm_step<T>(
        &mut self,
        set: u16,
        at: SimTime,
        act: impl FnOnce(&mut PredictableLatency) -> Result<T, PlmError>,
    ) -> Result<T, NvmSetError> {
        let plm = self.standard.plm.get(usize::from(set)).ok_or(PlmError::InvalidField("no such NVM set"))?;
        if plm.is_none() {
            return Err(PlmError::InvalidField("the set's translation layer cannot put work off").into());
        }
        Ok(self.step(set, at, act)??)
    }

    /// Lets a set's state act, and tells its layer when a window begins or ends.
    fn step<T>(
        &mut self,
        set: u16,
        at: SimTime,
        act: impl FnOnce(&mut PredictableLatency) -> T,
    ) -> FtlResult<T> {
        let index = usize::from(set);
        let plm = self.standard.plm[index].as_mut().expect("asked for where there is one");
        let before = plm.window();
        plm.pass(at);
        let result = act(plm);
        let ftl = &mut self.layers[index];
        let is_kept = self.standard.facts[index].keeps_windows;
        if before == Window::Deterministic && plm.window() == Window::NonDeterministic && is_kept {
            // What the host would do on the event.
            plm.select(1, at).expect("the mode is enabled");
        }
        if plm.window() != before {
            let is_deterministic = plm.window() == Window::Deterministic;
            ftl.defer_collection(is_deterministic, at)?;
            if is_deterministic {
                let page = u64::from(ftl.device().geometry().page_bytes);
                plm.note_room(ftl.quiet_room().unwrap_or_default().now_pages * page);
            }
            self.standard.is_watching =
                self.standard.plm.iter().flatten().any(|plm| plm.window() != Window::Off);
        }
        Ok(result)
    }

    /// Counts a command of the host in the set's window.
    #[cold]
    pub(super) fn observe(
        &mut self,
        set: usize,
        is_write: bool,
        bytes: u64,
        pages: u64,
        at: SimTime,
    ) -> FtlResult<()> {
        if self.standard.plm[set].is_none() {
            return Ok(());
        }
        let ftl = &self.layers[set];
        let page = u64::from(ftl.device().geometry().page_bytes);
        let room = ftl.quiet_room().unwrap_or_default().now_pages;
        // A partly covered page costs a whole one.
        let (bytes, room_bytes) = (bytes.max(pages * page), room * page);
        let count = |plm: &mut PredictableLatency| {
            if is_write { plm.write(bytes, room_bytes, at) } else { plm.read(bytes, at) }
        };
        self.step(set as u16, at, count).map(drop)
    }

    /// The next time a window changes by itself, up to `until`.
    pub(super) fn window_due(&self, until: SimTime) -> Option<SimTime> {
        let plm = self.standard.plm.iter().flatten();
        plm.filter_map(PredictableLatency::due).min().filter(|due| *due <= until)
    }

    pub(super) fn pass_windows(&mut self, at: SimTime) {
        for set in 0..self.inspect().sets() {
            if self.standard.plm[usize::from(set)].is_some() {
                // As in `keep_windows`, an error of the layer comes again.
                let _ = self.step(set, at, |_| ());
            }
        }
    }
}

/// Why a command about a set fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NvmSetError {
    #[error(transparent)]
    Command(#[from] PlmError),
    #[error(transparent)]
    Ftl(#[from] FtlError),
}
