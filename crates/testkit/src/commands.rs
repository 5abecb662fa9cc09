//! What suites of commands share: when commands complete, and which bytes are right.

use crate::shrink::Outcome;
use nandscape_core::{Clocked, Completion, Extent, SimTime, Token};

/// The commands of a run, and its time.
#[derive(Default)]
pub struct Commands {
    pub now: SimTime,
    /// When the command that was reported last completed.
    reported: SimTime,
    /// Start and completion of each command.
    pub times: Vec<(SimTime, Option<SimTime>)>,
    out: Vec<Completion>,
    /// Commands whose completion was not known at their start.
    pub unknown: u64,
}

impl Commands {
    /// None yet, at this time.
    pub fn from(now: SimTime) -> Self {
        Self { now, ..Self::default() }
    }

    /// When a token completes, as far as it is known.
    pub fn known(&self, clock: &(impl Clocked + ?Sized), token: Token) -> Option<SimTime> {
        if token == Token::NONE { Some(self.now) } else { clock.completion(token) }
    }

    /// A command was started, which completes with this token, at this time if it is known.
    pub fn start(&mut self, clock: &mut (impl Clocked + ?Sized), token: Token, done: Option<SimTime>) {
        if done.is_none() {
            self.unknown += 1;
            clock.watch(token, self.times.len() as u64);
        }
        self.times.push((self.now, done));
    }

    /// Lets time pass, and checks what completes.
    pub fn advance(&mut self, clock: &mut (impl Clocked + ?Sized), until: SimTime) -> Outcome {
        self.out.clear();
        clock.advance(until, &mut self.out);
        self.now = self.now.max(until);
        for Completion { tag, at } in self.out.drain(..) {
            let Some((start, done)) = self.times.get_mut(tag as usize) else {
                return Err(format!("tag {tag} completes and was never asked for"));
            };
            if let Some(done) = done {
                return Err(format!("command {tag} completes at {at}, and did at {done}"));
            }
            let before = self.reported;
            if at < *start || at > until || at < before {
                return Err(format!(
                    "command {tag} of {start} completes at {at}, after {before} and until {until}"
                ));
            }
            (*done, self.reported) = (Some(at), at);
        }
        match clock.next_event() {
            Some(next) if next <= until => {
                Err(format!("at {until} there is still something to do at {next}"))
            }
            _ => Ok(()),
        }
    }

    /// Lets time pass until every command has completed.
    pub fn drain(&mut self, clock: &mut (impl Clocked + ?Sized)) -> Outcome {
        while let Some(waiting) = self.times.iter().position(|(_, done)| done.is_none()) {
            let Some(next) = clock.next_event() else {
                return Err(format!("nothing is left to happen, and command {waiting} is not done"));
            };
            self.advance(clock, next.max(self.now))?;
        }
        let last = self.times.iter().filter_map(|(_, done)| *done).max().unwrap_or_default();
        self.now = self.now.max(last);
        Ok(())
    }

    /// Start and completion of each command, all of which have completed, and how many completed after one
    /// that was started later.
    pub fn finished(&self) -> (Vec<(SimTime, SimTime)>, u64) {
        let times: Vec<(SimTime, SimTime)> =
            self.times.iter().map(|(start, done)| (*start, done.expect("drained"))).collect();
        let (mut first, mut overtaken) = (SimTime::MAX, 0);
        for (_, done) in times.iter().rev() {
            overtaken += u64::from(*done > first);
            first = first.min(*done);
        }
        (times, overtaken)
    }
}

/// The byte that a step writes at an offset: differs between neighbours, sectors, pages and steps.
pub fn byte(salt: u32, offset: u64) -> u8 {
    let mixed = (offset ^ (u64::from(salt) << 40)).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8
}

/// Compares what was read from `offset` on with the model of all bytes.
pub fn compare(offset: u64, data: &[u8], model: &[u8]) -> Outcome {
    let want = &model[offset as usize..][..data.len()];
    let Some(at) = data.iter().zip(want).position(|(got, want)| got != want) else { return Ok(()) };
    let place = offset + at as u64;
    Err(format!("byte {place} reads {:#04x}, was written {:#04x}", data[at], want[at]))
}

/// Takes over into the model which units of a trimmed extent read as zeroes; the others are what they were.
pub fn zeroed(extent: Extent, data: &[u8], model: &mut [u8], unit: usize) -> Outcome {
    let model = &mut model[extent.offset as usize..extent.end() as usize];
    for (new, old) in data.chunks(unit).zip(model.chunks_mut(unit)) {
        if new.iter().all(|byte| *byte == 0) {
            old.fill(0);
        } else if new != old {
            return Err(format!("{extent} reads as neither zeroes nor what it was before the trim"));
        }
    }
    Ok(())
}
