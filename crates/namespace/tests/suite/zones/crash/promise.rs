//! What a host may find of zones after a loss of power: every zone in one of the epochs between its resets,
//! from the last durable one on; of its blocks the durable versions or later ones; its write pointer behind
//! all that is durable, and before nothing that is missing.

use nandscape_core::zone::{Zone, ZoneAttributes, ZoneState};
use nandscape_testkit::crash::Promises;

/// Never, as the number of an operation.
const NEVER: u32 = u32::MAX;

fn limited(cut: usize) -> u32 {
    cut.min(NEVER as usize - 1) as u32
}

/// When a change was asked for, and when the host knew it to be durable, as numbers of operations.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    from: u32,
    durable: u32,
}

impl Stamp {
    const fn asked(now: usize) -> Self {
        Self { from: now as u32, durable: NEVER }
    }

    const fn known(now: usize) -> Self {
        Self { from: now as u32, durable: now as u32 }
    }

    const fn may(self, cut: u32) -> bool {
        self.from <= cut
    }

    const fn must(self, cut: u32) -> bool {
        self.durable <= cut
    }

    fn after_cut(self, cut: u32) -> Self {
        Self { from: 0, durable: if self.must(cut) { 0 } else { NEVER } }
    }
}

/// What happened to a zone since a reset.
#[derive(Clone, Debug)]
struct Epoch {
    /// The reset.
    stamp: Stamp,
    /// By block: the numbers that it was filled with, oldest first.
    blocks: Vec<Vec<(u64, Stamp)>>,
    /// Where the write pointer was.
    pointers: Vec<(u64, Stamp)>,
    finishes: Vec<Stamp>,
    extension: Option<(Box<[u8]>, Stamp)>,
    failures: Vec<(ZoneState, Stamp)>,
    /// Its blocks may be written in any order.
    is_random: bool,
}

impl Epoch {
    fn new(blocks: usize, stamp: Stamp) -> Self {
        Self {
            stamp,
            blocks: vec![Vec::new(); blocks],
            pointers: Vec::new(),
            finishes: Vec::new(),
            extension: None,
            failures: Vec::new(),
            is_random: false,
        }
    }

    fn after_cut(&self, cut: u32) -> Self {
        let versions = |versions: &Vec<(u64, Stamp)>| {
            let first = versions.iter().rposition(|(_, stamp)| stamp.must(cut)).unwrap_or(0);
            let kept = versions[first..].iter().filter(|(_, stamp)| stamp.may(cut));
            kept.map(|(salt, stamp)| (*salt, stamp.after_cut(cut))).collect()
        };
        let pointers = self.pointers.iter().filter(|(_, stamp)| stamp.may(cut));
        let finishes = self.finishes.iter().filter(|stamp| stamp.may(cut));
        let failures = self.failures.iter().filter(|(_, stamp)| stamp.may(cut));
        let extension = self.extension.as_ref().filter(|(_, stamp)| stamp.may(cut));
        Self {
            stamp: self.stamp.after_cut(cut),
            blocks: self.blocks.iter().map(versions).collect(),
            pointers: pointers.map(|(pointer, stamp)| (*pointer, stamp.after_cut(cut))).collect(),
            finishes: finishes.map(|stamp| stamp.after_cut(cut)).collect(),
            extension: extension.map(|(bytes, stamp)| (bytes.clone(), stamp.after_cut(cut))),
            failures: failures.map(|(state, stamp)| (*state, stamp.after_cut(cut))).collect(),
            is_random: self.is_random,
        }
    }

