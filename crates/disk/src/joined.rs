//! Several stores as one: one behind the other, or in stripes.

use crate::base::check;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Applied, BlockCommand, Clocked, Completion, Extent, Op, ParamError, SimTime, Store,
    StoreResult, StoreShape, Token,
};

/// How bytes are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The first store's bytes, then the second's, and so on.
    Concatenated,
    /// So many bytes of each in turn. As much of every store is used as the smallest has.
    Striped(u32),
}

#[derive(Clone, Copy, Debug)]
struct Part {
    store: usize,
    command: BlockCommand,
    applied: Applied,
}

/// Parts under way of which the ends of some are not known.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    generation: u32,
    left: u32,
    at: SimTime,
    tag: Option<u64>,
}

/// The joined stores. A command goes to each store that has a part of it, as one command; it is complete when
/// all of them are, and a flush goes to all.
pub struct Joined {
    stores: Vec<Box<dyn Store + Send>>,
    /// First byte of each store, and the end, where they are concatenated.
    starts: Vec<u64>,
    /// 0 where they are concatenated.
    stripe: u64,
    capacity: u64,
    block: u32,
    counts: HostCounts,
    /// Parts of commands that were applied and not started, by number.
    applied: Vec<Vec<Part>>,
    free_applied: Vec<u64>,
    /// Parts of commands of which another part failed; started with the next one.
    orphans: Vec<Part>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    reports: Vec<Completion>,
    memory: Vec<u8>,
    heard: Vec<Completion>,
}

const MARK: u64 = 1 << 63;

impl Joined {
    /// Joins stores, all with or all without bytes. A stripe is whole blocks of each, at most the smallest.
    pub fn new(stores: Vec<Box<dyn Store + Send>>, layout: Layout) -> Result<Self, ParamError> {
        let Some(keeps) = stores.first().map(|store| store.stores_bytes()) else {
            return Err(ParamError::bad("stores", 0, "1 or more"));
        };
        if let Some(place) = stores.iter().position(|store| store.stores_bytes() != keeps) {
            let expected = format!("as the first, which {} bytes", if keeps { "keeps" } else { "keeps no" });
            return Err(ParamError::bad("stores", format!("number {place}"), expected));
        }
        let block = stores.iter().map(|store| store.block_bytes()).max().unwrap_or(512);
        let unit = u64::from(block);
        let mut starts = vec![0];
        for store in &stores {
            starts.push(starts[starts.len() - 1] + store.capacity_bytes() / unit * unit);
        }
        let least = stores.iter().map(|store| store.capacity_bytes()).min().unwrap_or(0);
        let (stripe, capacity) = match layout {
            Layout::Concatenated => (0, starts[stores.len()]),
            Layout::Striped(bytes) => {
                let stripe = u64::from(bytes);
                if stripe == 0 || !stripe.is_multiple_of(unit) || stripe > least {
                    let expected = format!("a multiple of {unit} of at most {least} bytes");
                    return Err(ParamError::bad("stripe", stripe, expected));
                }
                (stripe, least / stripe * stripe * stores.len() as u64)
            }
        };
        Ok(Self {
            stores,
            starts,
            stripe,
            capacity,
            block,
            counts: HostCounts::default(),
            applied: Vec::new(),
            free_applied: Vec::new(),
            orphans: Vec::new(),
            groups: Vec::new(),
            free_groups: Vec::new(),
            reports: Vec::new(),
            memory: Vec::new(),
            heard: Vec::new(),
        })
    }

    /// The store of a byte, its place there, and how many bytes follow it there without a break.
    fn place(&self, offset: u64) -> (usize, u64, u64) {
        if self.stripe == 0 {
            let store = self.starts.partition_point(|start| *start <= offset) - 1;
            return (store, offset - self.starts[store], self.starts[store + 1] - offset);
        }
        let (stripe, within) = (offset / self.stripe, offset % self.stripe);
        let count = self.stores.len() as u64;
        ((stripe % count) as usize, stripe / count * self.stripe + within, self.stripe - within)
    }

