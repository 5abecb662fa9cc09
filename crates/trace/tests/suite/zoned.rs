//! A model of a zoned device, for the loads that are made for one.

use nandscape_core::{IoRecord, TraceOp};
use std::collections::BTreeMap;

/// Zones as a device checks them: writes at the write pointer, resources, room.
pub struct Model {
    size: u64,
    capacity: u64,
    most_active: usize,
    next: BTreeMap<u64, u64>,
    pub resets: u64,
}

impl Model {
    pub fn new(size: u64, capacity: u64, most_active: usize) -> Self {
        Self { size, capacity, most_active, next: BTreeMap::new(), resets: 0 }
    }

    /// Whether all bytes of a request lie in front of the write pointer of its zone.
    pub fn is_written(&self, record: &IoRecord) -> bool {
        let zone = record.offset / self.size;
        let written = self.next.get(&zone).copied().unwrap_or(0);
        record.offset + record.len <= zone * self.size + written
    }

    /// What an operation does to its zone, or why a device refuses it.
    pub fn apply(&mut self, record: &IoRecord) -> Result<(), String> {
        let zone = record.offset / self.size;
        let (start, limit) = (zone * self.size, self.capacity);
        let next = self.next.entry(zone).or_insert(0);
        let is_at = |at: u64| if record.offset == start + at { Ok(()) } else { Err(format!("not at {at}")) };
        let write = |next: &mut u64| {
            *next += record.len;
            if *next > limit { Err("beyond the capacity".to_owned()) } else { Ok(()) }
        };
        match record.op {
            TraceOp::Read if record.offset - start + record.len <= limit => Ok(()),
            TraceOp::Write => is_at(*next).and_then(|()| write(next)),
            TraceOp::Append => is_at(0).and_then(|()| write(next)),
            TraceOp::Reset if record.len == 0 => {
                *next = 0;
                self.resets += 1;
                is_at(0)
            }
            TraceOp::Finish if record.len == 0 => {
                *next = limit;
                is_at(0)
            }
            TraceOp::Flush if record.len == 0 => Ok(()),
            _ => Err("no such operation".to_owned()),
        }?;
        let active = self.next.values().filter(|next| **next > 0 && **next < limit).count();
        if active > self.most_active { Err(format!("{active} active zones")) } else { Ok(()) }
    }
}
