//! Steps that have not ended, and which of them wait for which. Nothing is allocated once as many were under
//! way as ever are.

use super::moment::{GENERATIONS, Notice, StepId};
use nandscape_core::{Applied, BlockCommand, SimTime};

const NONE: u32 = u32::MAX;

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free,
    /// Waits for others, or for its time.
    Waiting,
    /// Was started; nobody knows yet when it ends.
    Running,
    /// Was started and ends at its time.
    Ending,
}

/// A command of which a store knows, or a point at which several of them have ended.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    generation: u32,
    pub state: State,
    /// A step that it waited for could not be started, so this one never is.
    pub has_failed: bool,
    /// Index of the store; `None` where nothing is to be done.
    pub side: Option<u16>,
    /// Steps that it waits for.
    pub waits: u32,
    /// Not started earlier; then, when it ends.
    pub at: SimTime,
    pub command: BlockCommand,
    pub applied: Applied,
    /// Asked for by the host, with this tag.
    pub tag: Option<u64>,
    /// The slot that this step fills with what was read from a disk.
    pub fills: Option<u32>,
    /// What the engine is told when it ends.
    pub notice: Option<Notice>,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Follower {
    step: u32,
    next: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Slab {
    steps: Vec<Step>,
    free: Vec<u32>,
    followers: Vec<Follower>,
    free_followers: Vec<u32>,
}

impl Slab {
    /// Puts in a step that waits for nothing yet.
    pub fn put(&mut self, side: Option<u16>, command: BlockCommand, applied: Applied, at: SimTime) -> StepId {
        let step = Step {
            generation: 0,
            state: State::Waiting,
            has_failed: false,
            side,
            waits: 0,
            at,
            command,
            applied,
            tag: None,
            fills: None,
            notice: None,
            first: NONE,
            last: NONE,
        };
        if let Some(index) = self.free.pop() {
            let generation = self.steps[index as usize].generation;
            self.steps[index as usize] = Step { generation, ..step };
            return StepId { index, generation };
        }
        self.steps.push(step);
        StepId { index: self.steps.len() as u32 - 1, generation: 0 }
    }

    /// Puts in a point at which others have ended.
    pub fn put_join(&mut self, at: SimTime) -> StepId {
        let nothing = BlockCommand::FLUSH;
        self.put(None, nothing, Applied::default(), at)
    }

    /// The step, if it has not ended.
    pub fn find(&self, id: StepId) -> Option<&Step> {
        let step = self.steps.get(id.index as usize)?;
        (step.generation == id.generation && step.state != State::Free).then_some(step)
    }

    pub fn find_mut(&mut self, id: StepId) -> Option<&mut Step> {
        let step = self.steps.get_mut(id.index as usize)?;
        (step.generation == id.generation && step.state != State::Free).then_some(step)
    }

    pub fn get_mut(&mut self, index: u32) -> &mut Step {
        &mut self.steps[index as usize]
    }

    pub fn get(&self, index: u32) -> &Step {
        &self.steps[index as usize]
    }

    pub const fn index(id: StepId) -> u32 {
        id.index
    }

    /// `step` waits for `before`, which has not ended.
    pub fn follow(&mut self, before: StepId, step: StepId) {
        let follower = Follower { step: step.index, next: NONE };
        let place = if let Some(place) = self.free_followers.pop() {
            self.followers[place as usize] = follower;
            place
        } else {
            self.followers.push(follower);
            self.followers.len() as u32 - 1
        };
        let before = &mut self.steps[before.index as usize];
        let last = std::mem::replace(&mut before.last, place);
        if last == NONE {
            before.first = place;
        } else {
            self.followers[last as usize].next = place;
        }
        self.steps[step.index as usize].waits += 1;
    }

    /// The first step that waits for this one, which from now on does not.
    pub fn next_follower(&mut self, index: u32) -> Option<u32> {
        let step = &mut self.steps[index as usize];
        let place = step.first;
        if place == NONE {
            return None;
        }
        let follower = self.followers[place as usize];
        step.first = follower.next;
        self.free_followers.push(place);
        Some(follower.step)
    }

    /// The step has ended and nobody waits for it.
    pub fn end(&mut self, index: u32) {
        let step = &mut self.steps[index as usize];
        debug_assert_eq!(step.first, NONE, "somebody waits for step {index}");
        step.state = State::Free;
        step.generation = (step.generation + 1) % GENERATIONS;
        self.free.push(index);
    }

    pub fn memory_bytes(&self) -> u64 {
        let steps = self.steps.capacity() * size_of::<Step>() + self.free.capacity() * size_of::<u32>();
        let followers = self.followers.capacity() * size_of::<Follower>();
        (steps + followers + self.free_followers.capacity() * size_of::<u32>()) as u64
    }

    /// Steps that have not ended.
    pub const fn len(&self) -> usize {
        self.steps.len() - self.free.len()
    }
}
