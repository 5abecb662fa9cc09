//! Adaptive replacement.

use super::ghost::Ghost;
use super::lists::{Links, List};
use super::table::Table;
use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// Two lists, of blocks asked for once and more often, and the names of what left each; names asked for again
/// shift the bound between the lists.
#[derive(Clone, Debug)]
pub struct Arc {
    links: Links,
    once: List,
    often: List,
    once_names: Ghost,
    often_names: Ghost,
    keys: Table<u64>,
    is_often: Table<bool>,
    slots: u32,
    /// How long `once` should be.
    target: f64,
    returning: Option<Returning>,
}

#[derive(Clone, Copy, Debug)]
struct Returning {
    key: BlockKey,
    was_often: bool,
}

impl Build for Arc {
    const INFO: Info = Info {
        name: "arc",
        summary: "blocks asked for once and more often in two lists, whose bound follows what is asked for again",
        source: "Megiddo and Modha, FAST '03, figure 4",
        params: &[],
    };

    fn new(slots: u32, _: &Params, _: u64) -> Self {
        Self {
            links: Links::new(slots),
            once: List::new(),
            often: List::new(),
            once_names: Ghost::new(slots),
            often_names: Ghost::new(slots.saturating_mul(2)),
            keys: Table::of(0, slots),
            is_often: Table::of(false, slots),
            slots,
            target: 0.0,
            returning: None,
        }
    }
}

impl Arc {
    fn take_once(&mut self, may: &mut impl FnMut(u32) -> bool, remember: bool) -> Option<u32> {
        let slot = self.once.take_first(&mut self.links, may)?;
        if remember {
            self.once_names.push(self.keys[slot as usize]);
        }
        Some(slot)
    }

    fn take_often(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let slot = self.often.take_first(&mut self.links, may)?;
        self.often_names.push(self.keys[slot as usize]);
        Some(slot)
    }

    /// The paper's REPLACE.
    fn replace(&mut self, may: &mut impl FnMut(u32) -> bool, was_often: bool) -> Option<u32> {
        let once = f64::from(self.once.len());
        let is_at_target = (once - self.target).abs() < f64::EPSILON;
        if self.once.len() > 0 && (once > self.target || was_often && is_at_target) {
            self.take_once(may, true).or_else(|| self.take_often(may))
        } else {
            self.take_often(may).or_else(|| self.take_once(may, true))
        }
    }

    /// Room among the names for a block that is new (case IV of the paper). Returns whether the oldest block
    /// of `once` leaves without a name.
    fn forget(&mut self) -> bool {
        let slots = self.slots as usize;
        let (once, often) = (self.once.len() as usize, self.often.len() as usize);
        if once + self.once_names.len() >= slots {
            self.once_names.pop();
            return once >= slots;
        }
        if once + often + self.once_names.len() + self.often_names.len() >= 2 * slots {
            self.often_names.pop();
        }
        false
    }
}

impl Eviction for Arc {
    #[inline]
    fn hit(&mut self, slot: u32) {
        if std::mem::replace(&mut self.is_often[slot as usize], true) {
            self.often.make_youngest(&mut self.links, slot);
        } else {
            self.once.unlink(&mut self.links, slot);
            self.often.push_young(&mut self.links, slot);
        }
    }

    #[inline]
    fn miss(&mut self, key: BlockKey) {
        let (once, often) = (self.once_names.len() as f64, self.often_names.len() as f64);
        self.returning = None;
        if self.once_names.take(key.0) {
            self.target = (self.target + (often / once).max(1.0)).min(f64::from(self.slots));
            self.returning = Some(Returning { key, was_often: false });
        } else if self.often_names.take(key.0) {
            self.target = (self.target - (once / often).max(1.0)).max(0.0);
            self.returning = Some(Returning { key, was_often: true });
        }
    }

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        if let Some(returning) = self.returning {
            return self.replace(&mut may, returning.was_often);
        }
        if self.forget() { self.take_once(&mut may, false) } else { self.replace(&mut may, false) }
    }

    #[inline]
    fn insert(&mut self, slot: u32, key: BlockKey) {
        let is_often = self.returning.take_if(|returning| returning.key == key).is_some();
        self.keys[slot as usize] = key.0;
        self.is_often[slot as usize] = is_often;
        let list = if is_often { &mut self.often } else { &mut self.once };
        list.push_young(&mut self.links, slot);
    }

    fn remove(&mut self, slot: u32) {
        let list = if self.is_often[slot as usize] { &mut self.often } else { &mut self.once };
        list.unlink(&mut self.links, slot);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.keys[to as usize] = self.keys[from as usize];
        self.is_often[to as usize] = self.is_often[from as usize];
        let list = if self.is_often[to as usize] { &mut self.often } else { &mut self.once };
        list.relabel(&mut self.links, from, to);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let is_once = f64::from(self.once.len()) > self.target;
        let (first, second) = if is_once { (self.once, self.often) } else { (self.often, self.once) };
        let _ = first.visit(&self.links, each) && second.visit(&self.links, each);
    }

    fn favoured(&self) -> u32 {
        self.often.len()
    }

    fn footprint(&self) -> Footprint {
        let names = self.once_names.footprint() + self.often_names.footprint();
        self.links.footprint() + names + self.keys.footprint() + self.is_often.footprint()
    }
}
