//! Which sealed block garbage collection empties next.
//!
//! A policy is told when a block becomes a candidate, loses a valid page or stops being one, and answers
//! which to take. It moves nothing and sees no device, so a table of numbers tests it. Blocks are numbered
//! from 0 inside the collection domain (the whole device or a reclaim group, or one plane with static
//! allocation). Where pieces are collected as a whole, a piece stands for a block.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
pub(crate) mod lists;
mod random;

pub use d_choices::{D, SEED};
use nandscape_core::{Info, Params, State, state, state_of_enum};

/// What a policy may look at when it picks.
#[derive(Clone, Copy, Debug)]
pub struct VictimFacts<'a> {
    /// Valid pages of each block of the domain.
    pub blocks: &'a [BlockInfo],
    /// Pages the layer has programmed so far: the clock in which ages are measured.
    pub now: u64,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockInfo {
    /// Pages that hold current data.
    pub valid: u32,
    /// Where it is in its life.
    pub state: BlockState,
}

/// Where a block is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Erased, waiting in a free pool.
    #[default]
    Free,
    /// Being written.
    Open,
    /// Fully programmed: a candidate.
    Sealed,
    /// Chosen, and being emptied.
    Victim,
    /// Failed a program: to be emptied and given up.
    Failed,
    /// Of the SLC cache, which knows more; never a candidate.
    Cache,
    /// Bad from the factory or given up.
    Bad,
}

state!(impl [] BlockInfo { saved: valid, state; });
state_of_enum!(BlockState: Free, Open, Sealed, Victim, Failed, Cache, Bad);

/// Chooses victims. Every block that was `sealed` and not yet `removed` is a candidate.
pub trait VictimPolicy: State + Send {
    /// The block is a candidate from now on.
    fn sealed(&mut self, block: u32, valid: u32, now: u64);

    /// A candidate lost a page; `valid` are left.
    fn invalidated(&mut self, block: u32, valid: u32, now: u64);

    /// The block is no candidate any more.
    fn removed(&mut self, block: u32);

    /// The candidate to take, which stays one until `removed`; `None` if there is none. The answer may have
    /// no invalid page (fifo and random do not look), and the caller collects it all the same.
    fn pick(&mut self, facts: &VictimFacts<'_>) -> Option<u32>;
}

/// What a policy is built for.
#[derive(Clone, Copy, Debug)]
pub struct VictimSetup<'a> {
    /// Blocks of the domain.
    pub blocks: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Which domain this is, so that random draws differ between domains.
    pub domain: u32,
    /// Checked parameters; the policy's own are among them.
    pub params: &'a Params,
}

/// A registered policy.
#[derive(Clone, Copy, Debug)]
pub struct VictimEntry {
    /// Name, summary, source, parameters (keys of the `ftl` table).
    pub info: Info,
    /// Makes one.
    pub build: fn(&VictimSetup<'_>) -> Box<dyn VictimPolicy>,
}

/// Every victim policy.
pub static VICTIMS: &[VictimEntry] =
    &[greedy::ENTRY, fifo::ENTRY, random::ENTRY, d_choices::ENTRY, cost_benefit::ENTRY];

/// Their names, in the same order: what `ftl.victim` may be.
pub static NAMES: [&str; VICTIMS.len()] = {
    let mut names = [""; VICTIMS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = VICTIMS[at].info.name;
        at += 1;
    }
    names
};

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static VictimEntry> {
    VICTIMS.iter().find(|entry| entry.info.name == name)
}

#[cfg(test)]
mod tests;