    /// Checks a zone that a cut before operation `cut` may have left in this epoch.
    fn check(&self, cut: u32, found: &Found) -> Result<(), String> {
        let Zone { state, capacity, attributes, .. } = found.zone;
        match (&found.zone.extension, &self.extension) {
            (None, Some((_, stamp))) if stamp.must(cut) => return Err("its extension is gone".to_owned()),
            (Some(_), None) => return Err("it has an extension that nobody set".to_owned()),
            (Some(found), Some((bytes, _))) if found != bytes => {
                return Err("it has another extension".to_owned());
            }
            _ => {}
        }
        let has_failed = self.failures.iter().any(|(_, stamp)| stamp.must(cut));
        if has_failed && !matches!(state, ZoneState::ReadOnly | ZoneState::Offline) {
            return Err(format!("it is {state:?} and had failed"));
        }
        let is_finished = self.finishes.iter().any(|stamp| stamp.must(cut));
        let pointer = match state {
            ZoneState::Offline | ZoneState::ReadOnly if !found.may_fail => {
                return Err(format!("it is {state:?} on a medium without faults"));
            }
            ZoneState::Offline => return Ok(()),
            ZoneState::ReadOnly => None,
            ZoneState::Full if self.finishes.iter().any(|stamp| stamp.may(cut)) => None,
            ZoneState::Full if found.is_at_limit && attributes.has(ZoneAttributes::FINISHED_BY_DEVICE) => {
                None
            }
            ZoneState::Full => Some(capacity / u64::from(found.block_bytes)),
            _ if is_finished => return Err(format!("it is {state:?} and was finished")),
            _ if found.is_fresh && state.is_open() => return Err(format!("it is {state:?} after a start")),
            _ => Some(found.pointer()),
        };
        if state == ZoneState::Closed
            && found.is_fresh
            && pointer == Some(0)
            && found.zone.extension.is_none()
            && found.salts.iter().all(|salt| *salt == Some(0))
        {
            return Err("it is closed, and there is nothing in it".to_owned());
        }
        if let Some(pointer) = pointer {
            self.check_pointer(cut, pointer)?;
        }
        let mut missing = None;
        for (block, versions) in self.blocks.iter().enumerate() {
            let salt = found.salts[block];
            let durable = versions.iter().rposition(|(_, stamp)| stamp.must(cut));
            let possible = versions[durable.unwrap_or(0)..].iter().filter(|(_, stamp)| stamp.may(cut));
            let is_below = pointer.is_some_and(|pointer| (block as u64) < pointer);
            if possible.clone().any(|(version, _)| Some(*version) == salt) {
                if let (Some(missing), false, None) = (missing, self.is_random, durable) {
                    return Err(format!("block {missing} is missing, and block {block} is not"));
                }
                continue;
            }
            let was_written = possible.clone().next().is_some();
            let error = |what: &str| {
                let known: Vec<u64> = versions.iter().map(|(salt, _)| *salt).collect();
                Err(format!("block {block} is {what}: {salt:x?} of {known:x?}, the durable is {durable:?}"))
            };
            match salt {
                None => return error("a mixture"),
                Some(0) if durable.is_some() => return error("zero, and was durable"),
                Some(0) if is_below && was_written => return error("zero, and below the write pointer"),
                Some(0) if was_written => missing = missing.or(Some(block)),
                Some(0) => {}
                Some(_) => return error("what it never was, or is no more"),
            }
        }
        Ok(())
    }

    fn check_pointer(&self, cut: u32, pointer: u64) -> Result<(), String> {
        let durable = self.pointers.iter().filter(|(_, stamp)| stamp.must(cut));
        let least = durable.map(|(pointer, _)| *pointer).max().unwrap_or(0);
        let moved = self.pointers.iter().filter(|(_, stamp)| stamp.may(cut)).map(|(pointer, _)| *pointer);
        let is_written = |versions: &Vec<(u64, Stamp)>| versions.iter().any(|(_, stamp)| stamp.may(cut));
        let end = self.blocks.iter().rposition(is_written).map_or(0, |block| block as u64 + 1);
        let most = moved.max().unwrap_or(0).max(end);
        if (least..=most).contains(&pointer) {
            return Ok(());
        }
        Err(format!("the write pointer is {pointer}, expected {least} to {most}"))
    }
}

/// A zone as it is found.
pub struct Found {
    pub zone: Zone,
    /// What each block is filled with: 0 where it is zero, none where it is a mixture.
    pub salts: Vec<Option<u64>>,
    pub block_bytes: u32,
    /// The layer has just started.
    pub is_fresh: bool,
    /// As many zones are active as can be.
    pub is_at_limit: bool,
    /// Blocks of the medium fail.
    pub may_fail: bool,
}

impl Found {
    /// Blocks below the write pointer.
    pub fn pointer(&self) -> u64 {
        let end = self.zone.write_pointer.unwrap_or(self.zone.start);
        (end - self.zone.start) / u64::from(self.block_bytes)
    }
}

/// Something that becomes durable.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    zone: usize,
    epoch: usize,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Reset,
    Block { block: usize, version: usize },
    Pointer(usize),
    Finish(usize),
    Extension,
    Failure(usize),
}

/// What a host knows of each zone.
#[derive(Clone, Debug)]
pub struct ZonePromises {
    zones: Vec<Vec<Epoch>>,
}

impl Promises for ZonePromises {
    fn after_cut(&self, cut: usize) -> Self {
        let cut = limited(cut);
        let zone = |epochs: &Vec<Epoch>| {
            epochs[allowed(epochs, cut)].iter().map(|epoch| epoch.after_cut(cut)).collect()
        };
        Self { zones: self.zones.iter().map(zone).collect() }
    }
}

fn allowed(epochs: &[Epoch], cut: u32) -> std::ops::Range<usize> {
    let first = epochs.iter().rposition(|epoch| epoch.stamp.must(cut)).unwrap_or(0);
    let end = epochs.iter().rposition(|epoch| epoch.stamp.may(cut)).map_or(1, |last| last + 1);
    first..end.max(first + 1)
}

impl ZonePromises {
    /// Zones of so many blocks, all empty.
    pub fn fresh(zones: u32, blocks: u64) -> Self {
        let epoch = Epoch::new(blocks as usize, Stamp { from: 0, durable: 0 });
        Self { zones: vec![vec![epoch]; zones as usize] }
    }

