//! `--time-scale X`: every gap times X, from the first request on.

use super::Changed;
use crate::error::io;
use crate::gate::TIME_MAX_NS;
use crate::options::BoxReader;
use nandscape_core::{SimTime, TraceReader};

pub(crate) fn time_scaled(inner: BoxReader, factor: f64) -> impl TraceReader + use<> {
    let (format, mut first) = (inner.info().format, None);
    Changed::new(inner, move |record| {
        let at = record.at.as_ns();
        let first = *first.get_or_insert(at);
        let scaled = (at - first) as f64 * factor;
        if scaled > TIME_MAX_NS as f64 {
            let message = format!("time {at} ns x {factor} exceeds 100 years: expected a smaller time scale");
            return Err(io(&format, message));
        }
        record.at = SimTime(first + scaled.round() as u64);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrappers::testing::{all, io, list};
    use nandscape_core::TraceOp;

    #[test]
    fn gaps_are_multiplied_and_the_start_stays() {
        let records = [10u64, 20, 50].map(|at| io(at, TraceOp::Read, 0, 0, 1));
        let scaled = all(time_scaled(list(&records), 0.5));
        assert_eq!(scaled.iter().map(|r| r.at.as_ns()).collect::<Vec<_>>(), [10, 15, 30]);
    }

    #[test]
    fn an_overflow_is_one_error() {
        let records = [0, 1 << 40, 1 << 41].map(|at| io(at, TraceOp::Read, 0, 0, 1));
        let mut scaled = time_scaled(list(&records), 1e9);
        assert!(scaled.next().unwrap().is_ok());
        assert!(scaled.next().unwrap().unwrap_err().to_string().contains("100 years"));
        assert!(scaled.next().is_none());
    }
}
