//! The rows of one experiment: published beside measured.

use nandscape_report::{ReproductionRow, RowKind, RowSeries, Verdict};
use std::ops::RangeInclusive;

pub(super) struct Table {
    id: &'static str,
    /// A number far from its figure and a statement that does not hold say so if nobody knows the cause.
    must_explain: bool,
    rows: Vec<ReproductionRow>,
}

impl Table {
    pub(super) const fn new(id: &'static str, must_explain: bool) -> Self {
        Self { id, must_explain, rows: Vec::new() }
    }

    /// The rows. What was put in or set says nothing of the model, so only measured rows keep a ratio and a
    /// verdict.
    pub(super) fn finish(mut self) -> Vec<ReproductionRow> {
        for row in self.rows.iter_mut().filter(|row| row.kind != RowKind::Measured) {
            (row.ratio, row.verdict) = (None, None);
        }
        self.rows
    }

    /// Adds a row. `source` is the tag of what published it, empty for our own.
    pub(super) fn row(&mut self, source: &str, name: impl Into<String>) -> Row<'_> {
        let must_explain = self.must_explain;
        self.rows.push(ReproductionRow {
            id: self.id.to_owned(),
            source: source.to_owned(),
            name: name.into(),
            ..ReproductionRow::default()
        });
        let filled = self.rows.last_mut().expect("just added");
        Row { filled, must_explain, why: String::new() }
    }
}

pub(super) struct Row<'a> {
    filled: &'a mut ReproductionRow,
    must_explain: bool,
    why: String,
}

impl Row<'_> {
    /// A number, and what was measured for it.
    pub(super) fn number(self, unit: &str, published: f64, measured: f64) -> Self {
        let row = self.figure(unit, measured);
        row.filled.published = published.into();
        row.filled.ratio = (published != 0.0).then(|| measured / published);
        if row.must_explain && row.filled.needs_note() {
            "not explained by the model's decisions; the recorded trace is not public and this load may differ from it"
                .clone_into(&mut row.filled.note);
        }
        row
    }

    /// The band that the measured number is to lie in, as stated before it was measured.
    pub(super) fn within(self, band: RangeInclusive<f64>) -> Self {
        let is_met = self.filled.measured.as_f64().is_some_and(|measured| band.contains(&measured));
        self.filled.verdict = Some(if is_met { Verdict::Met } else { Verdict::Missed });
        self
    }

    /// The rule of a number without a better one: 0.8 to 1.25 times the published one.
    pub(super) fn near(self) -> Self {
        let published = self.filled.published.as_f64().unwrap_or(f64::NAN);
        self.within(0.8 * published..=1.25 * published)
    }

    /// What the measured value is, if it does not come out of the run.
    pub(super) fn kind(self, kind: RowKind) -> Self {
        self.filled.kind = kind;
        self
    }

    /// A number that nobody published.
    pub(super) fn figure(self, unit: &str, measured: f64) -> Self {
        unit.clone_into(&mut self.filled.unit);
        self.filled.measured = measured.into();
        self
    }

    /// A published statement (a range, an ordering), and whether it holds.
    pub(super) fn says(self, published: &str, holds: bool) -> Self {
        (self.filled.published, self.filled.measured) = (published.into(), holds.into());
        self.filled.verdict = Some(if holds { Verdict::Holds } else { Verdict::Fails });
        self
    }

    pub(super) fn unless(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// What was measured for the statement.
    pub(super) fn found(self, figures: impl AsRef<str>) {
        let why = match (self.filled.measured == true, self.why.as_str()) {
            (false, "") if self.must_explain => "; no cause is known".to_owned(),
            (true, _) | (_, "") => String::new(),
            (false, why) => format!("; {why}"),
        };
        self.filled.note = format!("measured: {}{why}", figures.as_ref());
    }

    /// What there is to say of the row; empty for nothing.
    pub(super) fn note(self, note: impl Into<String>) {
        let note = note.into();
        if !note.is_empty() {
            self.filled.note = note;
        }
    }

    pub(super) fn series(self, series: RowSeries) {
        self.filled.series = Some(series);
    }
}
