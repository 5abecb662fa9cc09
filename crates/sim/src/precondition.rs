//! Writes that put a device into a known state before the counted part (`--precondition`).

use nandscape_core::rng::{below, seeded};
use nandscape_core::zone::ZoneShape;
use nandscape_core::{Extent, IoRecord, NamespaceInfo, SimTime, StateResult, Subsystem, TraceOp, units};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A preconditioning that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "precondition '{text}': '{part}': expected fill, fill:SHARE or uniform:Nx, joined by '+' (such as fill+uniform:2x)"
)]
pub struct PreconditionError {
    text: String,
    part: String,
}

/// One step of a preconditioning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Writes the first `share` of the logical capacity once, in order.
    Fill {
        /// Of the logical capacity, 0 to 1.
        share: f64,
    },
    /// Random whole-page writes, `times` the logical capacity in all, over the part that was filled (all of
    /// it if nothing was).
    Uniform {
        /// Multiples of the logical capacity.
        times: f64,
    },
}

/// Steps that run before the counted part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Precondition {
    /// In order.
    pub steps: Vec<Step>,
}

impl Precondition {
    /// Reads `fill`, `fill:80%`, `uniform:2x`, `fill+uniform:2x` or `none`.
    pub fn parse(text: &str) -> Result<Self, PreconditionError> {
        if text.is_empty() || text == "none" {
            return Ok(Self::default());
        }
        let steps = text
            .split('+')
            .map(|part| {
                let step = match part.trim().split_once(':') {
                    None if part.trim() == "fill" => Some(Step::Fill { share: 1.0 }),
                    Some(("fill", share)) => units::parse_share(share).ok().map(|share| Step::Fill { share }),
                    Some(("uniform", times)) => times
                        .strip_suffix('x')
                        .unwrap_or(times)
                        .parse::<f64>()
                        .ok()
                        .filter(|times| (0.0..=1e6).contains(times))
                        .map(|times| Step::Uniform { times }),
                    _ => None,
                };
                step.ok_or_else(|| PreconditionError { text: text.to_owned(), part: part.to_owned() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// The requests of all steps for a namespace, each within the capacity of a zone where it has zones.
    pub fn records(&self, info: &NamespaceInfo, seed: u64) -> impl Iterator<Item = IoRecord> + use<> {
        let zones = info.zones;
        self.writes(info.capacity_bytes, info.page_bytes, seed).flat_map(move |record| {
            let parts = writable(Extent::new(record.offset, record.len), zones);
            parts.map(move |part| IoRecord { offset: part.offset, len: part.len, ..record })
        })
    }

    /// Number of those requests; of zones about.
    pub fn requests(&self, info: &NamespaceInfo) -> u64 {
        let page = u64::from(info.page_bytes);
        let pages = (info.capacity_bytes / page) as f64;
        let chunk = (FILL_BYTES / page).max(1);
        let of = |step: &Step| match step {
            Step::Fill { share } => ((share * pages).round() as u64).div_ceil(chunk),
            Step::Uniform { times } => (times * pages).round() as u64,
        };
        self.steps.iter().map(of).sum()
    }

    fn writes(
        &self,
        capacity_bytes: u64,
        page_bytes: u32,
        seed: u64,
    ) -> impl Iterator<Item = IoRecord> + use<> {
        let page = u64::from(page_bytes);
        let pages = move |times: f64| (times * (capacity_bytes / page) as f64).round() as u64;
        // Bytes of the part that was filled.
        let mut span = capacity_bytes;
        let rng = Rc::new(RefCell::new(seeded(seed ^ 0x7072_6563_6f6e_6431)));
        self.steps.clone().into_iter().flat_map(move |step| {
            let (filled, random) = match step {
                Step::Fill { share } => {
                    span = pages(share) * page;
                    (span, 0)
                }
                Step::Uniform { times } => (0, pages(times)),
            };
            // A fill of nothing leaves nothing to overwrite.
            if span == 0 {
                span = capacity_bytes;
            }
            let chunk = (FILL_BYTES / page).max(1) * page;
            let fill = (0..filled).step_by(chunk as usize).map(move |at| (at, chunk.min(filled - at)));
            let (rng, places) = (Rc::clone(&rng), (span / page).max(1));
            let random = (0..random).map(move |_| (below(&mut *rng.borrow_mut(), places) * page, page));
            let at = SimTime::ZERO;
            fill.chain(random).map(move |(offset, len)| IoRecord {
                at,
                offset,
                len,
                volume: 0,
                hint: 0,
                op: TraceOp::Write,
            })
        })
    }
}

/// What becomes of the state right after the preconditioning, when counters and time begin at 0.
#[derive(Clone, Copy, Default)]
pub enum Snapshot<'a> {
    /// Nothing: the run goes on.
    #[default]
    Unused,
    /// It is saved, and the run goes on.
    Save(&'a Archiver<'a>),
    /// It is loaded instead of being brought about.
    Load(&'a Archiver<'a>),
}

/// Saves or loads the state of a subsystem. The text says what else than the [`Precondition`] the state
/// depends on; runs with different texts cannot use each other's state.
pub type Archiver<'a> = dyn Fn(&mut dyn Subsystem, &str) -> StateResult + 'a;

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unused => "Unused",
            Self::Save(_) => "Save",
            Self::Load(_) => "Load",
        })
    }
}

/// The parts of an extent that can be written: what lies between capacity and size of zones cannot, and no
/// write crosses the end of a zone.
fn writable(extent: Extent, zones: Option<ZoneShape>) -> impl Iterator<Item = Extent> {
    let end = extent.offset + extent.len;
    let size = zones.map_or(u64::MAX, |zones| zones.size);
    let capacity = zones.map_or(u64::MAX, |zones| zones.capacity);
    (extent.offset / size..=(end - 1) / size).filter_map(move |zone| {
        let start = zone * size;
        let (from, to) = (extent.offset.max(start), end.min(start.saturating_add(capacity)));
        (from < to).then(|| Extent::new(from, to - from))
    })
}

/// A fill writes in chunks of about this size.
const FILL_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_wrong_ones_named() {
        assert_eq!(
            Precondition::parse("fill+uniform:2x").unwrap().steps,
            [Step::Fill { share: 1.0 }, Step::Uniform { times: 2.0 }]
        );
        assert!(Precondition::parse("none").unwrap().steps.is_empty());
        for wrong in ["fil", "fill:120%", "uniform", "uniform:-1x", "fill+", "uniform:nan"] {
            let err = Precondition::parse(wrong).unwrap_err().to_string();
            assert!(err.contains("expected fill"), "{wrong}: {err}");
        }
    }

    fn info() -> NamespaceInfo {
        NamespaceInfo {
            name: "ns1".to_owned(),
            capacity_bytes: 8 << 20,
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: false,
        }
    }

    #[test]
    fn a_fill_covers_the_share_once_and_uniform_stays_inside() {
        let steps = Precondition::parse("fill:50%+uniform:1x").unwrap();
        let records: Vec<_> = steps.writes(8 << 20, 4096, 1).collect();
        let fills: Vec<_> = records.iter().filter(|r| r.len > 4096).collect();
        assert_eq!(fills.iter().map(|r| r.len).sum::<u64>(), 4 << 20);
        assert_eq!(steps.requests(&info()), records.len() as u64);
        let randoms: Vec<_> = records.iter().filter(|r| r.len == 4096).collect();
        assert_eq!(randoms.len(), 2048);
        assert!(randoms.iter().all(|r| r.offset + r.len <= 4 << 20));
    }
}