    /// What an extent is at one of the stores. In stripes, too, that is a single extent.
    fn at_store(&self, extent: Extent, store: usize) -> Option<Extent> {
        let mut found: Option<Extent> = None;
        let mut visit = |mut at: u64, end: u64| {
            while at < end {
                let (owner, place, rest) = self.place(at);
                let len = rest.min(extent.end() - at);
                if owner == store {
                    let start = found.map_or(place, |extent| extent.offset.min(place));
                    let end = found.map_or(place + len, |extent| extent.end().max(place + len));
                    found = Some(Extent::new(start, end - start));
                }
                at += len;
            }
        };
        // The first and the last piece there say it all.
        let round = self.stripe * self.stores.len() as u64;
        if round == 0 || extent.len <= 2 * round {
            visit(extent.offset, extent.end());
        } else {
            visit(extent.offset, extent.offset + round);
            visit((extent.end() - round) / self.stripe * self.stripe, extent.end());
        }
        found
    }

    /// Bytes of a command that belong to one store, between the host's memory and memory of the part.
    fn copy(&self, extent: Extent, store: usize, part: Extent, mut each: impl FnMut(usize, usize, usize)) {
        let mut at = extent.offset;
        while at < extent.end() {
            let (owner, place, rest) = self.place(at);
            let len = rest.min(extent.end() - at);
            if owner == store {
                each((at - extent.offset) as usize, (place - part.offset) as usize, len as usize);
            }
            at += len;
        }
    }

    fn apply_part(
        &mut self,
        command: BlockCommand,
        payload: &mut Payload<'_>,
        store: usize,
        part: Extent,
    ) -> StoreResult<Applied> {
        let inner = BlockCommand { extent: part, ..command };
        let mut memory = std::mem::take(&mut self.memory);
        memory.resize(part.len as usize, 0);
        let done = match payload {
            Payload::None | Payload::WriteOob(..) | Payload::ReadOob(..) => {
                self.stores[store].apply(inner, Payload::None)
            }
            Payload::Write(bytes) => {
                self.copy(command.extent, store, part, |host, own, len| {
                    memory[own..own + len].copy_from_slice(&bytes[host..host + len]);
                });
                self.stores[store].apply(inner, Payload::Write(&memory))
            }
            Payload::Read(bytes) => {
                let done = self.stores[store].apply(inner, Payload::Read(&mut memory));
                self.copy(command.extent, store, part, |host, own, len| {
                    bytes[host..host + len].copy_from_slice(&memory[own..own + len]);
                });
                done
            }
        };
        self.memory = memory;
        done
    }

    fn apply_parts(
        &mut self,
        command: BlockCommand,
        mut payload: Payload<'_>,
        parts: &mut Vec<Part>,
    ) -> StoreResult<()> {
        for store in 0..self.stores.len() {
            let extent = match command.op {
                Op::Flush => Some(command.extent),
                _ => self.at_store(command.extent, store),
            };
            let Some(extent) = extent else { continue };
            let applied = if command.op == Op::Flush {
                self.stores[store].apply(command, Payload::None)?
            } else if extent.len == command.extent.len {
                // All of it is there: nothing is copied.
                let inner = BlockCommand { extent, ..command };
                let whole = std::mem::replace(&mut payload, Payload::None);
                self.stores[store].apply(inner, whole)?
            } else {
                self.apply_part(command, &mut payload, store, extent)?
            };
            parts.push(Part { store, command: BlockCommand { extent, ..command }, applied });
        }
        Ok(())
    }

    fn start_parts(&mut self, parts: &[Part], at: SimTime) -> StoreResult<Token> {
        let mut known = at;
        let mut group = None;
        let mut result = Ok(());
        for part in parts {
            let store = &mut self.stores[part.store];
            match store.start(part.command, part.applied, at) {
                Ok(token) => {
                    if let Some(end) = store.completion(token) {
                        known = known.max(end);
                        continue;
                    }
                    let index = *group.get_or_insert_with(|| {
                        self.free_groups.pop().unwrap_or_else(|| {
                            self.groups.push(Group::default());
                            self.groups.len() as u32 - 1
                        })
                    });
                    self.groups[index as usize].left += 1;
                    self.stores[part.store].watch(token, u64::from(index));
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        let Some(index) = group else { return result.map(|()| Token(known.0)) };
        let group = &mut self.groups[index as usize];
        group.at = known;
        let token = Token(MARK | u64::from(group.generation) << 32 | u64::from(index));
        result.map(|()| token)
    }

    /// The group of a token, if it is one that has not ended.
    fn group(&self, token: Token) -> Option<usize> {
        let index = token.0 as u32 as usize;
        let generation = (token.0 >> 32) as u32 & (u32::MAX >> 1);
        (token.0 & MARK != 0 && self.groups[index].generation == generation).then_some(index)
    }
}

impl Store for Joined {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.capacity,
            block_bytes: self.block,
            stores_bytes: self.stores[0].stores_bytes(),
            regions: None,
        }
    }

    /// After an error some of the stores may have taken their part.
    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        self.counts.count(command, self.block);
        if command.op != Op::Flush {
            check(command.extent, self.capacity, self.block)?;
        }
        let number = self.free_applied.pop().unwrap_or_else(|| {
            self.applied.push(Vec::new());
            self.applied.len() as u64 - 1
        });
        let mut parts = std::mem::take(&mut self.applied[number as usize]);
        let done = self.apply_parts(command, payload, &mut parts);
        if done.is_err() {
            self.orphans.append(&mut parts);
            self.free_applied.push(number);
        }
        self.applied[number as usize] = parts;
        done.map(|()| Applied(number))
    }

