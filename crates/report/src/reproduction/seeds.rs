//! A reproduction with several seeds: its rows as one row each.

use super::{ReproductionRow, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a row is over several seeds; the row itself has the mean, whether a statement holds with all of
/// them, and the worst verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowSeeds {
    /// Seeds.
    pub count: usize,
    /// Least measured number; null of what is no number.
    pub min: Option<f64>,
    /// Largest measured number.
    pub max: Option<f64>,
    /// With how many of the seeds the statement holds, or the rule is kept; null where there is neither.
    pub kept: Option<usize>,
}

/// The rows of runs that differ in their seed alone.
///
/// # Errors
///
/// Rows that some seeds have and others do not.
pub fn over_seeds(runs: &[(u64, Vec<ReproductionRow>)]) -> Result<Vec<ReproductionRow>, String> {
    let [(seed, first), others @ ..] = runs else { return Ok(Vec::new()) };
    if others.is_empty() {
        return Ok(first.clone());
    }
    for (other, rows) in others {
        let same = |(a, b): (&ReproductionRow, &ReproductionRow)| (&a.id, &a.name) == (&b.id, &b.name);
        if rows.len() != first.len() || !first.iter().zip(rows).all(same) {
            return Err(format!(
                "seeds {seed} and {other} give different rows: expected the same figures of each"
            ));
        }
    }
    let of_row = |at: usize| merged(*seed, &runs.iter().map(|(_, rows)| &rows[at]).collect::<Vec<_>>());
    Ok((0..first.len()).map(of_row).collect())
}

fn merged(seed: u64, rows: &[&ReproductionRow]) -> ReproductionRow {
    let mut row = rows[0].clone();
    let mut seeds = RowSeeds { count: rows.len(), ..RowSeeds::default() };
    let numbers: Option<Vec<f64>> = rows.iter().map(|row| row.measured.as_f64()).collect();
    if let Some(numbers) = numbers {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        seeds.min = numbers.iter().copied().reduce(f64::min);
        seeds.max = numbers.iter().copied().reduce(f64::max);
        if seeds.min != seeds.max {
            row.measured = mean(&numbers).into();
            let ratios: Option<Vec<f64>> = rows.iter().map(|row| row.ratio).collect();
            row.ratio = ratios.map(|ratios| mean(&ratios));
        }
    }
    let statements: Option<Vec<bool>> = rows.iter().map(|row| row.measured.as_bool()).collect();
    if let Some(statements) = &statements {
        row.measured = Value::Bool(statements.iter().all(|holds| *holds));
    }
    let verdicts: Option<Vec<Verdict>> = rows.iter().map(|row| row.verdict).collect();
    row.verdict = verdicts
        .as_ref()
        .and_then(|verdicts| verdicts.iter().find(|verdict| !verdict.is_good()).or(verdicts.first()))
        .copied();
    let kept = verdicts.map(|verdicts| verdicts.into_iter().map(Verdict::is_good).collect()).or(statements);
    seeds.kept = kept.map(|kept: Vec<bool>| kept.into_iter().filter(|kept| *kept).count());
    if !row.note.is_empty() && rows.iter().any(|other| other.note != row.note) {
        row.note = format!("seed {seed}: {}", row.note);
    }
    row.seeds = Some(seeds);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: Value, ratio: Option<f64>, verdict: Option<Verdict>) -> ReproductionRow {
        let note = measured.to_string();
        ReproductionRow { name: "a".to_owned(), measured, ratio, verdict, note, ..ReproductionRow::default() }
    }

    #[test]
    fn numbers_have_a_mean_and_a_range_and_statements_a_count() {
        let of = |seed: u64, number: f64, holds: bool, verdict| {
            (seed, vec![row(number.into(), Some(number / 2.0), Some(verdict)), row(holds.into(), None, None)])
        };
        let runs = [
            of(1, 2.0, true, Verdict::Met),
            of(2, 4.0, false, Verdict::Missed),
            of(3, 3.0, true, Verdict::Met),
        ];
        let rows = over_seeds(&runs).unwrap();
        let seeds = RowSeeds { count: 3, min: Some(2.0), max: Some(4.0), kept: Some(2) };
        assert_eq!(
            (&rows[0].measured, rows[0].ratio, rows[0].seeds.as_ref()),
            (&3.0.into(), Some(1.5), Some(&seeds))
        );
        assert_eq!((rows[0].verdict, rows[0].note.as_str()), (Some(Verdict::Missed), "seed 1: 2.0"));
        let seeds = RowSeeds { count: 3, kept: Some(2), ..RowSeeds::default() };
        assert_eq!((&rows[1].measured, rows[1].seeds.as_ref()), (&false.into(), Some(&seeds)));
        // One seed is what it is; what no seed changes stays a whole number.
        assert_eq!(over_seeds(&runs[..1]).unwrap(), runs[0].1);
        let whole = [(1, vec![row(7.into(), None, None)]), (2, vec![row(7.into(), None, None)])];
        assert_eq!(
            (&over_seeds(&whole).unwrap()[0].measured, over_seeds(&[]).unwrap().len()),
            (&7.into(), 0)
        );
        let fewer = [runs[0].clone(), (9, Vec::new())];
        assert_eq!(
            over_seeds(&fewer).unwrap_err(),
            "seeds 1 and 9 give different rows: expected the same figures of each"
        );
    }
}