    pub fn len(&self) -> usize {
        self.zones.len()
    }

    /// Checks a zone after a cut before operation `cut`.
    pub fn check(&self, zone: usize, cut: usize, found: &Found) -> Result<(), String> {
        let cut = limited(cut);
        let epochs = &self.zones[zone];
        let mut errors = Vec::new();
        for number in allowed(epochs, cut).rev() {
            match epochs[number].check(cut, found) {
                Ok(()) => return Ok(()),
                Err(error) => errors.push(format!("as of reset {number}: {error}")),
            }
        }
        let Zone { state, capacity, .. } = found.zone;
        let pointer = found.pointer();
        Err(format!("zone {zone}, {state:?} with {pointer} of {capacity} bytes: {}", errors.join("; ")))
    }

    /// A zone is as it was found from now on.
    pub fn observe(&mut self, zone: usize, found: &Found, now: usize) {
        let known = Stamp::known(now);
        let mut epoch = Epoch::new(found.salts.len(), known);
        for (versions, salt) in epoch.blocks.iter_mut().zip(&found.salts) {
            versions.extend(salt.filter(|salt| *salt != 0).map(|salt| (salt, known)));
        }
        epoch.extension = found.zone.extension.clone().map(|bytes| (bytes, known));
        match found.zone.state {
            ZoneState::Full => epoch.finishes.push(known),
            state @ (ZoneState::ReadOnly | ZoneState::Offline) => epoch.failures.push((state, known)),
            _ => epoch.pointers.push((found.pointer(), known)),
        }
        epoch.is_random = epoch.blocks.iter().skip(found.pointer() as usize).any(|block| !block.is_empty());
        self.zones[zone].push(epoch);
    }

    /// What each block holds if everything that was asked for is done.
    pub fn latest(&self, zone: usize) -> impl Iterator<Item = u64> {
        let epoch = self.zones[zone].last().expect("a zone has an epoch");
        epoch.blocks.iter().map(|versions| versions.last().map_or(0, |(salt, _)| *salt))
    }

    fn last(&mut self, zone: usize) -> (usize, &mut Epoch) {
        let number = self.zones[zone].len() - 1;
        (number, &mut self.zones[zone][number])
    }

    pub fn write(&mut self, zone: usize, block: u64, salt: u64, now: usize) -> Mark {
        let (epoch, last) = self.last(zone);
        let block = block as usize;
        last.blocks[block].push((salt, Stamp::asked(now)));
        Mark { zone, epoch, what: What::Block { block, version: last.blocks[block].len() - 1 } }
    }

    pub fn point(&mut self, zone: usize, pointer: u64, now: usize) -> Mark {
        let (epoch, last) = self.last(zone);
        last.pointers.push((pointer, Stamp::asked(now)));
        Mark { zone, epoch, what: What::Pointer(last.pointers.len() - 1) }
    }

    pub fn open_random(&mut self, zone: usize) {
        self.last(zone).1.is_random = true;
    }

    pub fn reset(&mut self, zone: usize, now: usize) -> Mark {
        let (epoch, last) = self.last(zone);
        let next = Epoch::new(last.blocks.len(), Stamp::asked(now));
        self.zones[zone].push(next);
        Mark { zone, epoch: epoch + 1, what: What::Reset }
    }

    pub fn finish(&mut self, zone: usize, now: usize) -> Mark {
        let (epoch, last) = self.last(zone);
        last.finishes.push(Stamp::asked(now));
        Mark { zone, epoch, what: What::Finish(last.finishes.len() - 1) }
    }

    pub fn describe(&mut self, zone: usize, bytes: Box<[u8]>, now: usize) -> Mark {
        let (epoch, last) = self.last(zone);
        last.extension = Some((bytes, Stamp::asked(now)));
        Mark { zone, epoch, what: What::Extension }
    }

    pub fn fail(&mut self, zone: usize, state: ZoneState, now: usize) -> Mark {
        let (epoch, last) = self.last(zone);
        last.failures.push((state, Stamp::asked(now)));
        Mark { zone, epoch, what: What::Failure(last.failures.len() - 1) }
    }

    fn stamp(&mut self, mark: Mark) -> &mut Stamp {
        let epoch = &mut self.zones[mark.zone][mark.epoch];
        match mark.what {
            What::Reset => &mut epoch.stamp,
            What::Block { block, version } => &mut epoch.blocks[block][version].1,
            What::Pointer(number) => &mut epoch.pointers[number].1,
            What::Finish(number) => &mut epoch.finishes[number],
            What::Extension => &mut epoch.extension.as_mut().expect("it was set").1,
            What::Failure(number) => &mut epoch.failures[number].1,
        }
    }

    /// The host learnt that something is durable.
    pub fn settle(&mut self, mark: Mark, now: usize) {
        let stamp = self.stamp(mark);
        stamp.durable = stamp.durable.min(now as u32);
    }

    pub fn is_settled(&mut self, mark: Mark) -> bool {
        self.stamp(mark).durable != NEVER
    }
}
