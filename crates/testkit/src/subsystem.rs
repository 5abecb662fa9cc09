//! Any subsystem against plain arrays of bytes, one for each namespace: commands that overlap, time that
//! passes in steps of any length, idle time, and whatever else the test does to it meanwhile, such as
//! changing the mode of a cache.
//!
//! Checked all along: every byte read, that a command completes exactly once, that completions are reported
//! after their submission and in the order of time, that two parts that are joined complete with the later,
//! that nothing is left to happen before the time that was reached, the counters of each namespace, and the
//! subsystem's own invariants.

use crate::commands::{Commands, byte, compare, zeroed};
use crate::shrink::{Outcome, run_or_shrink};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockCommand, CacheReport, Extent, Hint, Op, SimTime, Subsystem, Token};

/// What is done to a subsystem between commands: something of it, that a number chooses, at a time.
pub type Control<'a, S> = &'a dyn Fn(&mut S, u32, SimTime) -> Outcome;

/// What is tried.
pub struct Trial<'a, S: ?Sized> {
    /// Makes the subsystem, anew for each run. It keeps bytes.
    pub make: &'a dyn Fn() -> Box<S>,
    /// Offsets and lengths are multiples of this.
    pub unit_bytes: u64,
    /// What is trimmed reads as zeroes, every unit of it.
    pub is_zeroed: bool,
    /// What is done to it beside commands.
    pub control: Control<'a, S>,
}

/// One step. Offsets are shares of the capacity.
#[derive(Clone, Copy, Debug)]
enum Step {
    Command {
        namespace: u32,
        op: Op,
        place: u32,
        units: u64,
        salt: u32,
        is_joined: bool,
    },
    /// So many nanoseconds later.
    Later(u64),
    /// Time goes on, to the next event or by so many nanoseconds.
    Pass(Option<u64>),
    /// Nobody has anything to do for so long.
    Idle(u64),
    /// Something else, by number.
    Control(u32),
}

/// What a run saw: two runs of the same seed see the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// When each command was submitted and completed.
    pub times: Vec<(SimTime, SimTime)>,
    /// Commands whose completion was not known when they were submitted.
    pub unknown: u64,
    /// Commands that completed after one that was submitted later.
    pub overtaken: u64,
    /// What each namespace counted.
    pub host: Vec<HostCounts>,
    /// What the cache counted.
    pub cache: Option<CacheReport>,
}

fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = seeded(seed);
    let longest = [8, 24, 300][below(&mut rng, 3) as usize];
    let align = [1, 1, 8][below(&mut rng, 3) as usize];
    let gap = [20_000, 1_000_000, 30_000_000][below(&mut rng, 3) as usize];
    let hot = [1, 4, 32][below(&mut rng, 3) as usize];
    let writes = [20, 45, 70][below(&mut rng, 3) as usize];
    let step = |salt: usize| match below(&mut rng, 100) {
        0..60 => {
            let op = match below(&mut rng, 100) {
                0..3 => Op::Flush,
                3..8 => Op::Trim,
                8..10 => Op::WriteZeroes,
                at if at < 10 + writes => Op::Write,
                _ => Op::Read,
            };
            let anywhere = below(&mut rng, 1 << 32) as u32;
            let place = if below(&mut rng, 4) > 0 { anywhere / hot } else { anywhere };
            let longest = if below(&mut rng, 20) == 0 { 40 * longest } else { longest };
            let units = (1 + below(&mut rng, longest)).next_multiple_of(align);
            let namespace = below(&mut rng, 1 << 16) as u32;
            Step::Command {
                namespace,
                op,
                place,
                units,
                salt: salt as u32,
                is_joined: below(&mut rng, 8) == 0,
            }
        }
        60..80 => Step::Later(below(&mut rng, gap)),
        80..90 => Step::Pass(None),
        90..95 => Step::Pass(Some(below(&mut rng, 20 * gap))),
        95 => Step::Idle(below(&mut rng, 5_000_000_000)),
        _ => Step::Control(below(&mut rng, 1 << 32) as u32),
    };
    (0..count).map(step).collect()
}

