//! Columns of any rows.

use nandscape_sim::cached::CachePoint;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
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
    columns: Vec<Column>,
}

struct Column {
    name: String,
    /// For each row whether it has a value (1) or none (0); `None`: all have one.
    levels: Option<Vec<i16>>,
    values: Values,
}

/// The values that there are. Of counts the bits: Parquet has no physical types without a sign.
enum Values {
    Text(Vec<ByteArray>),
    Number(Vec<i32>),
    Count(Vec<i64>),
    Real(Vec<f64>),
}

impl<'a, R> Columns<'a, R> {
    pub const fn of(rows: &'a [R]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    pub fn text(&mut self, name: &str, of: impl Fn(&R) -> String) {
        self.full(name, |row| of(row).into_bytes().into(), Values::Text);
    }

    pub fn optional_text(&mut self, name: &str, of: impl Fn(&R) -> Option<String>) {
        self.optional(name, |row| Some(of(row)?.into_bytes().into()), Values::Text);
    }

    pub fn number(&mut self, name: &str, of: impl Fn(&R) -> u32) {
        self.full(name, |row| of(row).cast_signed(), Values::Number);
    }

    pub fn count(&mut self, name: &str, of: impl Fn(&R) -> u64) {
        self.full(name, |row| of(row).cast_signed(), Values::Count);
    }

    pub fn real(&mut self, name: &str, of: impl Fn(&R) -> Option<f64>) {
        self.optional(name, of, Values::Real);
    }

    pub fn optional_count(&mut self, name: &str, of: impl Fn(&R) -> Option<u64>) {
        self.optional(name, |row| Some(of(row)?.cast_signed()), Values::Count);
    }

    fn full<T>(&mut self, name: &str, of: impl Fn(&R) -> T, values: fn(Vec<T>) -> Values) {
        let values = values(self.rows.iter().map(of).collect());
        self.columns.push(Column { name: name.to_owned(), levels: None, values });
    }

    fn optional<T>(&mut self, name: &str, of: impl Fn(&R) -> Option<T>, values: fn(Vec<T>) -> Values) {
        let all: Vec<Option<T>> = self.rows.iter().map(of).collect();
        let levels = Some(all.iter().map(|value| i16::from(value.is_some())).collect());
        let values = values(all.into_iter().flatten().collect());
        self.columns.push(Column { name: name.to_owned(), levels, values });
    }

    /// The columns as a file in memory.
    pub fn file(self, properties: WriterProperties) -> Result<Vec<u8>> {
        let fields = self.columns.iter().map(Column::field).collect::<Result<_>>()?;
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        let mut out = Vec::new();
        let mut file = SerializedFileWriter::new(&mut out, schema, Arc::new(properties))?;
        if !self.rows.is_empty() {
            let mut rows = file.next_row_group()?;
            for column in &self.columns {
                let mut writer = rows.next_column()?.expect("the schema has as many columns");
                column.write(writer.untyped())?;
                writer.close()?;
            }
            rows.close()?;
        }
        file.close()?;
        Ok(out)
    }
}

impl Column {
    fn field(&self) -> Result<TypePtr> {
        let (physical, logical) = match self.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Number(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Values::Count(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Values::Real(_) => (Physical::DOUBLE, None),
        };
        let repetition = if self.levels.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&self.name, physical);
        Ok(Arc::new(field.with_repetition(repetition).with_logical_type(logical).build()?))
    }

    fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<()> {
        match (&self.values, writer) {
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => self.batch(writer, values),
            (Values::Number(values), ColumnWriter::Int32ColumnWriter(writer)) => self.batch(writer, values),
            (Values::Count(values), ColumnWriter::Int64ColumnWriter(writer)) => self.batch(writer, values),
            (Values::Real(values), ColumnWriter::DoubleColumnWriter(writer)) => self.batch(writer, values),
            _ => Err(ParquetError::General(format!("{}: expected a writer of its type", self.name))),
        }
    }

    fn batch<T: DataType>(&self, writer: &mut ColumnWriterImpl<'_, T>, values: &[T::T]) -> Result<()> {
        writer.write_batch(values, self.levels.as_deref(), None).map(|_| ())
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
