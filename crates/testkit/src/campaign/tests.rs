//! The campaign itself, with a subject that keeps its promises and with the same one broken on purpose.

use super::*;

const UNITS: usize = 64;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sabotage {
    None,
    /// A flush syncs nothing.
    NoSync,
    /// A write that failed is answered.
    ErrorKept,
    /// A read that failed is answered with zeroes.
    ZeroesForErrors,
    /// A start does not write what was left behind.
    NoReplay,
    /// After a write has failed, what is written is kept in memory alone.
    GivenUp,
}

/// Units on one store; a second one takes writes when the first does not, and a start brings them back.
struct Pair {
    faults: Faults,
    stores: [Medium; 2],
    /// Units that the second store has, in memory while it runs.
    aside: Vec<bool>,
    sabotage: Sabotage,
}

impl Pair {
    fn new(faults: &Faults, sabotage: Sabotage) -> Self {
        let mut stores = [Medium::new((UNITS * 512) as u64), Medium::new((UNITS * 1024) as u64)];
        for unit in 0..UNITS {
            let mut bytes = [0; 512];
            fill(0, unit, 1, &mut bytes);
            stores[0].poke((unit * 512) as u64, &bytes);
        }
        stores[0].settle();
        stores[1].allocate();
        Self { faults: faults.clone(), stores, aside: vec![false; UNITS], sabotage }
    }

    /// The flag before the unit on the second store is written after the unit: a write may end half done.
    fn put_aside(&mut self, unit: usize, bytes: &[u8]) -> Result<(), String> {
        let at = (unit * 1024) as u64;
        if self.sabotage == Sabotage::GivenUp {
            self.aside[unit] = true;
            self.stores[1].poke(at + 512, bytes);
            return Ok(());
        }
        let Self { stores: [_, second], faults, .. } = self;
        let data = second.write(faults, 1, at + 512, bytes);
        let done = data.and_then(|()| second.write(faults, 1, at, &[1; 512]));
        self.aside[unit] |= done.is_ok();
        done.map_err(|refusal| format!("{refusal:?}"))
    }

    fn sync(&mut self) -> Result<(), String> {
        if self.sabotage == Sabotage::NoSync {
            return Ok(());
        }
        let Self { stores: [first, second], faults, .. } = self;
        second.sync(faults, 1).and_then(|()| first.sync(faults, 0)).map_err(|refusal| format!("{refusal:?}"))
    }
}

impl Subject for Pair {
    fn volumes(&self) -> Vec<usize> {
        vec![UNITS]
    }

    fn start(&mut self) -> Result<(), String> {
        for unit in 0..UNITS {
            let mut head = [0; 512];
            let read = self.stores[1].read(&self.faults, 1, (unit * 1024) as u64, &mut head);
            read.map_err(|refusal| format!("{refusal:?}"))?;
            self.aside[unit] = head[0] == 1 && self.sabotage != Sabotage::NoReplay;
        }
        Ok(())
    }

    fn read(&mut self, _: usize, units: Range<usize>, bytes: &mut [u8]) -> Result<(), String> {
        for (unit, bytes) in units.zip(bytes.chunks_mut(512)) {
            let (store, offset) = if self.aside[unit] { (1, unit * 1024 + 512) } else { (0, unit * 512) };
            let done = self.stores[store].read(&self.faults, store, offset as u64, bytes);
            match done {
                Err(_) if self.sabotage == Sabotage::ZeroesForErrors => bytes.fill(0),
                done => done.map_err(|refusal| format!("{refusal:?}"))?,
            }
        }
        Ok(())
    }

    fn write(&mut self, _: usize, units: Range<usize>, bytes: &[u8], durable: bool) -> Result<(), String> {
        for (unit, bytes) in units.zip(bytes.chunks(512)) {
            if self.aside[unit] {
                self.put_aside(unit, bytes)?;
                continue;
            }
            let done = self.stores[0].write(&self.faults, 0, (unit * 512) as u64, bytes);
            if done.is_err() && self.sabotage != Sabotage::ErrorKept {
                self.put_aside(unit, bytes)?;
            }
        }
        if durable { self.sync() } else { Ok(()) }
    }

    fn trim(&mut self, volume: usize, units: Range<usize>) -> Result<(), String> {
        let zeroes = vec![0; units.len() * 512];
        self.write(volume, units, &zeroes, false)
    }

    fn flush(&mut self, _: usize) -> Result<(), String> {
        self.sync()
    }

    fn idle(&mut self) {}

    fn end(&mut self) -> Result<(), String> {
        self.sync()
    }

    fn kill(&mut self, is_power_lost: bool) {
        if is_power_lost {
            self.stores.iter_mut().for_each(Medium::lose_power);
        }
    }

    fn allows(&self, faults: &[Fault]) -> Allowed {
        Allowed { in_service: !faults.is_empty(), ..Allowed::default() }
    }
}

fn case(sabotage: Sabotage) -> Case<'static> {
    let make = move |faults: &Faults| Box::new(Pair::new(faults, sabotage)) as Box<dyn Subject>;
    Case { name: format!("{sabotage:?}"), make: Box::new(make), steps: 25 }
}

#[test]
fn a_subject_that_keeps_its_promises_passes_with_every_fault() {
    let tally =
        campaign("pair", &[case(Sabotage::None)], (600, 300), "cargo test --package nandscape-testkit");
    assert!(tally.singles == 600 && tally.pairs == 300, "{tally}");
    assert!(tally.failed > 500 && tally.errors > 500 && tally.lost == 0 && tally.refused == 0, "{tally}");
}

#[test]
fn every_sabotage_is_seen() {
    use Sabotage::{ErrorKept, GivenUp, NoReplay, NoSync, ZeroesForErrors};
    for sabotage in [NoSync, ErrorKept, ZeroesForErrors, NoReplay, GivenUp] {
        assert!(finds(&case(sabotage), 1, (2000, 200)).is_some(), "{sabotage:?} passed");
    }
}

#[test]
fn a_plan_is_read_as_it_is_written() {
    for text in ["0@57:io-once,kill,mended", "1@0:gone,2@8:no-space,power-loss,not-mended", "clean,mended"] {
        let plan: Plan = text.parse().unwrap();
        assert_eq!(plan.to_string(), text);
    }
    assert!("0@57:tired,kill".parse::<Plan>().unwrap_err().contains("expected STORE@OPERATION:KIND"));
}

#[test]
fn a_sync_that_failed_is_not_made_good_by_the_next_one() {
    let fault = Fault { store: 0, at: 1, kind: Kind::IoOnce };
    let faults = Faults::new(&[fault]);
    let mut medium = Medium::new(8192);
    medium.write(&faults, 0, 0, &[1; 512]).unwrap();
    assert_eq!(medium.sync(&faults, 0), Err(Refusal::Io));
    medium.sync(&faults, 0).unwrap();
    let mut bytes = [9; 512];
    medium.read(&faults, 0, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 512]);
    medium.lose_power();
    medium.peek(0, &mut bytes);
    assert_eq!(bytes, [0; 512]);
    medium.write(&faults, 0, 0, &[2; 512]).unwrap();
    medium.sync(&faults, 0).unwrap();
    medium.lose_power();
    medium.peek(0, &mut bytes);
    assert_eq!(bytes, [2; 512]);
}