/// Runs a subsystem through so many steps, twice. The failure of a shortened list of them is what comes back.
///
/// # Errors
/// What was wrong, and after which steps.
pub fn run<S: Subsystem + ?Sized>(trial: &Trial<'_, S>, seed: u64, count: usize) -> Outcome<Seen> {
    let all = steps(seed, count);
    let first = run_or_shrink(&all, 300, |steps| Run::new(trial)?.all(steps));
    let first = first.map_err(|error| format!("seed {seed}: {error}"))?;
    let second = Run::new(trial)?.all(&all)?;
    if first == second {
        return Ok(first);
    }
    let at = first.times.iter().zip(&second.times).position(|(a, b)| a != b);
    Err(format!("seed {seed}: two runs differ, first at command {at:?}"))
}

struct Run<'a, S: ?Sized> {
    subsystem: Box<S>,
    trial: &'a Trial<'a, S>,
    /// What every byte of each namespace must be.
    models: Vec<Vec<u8>>,
    counts: Vec<HostCounts>,
    commands: Commands,
}

impl<'a, S: Subsystem + ?Sized> Run<'a, S> {
    fn new(trial: &'a Trial<'a, S>) -> Outcome<Self> {
        let subsystem = (trial.make)();
        let models: Vec<Vec<u8>> =
            subsystem.namespaces().iter().map(|info| vec![0; info.capacity_bytes as usize]).collect();
        if models.is_empty() {
            return Err("there is no namespace".to_owned());
        }
        let counts = vec![HostCounts::default(); models.len()];
        // Making it may have taken time.
        let commands = Commands::from(subsystem.idle_from());
        Ok(Self { subsystem, trial, models, counts, commands })
    }

    fn all(mut self, steps: &[Step]) -> Outcome<Seen> {
        for (number, step) in steps.iter().enumerate() {
            self.step(*step).map_err(|error| format!("step {number} ({step:?}): {error}"))?;
            if number % 32 == 31 {
                self.subsystem.check_invariants();
            }
        }
        self.commands.drain(&mut self.subsystem)?;
        self.check_counts()?;
        let (cache, host) = (self.subsystem.inspect().cache(), self.counts.clone());
        self.check_all()?;
        let token = self.subsystem.shutdown(self.commands.now).map_err(|error| error.to_string())?;
        self.submitted(token);
        self.commands.drain(&mut self.subsystem)?;
        self.subsystem.check_invariants();
        let (times, overtaken) = self.commands.finished();
        Ok(Seen { times, unknown: self.commands.unknown, overtaken, host, cache })
    }

    fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Command { namespace, op, place, units, salt, is_joined } => {
                let namespace = namespace as usize % self.models.len();
                let unit = self.trial.unit_bytes;
                let all = self.models[namespace].len() as u64 / unit;
                let first = ((u128::from(place) * u128::from(all)) >> 32) as u64;
                let units = units.min(all - first);
                let extent = Extent::new(first * unit, units * unit);
                let token = match op {
                    Op::Flush => self.command(namespace, op, Extent::new(0, 0), salt)?,
                    // In two parts, answered together.
                    _ if is_joined && units > 1 => {
                        let (half, rest) = (units / 2 * unit, (units - units / 2) * unit);
                        let a = self.command(namespace, op, Extent::new(extent.offset, half), salt)?;
                        let b = self.command(namespace, op, Extent::new(extent.offset + half, rest), salt)?;
                        self.joined(a, b)?
                    }
                    _ => self.command(namespace, op, extent, salt)?,
                };
                self.submitted(token);
                Ok(())
            }
            Step::Later(by) => {
                self.commands.now += by;
                Ok(())
            }
            Step::Pass(by) => {
                let until = match by {
                    Some(by) => self.commands.now + by,
                    None => self.subsystem.next_event().unwrap_or(self.commands.now).max(self.commands.now),
                };
                self.commands.advance(&mut self.subsystem, until)
            }
            Step::Idle(by) => {
                self.commands.drain(&mut self.subsystem)?;
                let until = self.commands.now + by;
                self.subsystem.idle(self.commands.now, until).map_err(|error| error.to_string())?;
                self.commands.advance(&mut self.subsystem, until)
            }
            Step::Control(what) => (self.trial.control)(&mut self.subsystem, what, self.commands.now),
        }
    }

    fn command(&mut self, namespace: usize, op: Op, extent: Extent, salt: u32) -> Outcome<Token> {
        let range = extent.offset as usize..extent.end() as usize;
        match op {
            Op::Read => {
                let mut data = vec![0xA5; range.len()];
                let token = self.submit(namespace, op, extent, Payload::Read(&mut data))?;
                self.compare(namespace, extent, &data)?;
                Ok(token)
            }
            Op::Write => {
                let data: Vec<u8> = (extent.offset..extent.end()).map(|at| byte(salt, at)).collect();
                let token = self.submit(namespace, op, extent, Payload::Write(&data))?;
                self.models[namespace][range].copy_from_slice(&data);
                Ok(token)
            }
            Op::Trim | Op::WriteZeroes | Op::Flush => {
                let token = self.submit(namespace, op, extent, Payload::None)?;
                if op == Op::WriteZeroes || self.trial.is_zeroed {
                    self.models[namespace][range].fill(0);
                } else if op == Op::Trim {
                    self.settle(namespace, extent)?;
                }
                Ok(token)
            }
        }
    }

    fn submit(&mut self, namespace: usize, op: Op, extent: Extent, payload: Payload<'_>) -> Outcome<Token> {
        let command = BlockCommand::new(op, extent, Hint::default());
        self.counts[namespace].count(command, 512);
        let answer = self.subsystem.submit(namespace as u32, command.into(), payload, self.commands.now);
        answer.map(|answer| answer.done).map_err(|error| error.to_string())
    }

    fn joined(&mut self, a: Token, b: Token) -> Outcome<Token> {
        let parts = [self.commands.known(&self.subsystem, a), self.commands.known(&self.subsystem, b)];
        let both = self.subsystem.join(a, b);
        match (parts, self.commands.known(&self.subsystem, both)) {
            ([Some(a), Some(b)], Some(both)) if both != a.max(b) => {
                Err(format!("joined are {a} and {b}, which gives {both}"))
            }
            ([None, _] | [_, None], Some(both)) => {
                Err(format!("of two parts one is unknown, and both are done at {both}"))
            }
            _ => Ok(both),
        }
    }

    fn submitted(&mut self, token: Token) {
        // What has completed already, as a flush after which nothing was written, is answered at once.
        let done = self.commands.known(&self.subsystem, token).map(|done| done.max(self.commands.now));
        self.commands.start(&mut self.subsystem, token, done);
    }

    /// What was trimmed is zeroes, or what it was before where it is not a whole page.
    fn settle(&mut self, namespace: usize, extent: Extent) -> Outcome {
        let mut data = vec![0xA5; extent.len as usize];
        let token = self.submit(namespace, Op::Read, extent, Payload::Read(&mut data))?;
        self.submitted(token);
        let unit = self.trial.unit_bytes as usize;
        zeroed(extent, &data, &mut self.models[namespace], unit)
    }

    fn compare(&self, namespace: usize, extent: Extent, data: &[u8]) -> Outcome {
        let compared = compare(extent.offset, data, &self.models[namespace]);
        compared.map_err(|error| format!("namespace {namespace}: {error}"))
    }

    fn check_counts(&self) -> Outcome {
        // Pages are the device's own.
        let same = |counts: HostCounts| HostCounts { read_pages: 0, write_pages: 0, ..counts };
        for (namespace, want) in self.counts.iter().enumerate() {
            let (got, want) = (same(self.subsystem.inspect().host_counts(namespace as u32)), same(*want));
            if got != want {
                return Err(format!("namespace {namespace} counted {got:?}, was asked for {want:?}"));
            }
        }
        Ok(())
    }

    fn check_all(&mut self) -> Outcome {
        for namespace in 0..self.models.len() {
            let extent = Extent::new(0, self.models[namespace].len() as u64);
            let mut data = vec![0xA5; extent.len as usize];
            let token = self.submit(namespace, Op::Read, extent, Payload::Read(&mut data))?;
            self.submitted(token);
            self.compare(namespace, extent, &data)?;
        }
        self.commands.drain(&mut self.subsystem)
    }
}
