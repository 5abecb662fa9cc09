//! Runs that several experiments share.

use crate::Result;
use nandscape_report::Run;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Each run by what distinguishes it.
#[derive(Debug)]
pub(super) struct Runs<P>(Mutex<BTreeMap<P, Arc<Run>>>);

impl<P> Default for Runs<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Ord + Copy + Send + Sync> Runs<P> {
    /// The runs of these points, in their order; those that are not done yet run in parallel.
    pub fn all(&self, points: &[P], run: impl Fn(&P) -> Result<Run> + Sync) -> Result<Vec<Arc<Run>>> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Vec<P> =
            points.iter().filter(|point| !kept().contains_key(point)).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        let done: Vec<(P, Run)> =
            missing.par_iter().map(|point| Ok((*point, run(point)?))).collect::<Result<_>>()?;
        kept().extend(done.into_iter().map(|(point, run)| (point, Arc::new(run))));
        Ok(points.iter().map(|point| Arc::clone(&kept()[point])).collect())
    }
}
