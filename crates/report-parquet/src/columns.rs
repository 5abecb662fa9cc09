//! Columns of any rows.

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use nandscape_sim::cached::CachePoint;
use std::sync::Arc;

type PointColumn = (&'static str, fn(&CachePoint) -> u64);

/// Columns of a cache: how it stands, then what it did in the interval.
const POINT: [PointColumn; 13] = [
    ("cache_slots", |p| p.slots),
    ("cache_used", |p| p.used),
    ("cache_dirty", |p| p.dirty),
    ("cache_dirty_bytes", |p| p.dirty_bytes),
    ("cache_reads", |p| p.counts.reads),
    ("cache_read_hits", |p| p.counts.all_read_hits()),
    ("cache_writes", |p| p.counts.writes),
    ("cache_write_hits", |p| p.counts.all_write_hits()),
    ("cache_cleaned", |p| p.counts.cleaned),
    ("cache_fast_read_bytes", |p| p.fast.read_bytes),
    ("cache_fast_write_bytes", |p| p.fast.write_bytes),
    ("cache_disk_read_bytes", |p| p.disk.read_bytes),
    ("cache_disk_write_bytes", |p| p.disk.write_bytes),
];

pub trait OfCache {
    fn cache(&self) -> Option<CachePoint>;

    fn cache_before(&self) -> Option<CachePoint>;

    fn cache_grown(&self) -> Option<CachePoint> {
        self.cache().map(|now| now.since(&self.cache_before().unwrap_or_default()))
    }
}

pub struct Columns<'a, R> {
    rows: &'a [R],
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl<'a, R> Columns<'a, R> {
    pub const fn of(rows: &'a [R]) -> Self {
        Self { rows, fields: Vec::new(), arrays: Vec::new() }
    }

    pub fn batch(self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
    }

    fn push(&mut self, name: &str, kind: DataType, can_be_null: bool, array: ArrayRef) {
        self.fields.push(Field::new(name, kind, can_be_null));
        self.arrays.push(array);
    }

    pub fn text(&mut self, name: &str, of: impl Fn(&R) -> String) {
        let array = StringArray::from_iter_values(self.rows.iter().map(of));
        self.push(name, DataType::Utf8, false, Arc::new(array));
    }

    pub fn optional_text(&mut self, name: &str, of: impl Fn(&R) -> Option<String>) {
        let array: StringArray = self.rows.iter().map(of).collect();
        self.push(name, DataType::Utf8, true, Arc::new(array));
    }

    pub fn number(&mut self, name: &str, of: impl Fn(&R) -> u32) {
        let array = UInt32Array::from_iter_values(self.rows.iter().map(of));
        self.push(name, DataType::UInt32, false, Arc::new(array));
    }

    pub fn count(&mut self, name: &str, of: impl Fn(&R) -> u64) {
        let array = UInt64Array::from_iter_values(self.rows.iter().map(of));
        self.push(name, DataType::UInt64, false, Arc::new(array));
    }

    pub fn real(&mut self, name: &str, of: impl Fn(&R) -> Option<f64>) {
        let array: Float64Array = self.rows.iter().map(of).collect();
        self.push(name, DataType::Float64, true, Arc::new(array));
    }

    pub fn optional_count(&mut self, name: &str, of: impl Fn(&R) -> Option<u64>) {
        let array: UInt64Array = self.rows.iter().map(of).collect();
        self.push(name, DataType::UInt64, true, Arc::new(array));
    }
}

impl<R: OfCache> Columns<'_, R> {
    pub fn cache(&mut self) {
        for (name, of) in POINT {
            self.optional_count(name, |row| row.cache_grown().as_ref().map(of));
        }
        self.real("cache_read_hit_ratio", |row| row.cache_grown()?.counts.read_hit_ratio());
        self.real("cache_write_hit_ratio", |row| row.cache_grown()?.counts.write_hit_ratio());
        self.real("cache_read_hit_ratio_so_far", |row| row.cache()?.counts.read_hit_ratio());
        self.real("cache_write_hit_ratio_so_far", |row| row.cache()?.counts.write_hit_ratio());
    }
}
