//! A cache of any design over stores that take time, with what its volume must hold.

#![allow(dead_code, reason = "every test uses a part of it")]

use nandscape_cache::engine::Disk;
use nandscape_cache::{Cache, Counters, Design};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, Subsystem};
use nandscape_disk::{Keep, registry};
use nandscape_policies::eviction::AnyEviction;
use std::collections::BTreeMap;

/// Every cleaning policy, with parameters by which it does something in a short run.
pub const QUICK: &[(&str, &[(&str, &str)])] = &[
    ("none", &[]),
    ("pi-rate", &[("rate_update", "10ms"), ("rate_min", "64KiB")]),
    ("watermarks", &[("clean_high", "30%"), ("clean_low", "10%"), ("clean_max_age", "5s")]),
    ("set-threshold", &[("clean_threshold", "10%")]),
    ("idle-age", &[("fallow_delay", "100ms"), ("fallow_speed", "50")]),
    ("set-age", &[("set_age", "100ms")]),
    ("smq", &[("smq_idle", "10ms")]),
    ("cleaner", &[("cleaner_migration", "16KiB")]),
    ("alru", &[("alru_wake", "10ms"), ("alru_stale", "1s"), ("alru_activity", "10ms")]),
];

pub fn typed(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn design(pairs: &[(&str, &str)]) -> Design {
    Design::parse("cache.", &typed(pairs)).unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
}

/// A store of the registry.
pub fn store(kind: &str, bytes: u64, keep: Keep) -> Box<dyn Store + Send> {
    registry::build(kind, "disk.", &BTreeMap::new(), bytes, keep).expect("a store")
}

pub struct Rig {
    pub cache: Cache<AnyEviction>,
    pub model: Vec<u8>,
    pub at: SimTime,
    pub block: u64,
}

impl Rig {
    /// Over the kinds of stores `fast` and `slow`, of so many bytes each.
    pub fn new(pairs: &[(&str, &str)], fast: (&str, u64), slow: (&str, u64), keep: Keep) -> Self {
        let design = design(pairs);
        let disks = vec![Disk { store: store(slow.0, slow.1, keep), uuid: [1; 16] }];
        let started = design.create(store(fast.0, fast.1, keep), disks, [2; 16], SimTime::ZERO);
        let started = started.unwrap_or_else(|error| panic!("{pairs:?}: {error}"));
        let len = if keep == Keep::Bytes { slow.1 as usize } else { 0 };
        let mut rig = Self {
            cache: started.cache,
            model: vec![0; len],
            at: started.at,
            block: u64::from(design.block_bytes),
        };
        rig.cache.reset_counters(started.at);
        rig
    }

    pub fn counters(&self) -> Counters {
        self.cache.counters().total()
    }

    /// A command now; what is read is compared.
    pub fn run(&mut self, op: Op, offset: u64, len: u64, fill: u8) {
        let command = BlockCommand::new(op, Extent::new(offset, len), Hint::default());
        let range = offset as usize..(offset + len) as usize;
        if self.model.is_empty() {
            self.cache.submit(0, command, Payload::None, self.at).expect("no error");
            return;
        }
        match op {
            Op::Read => {
                let mut bytes = vec![0xee; len as usize];
                self.cache.submit(0, command, Payload::Read(&mut bytes), self.at).expect("no error");
                let wrong = bytes.iter().zip(&self.model[range]).position(|(got, meant)| got != meant);
                assert_eq!(wrong, None, "first wrong byte of {command:?}");
            }
            Op::Write => {
                let bytes: Vec<u8> = range.clone().map(|i| fill.wrapping_add((i / 512) as u8)).collect();
                self.cache.submit(0, command, Payload::Write(&bytes), self.at).expect("no error");
                self.model[range].copy_from_slice(&bytes);
            }
            Op::Trim | Op::WriteZeroes => {
                self.cache.submit(0, command, Payload::None, self.at).expect("no error");
                self.model[range].fill(0);
            }
            Op::Flush => drop(self.cache.submit(0, command, Payload::None, self.at).expect("no error")),
        }
    }

    pub fn read(&mut self, block: u64) {
        self.run(Op::Read, block * self.block, self.block, 0);
    }

    pub fn write(&mut self, block: u64) {
        self.run(Op::Write, block * self.block, self.block, block as u8);
    }

    /// Time goes on, and what is due happens.
    pub fn pass(&mut self, ns: u64) {
        self.at += ns;
        self.cache.advance(self.at, &mut Vec::new());
        assert!(self.cache.late_error().is_none(), "{:?}", self.cache.late_error());
    }

    /// A random command after a random time.
    pub fn step(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let units = self.model.len() as u64 / 512;
        let in_block = self.block / 512;
        let (mut offset, mut len) = (below(rng, units), 1 + below(rng, 3 * in_block));
        if below(rng, 3) > 0 {
            offset = below(rng, units / in_block).min(below(rng, units / in_block)) * in_block;
            len = in_block * (1 + below(rng, 3));
        }
        let len = len.min(units - offset);
        let op = match below(rng, 100) {
            0..40 => Op::Read,
            40..90 => Op::Write,
            90..94 => Op::Trim,
            94..96 => Op::WriteZeroes,
            _ => Op::Flush,
        };
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (offset * 512, len * 512) };
        self.run(op, offset, len, below(rng, 256) as u8);
        match below(rng, 20) {
            0 => self.pass(below(rng, 20_000_000_000)),
            1..6 => self.pass(below(rng, 50_000_000)),
            6..12 => self.at += below(rng, 200_000),
            _ => {}
        }
    }
}