    fn start(&mut self, _: BlockCommand, applied: Applied, at: SimTime) -> StoreResult<Token> {
        let orphans = std::mem::take(&mut self.orphans);
        // Nobody waits for them.
        let _ = self.start_parts(&orphans, at);
        let mut parts = std::mem::take(&mut self.applied[applied.0 as usize]);
        let token = self.start_parts(&parts, at);
        parts.clear();
        self.applied[applied.0 as usize] = parts;
        self.free_applied.push(applied.0);
        token
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        let (store, place, rest) = self.place(extent.offset);
        self.stores[store].allocation(Extent::new(place, extent.len.min(rest)))
    }

    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> StoreResult<()> {
        self.stores.iter_mut().try_for_each(|store| store.idle(at, until))
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        let mut last = at;
        for store in &mut self.stores {
            let token = store.shutdown(at)?;
            last = last.max(store.completion(token).unwrap_or_else(|| store.idle_from()));
        }
        Ok(Token(last.0))
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.counts = HostCounts::default();
        for store in &mut self.stores {
            store.reset_counters(at);
        }
    }
}

impl Clocked for Joined {
    fn completion(&self, token: Token) -> Option<SimTime> {
        (token.0 & MARK == 0).then_some(SimTime(token.0))
    }

    fn watch(&mut self, token: Token, tag: u64) {
        if let Some(index) = self.group(token) {
            self.groups[index].tag = Some(tag);
        } else {
            let at = self.completion(token).unwrap_or(SimTime::ZERO);
            self.reports.push(Completion { tag, at });
        }
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        let mut heard = std::mem::take(&mut self.heard);
        for store in &mut self.stores {
            store.advance(until, &mut heard);
        }
        heard.sort_by_key(|completion| completion.at);
        for Completion { tag, at } in heard.drain(..) {
            let group = &mut self.groups[tag as usize];
            group.at = group.at.max(at);
            group.left -= 1;
            if group.left == 0 {
                let ended = *group;
                *group = Group { generation: (ended.generation + 1) & (u32::MAX >> 1), ..Group::default() };
                self.free_groups.push(tag as u32);
                if let Some(tag) = ended.tag {
                    self.reports.push(Completion { tag, at: ended.at });
                }
            }
        }
        self.heard = heard;
        self.reports.sort_by_key(|completion| completion.at);
        let due = self.reports.partition_point(|completion| completion.at <= until);
        out.extend(self.reports.drain(..due));
    }

    fn next_event(&self) -> Option<SimTime> {
        let reports = self.reports.iter().map(|completion| completion.at);
        self.stores.iter().filter_map(Clocked::next_event).chain(reports).min()
    }

