//! What is to go wrong.

use nandscape_core::{Geometry, Ppn, UnitId};

/// What is to go wrong with a medium. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Share of programs that fail, from 0 to 1.
    pub program: f64,
    /// Share of erases that fail.
    pub erase: f64,
    /// Share of programmed pages whose data cannot be read afterwards.
    pub unreadable: f64,
    /// Bits flipped, somewhere on the medium, for each program and erase; at most 1.
    pub rot: f64,
    /// When the power is cut.
    pub power_cut: Option<PowerCut>,
    /// Called with the operation's number when the power is cut, once what it leaves is on the medium. A
    /// server ends its process here.
    pub on_power_cut: Option<fn(u64)>,
    /// Faults one by one, in any order.
    pub script: Vec<Scripted>,
}

/// A loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// Number of the first program or erase that is not done.
    pub at: u64,
    /// It is half done.
    pub is_torn: bool,
}

/// A fault at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scripted {
    /// Number of the program or erase before which it happens.
    pub at: u64,
    /// What happens.
    pub fault: Fault,
}

/// A single fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next program fails.
    Program,
    /// The next erase fails.
    Erase,
    /// A page, if it is programmed, cannot be read until its block is erased.
    Unreadable {
        /// Which page.
        page: Ppn,
    },
    /// A bit of a page's data, if it is programmed, is flipped.
    Rot {
        /// Which page.
        page: Ppn,
        /// Which bit of the data.
        bit: u64,
    },
    /// A die does nothing any more.
    Stuck {
        /// Which die, `lun * channels + channel`.
        die: UnitId,
    },
    /// A die takes longer.
    Slow {
        /// Which die.
        die: UnitId,
        /// So many times as long; 1 is as ever.
        factor: u32,
    },
}

/// A plan names something that the device does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {number} at operation {at}: expected less than {limit}")]
pub struct FaultPlanError {
    /// die, page or bit.
    pub what: &'static str,
    /// The number.
    pub number: u64,
    /// When it was to happen.
    pub at: u64,
    /// How many there are.
    pub limit: u64,
}

impl FaultPlan {
    /// Whether nothing is to go wrong.
    pub fn is_empty(&self) -> bool {
        let rates = [self.program, self.erase, self.unreadable, self.rot];
        rates.iter().all(|rate| *rate == 0.0) && self.power_cut.is_none() && self.script.is_empty()
    }

    /// Whether the device has what the script names; an OOB is stored in so many bytes.
    pub fn check(&self, geometry: &Geometry, oob_bytes: usize) -> Result<(), FaultPlanError> {
        let (pages, units) = (u64::from(geometry.pages()), u64::from(geometry.units()));
        // Behind the data the OOB.
        let bits = 8 * (u64::from(geometry.page_bytes) + oob_bytes as u64);
        for Scripted { at, fault } in &self.script {
            let below = |what, number, limit| {
                if number < limit { Ok(()) } else { Err(FaultPlanError { what, number, at: *at, limit }) }
            };
            match fault {
                Fault::Program | Fault::Erase => {}
                Fault::Unreadable { page } => below("page", u64::from(page.0), pages)?,
                Fault::Rot { page, bit } => {
                    below("page", u64::from(page.0), pages)?;
                    below("bit", *bit, bits)?;
                }
                Fault::Stuck { die } | Fault::Slow { die, .. } => below("die", u64::from(die.0), units)?,
            }
        }
        Ok(())
    }
}
