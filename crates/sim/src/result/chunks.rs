//! Chunks in the result document.

use nandscape_core::Inspect;
use nandscape_core::vector::VectorCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Chunks of vector access at the end of a run, and what happened to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChunksResult {
    /// Number of chunks.
    pub chunks: u32,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes of the smallest write.
    pub write_bytes: u64,
    /// What happened to them.
    #[serde(flatten)]
    pub counts: VectorCounts,
    /// Chunks in each state that occurs.
    pub states: BTreeMap<String, u32>,
    /// Largest wear index, from 0 (new) to 255 (at the endurance).
    pub wear_max: u8,
}

impl ChunksResult {
    /// Of a namespace that has vector access.
    pub(crate) fn of(inside: &Inspect<'_>, number: u32) -> Option<Self> {
        let vectors = inside.vectors?;
        let geometry = vectors.geometry(number);
        let mut states = BTreeMap::new();
        let mut wear_max = 0;
        for chunk in (0..geometry.all_chunks()).map(|chunk| vectors.chunk(number, chunk)) {
            *states.entry(chunk.state.name().to_owned()).or_default() += 1;
            wear_max = wear_max.max(chunk.wear);
        }
        Some(Self {
            chunks: geometry.all_chunks(),
            chunk_bytes: geometry.chunk_bytes(),
            write_bytes: u64::from(geometry.write_min) * u64::from(geometry.sector_bytes),
            counts: vectors.vector_counts(number),
            states,
            wear_max,
        })
    }
}