    fn idle_from(&self) -> SimTime {
        self.stores.iter().map(Clocked::idle_from).max().unwrap_or(SimTime::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keep;
    use crate::disk::tests::measure;
    use crate::registry::build;
    use nandscape_core::Hint;
    use nandscape_core::rng::{below, seeded};
    use std::collections::BTreeMap;

    fn stores(kinds: &[(&str, u64)], keep: Keep) -> Vec<Box<dyn Store + Send>> {
        kinds
            .iter()
            .map(|(kind, bytes)| build(kind, "", &BTreeMap::new(), *bytes, keep).expect("a store"))
            .collect()
    }

    fn command(op: Op, extent: Extent) -> BlockCommand {
        BlockCommand::new(op, extent, Hint::default())
    }

    #[test]
    fn bytes_are_where_they_were_written_whatever_the_layout() {
        for layout in [Layout::Concatenated, Layout::Striped(4096), Layout::Striped(65_536)] {
            let kinds = [("ram", 1 << 20), ("rated", 1_310_720), ("disk", 1 << 20)];
            let mut joined = Joined::new(stores(&kinds, Keep::Bytes), layout).expect("it fits");
            let capacity = joined.capacity_bytes();
            let expected = if layout == Layout::Concatenated { 3_407_872 } else { 3 << 20 };
            assert_eq!(capacity, expected);
            let mut model = vec![0; capacity as usize];
            let mut rng = seeded(4);
            let mut at = SimTime::ZERO;
            for step in 0..600_u64 {
                let offset = below(&mut rng, capacity / 512) * 512;
                let len = (512 * (1 + below(&mut rng, 900))).min(capacity - offset);
                let (extent, range) = (Extent::new(offset, len), offset as usize..(offset + len) as usize);
                match below(&mut rng, 5) {
                    0 => {
                        joined.submit(command(Op::Trim, extent), Payload::None, at).expect("no error");
                        model[range].fill(0);
                    }
                    1 | 2 => {
                        let bytes: Vec<u8> = range.clone().map(|i| (i as u64 / 512 + step) as u8).collect();
                        joined
                            .submit(command(Op::Write, extent), Payload::Write(&bytes), at)
                            .expect("no error");
                        model[range].copy_from_slice(&bytes);
                    }
                    _ => {
                        let mut bytes = vec![1; len as usize];
                        joined
                            .submit(command(Op::Read, extent), Payload::Read(&mut bytes), at)
                            .expect("no error");
                        assert!(bytes == model[range], "{layout:?}, {extent:?} at step {step}");
                    }
                }
                at += 20_000_000;
                joined.advance(at, &mut Vec::new());
            }
        }
    }

    #[test]
    fn every_answer_is_reported_once_in_the_order_of_time() {
        let mut joined = Joined::new(
            stores(&[("disk", 1 << 24), ("disk", 1 << 24)], Keep::Nothing),
            Layout::Striped(4096),
        )
        .expect("it fits");
        let mut rng = seeded(2);
        let mut out = Vec::new();
        for tag in 0..100 {
            let extent = Extent::new(below(&mut rng, 8000) * 4096, 4096 * (1 + tag % 5));
            let token = joined
                .submit(command(Op::Read, extent), Payload::None, SimTime(tag * 1000))
                .expect("no error");
            match joined.completion(token) {
                Some(at) => out.push(Completion { tag, at }),
                None => joined.watch(token, tag),
            }
        }
        let mut heard = Vec::new();
        while let Some(next) = joined.next_event() {
            joined.advance(next, &mut heard);
        }
        assert!(heard.is_sorted_by_key(|completion| completion.at));
        out.extend(heard);
        out.sort_by_key(|completion| completion.tag);
        assert_eq!(
            out.iter().map(|completion| completion.tag).collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
    }

    #[test]
    fn two_drives_in_stripes_read_twice_as_fast() {
        let rate = |count| {
            let kinds = vec![("rated", 1 << 30); count];
            let mut joined =
                Joined::new(stores(&kinds, Keep::Nothing), Layout::Striped(65_536)).expect("it fits");
            let load = measure::Load { request_bytes: 1 << 20, requests: 500, ..measure::Load::default() };
            measure::measure(&mut joined, &load, SimTime::ZERO).expect("no error").bytes_per_s()
        };
        let ratio = rate(2) / rate(1);
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_cannot_be_joined_is_refused_with_its_value() {
        let error = |kinds: &[(&str, u64)], layout| {
            Joined::new(stores(kinds, Keep::Nothing), layout).err().expect("refused").to_string()
        };
        assert_eq!(error(&[], Layout::Concatenated), "stores = '0': expected 1 or more");
        let two = [("ram", 1 << 20), ("ram", 1 << 16)];
        assert_eq!(
            error(&two, Layout::Striped(1000)),
            "stripe = '1000': expected a multiple of 512 of at most 65536 bytes"
        );
        assert!(error(&two, Layout::Striped(131_072)).contains("stripe = '131072'"));
        let mut mixed = stores(&[("ram", 1 << 20)], Keep::Nothing);
        mixed.extend(stores(&[("ram", 1 << 20)], Keep::Bytes));
        assert!(Joined::new(mixed, Layout::Concatenated).is_err());
    }
}
