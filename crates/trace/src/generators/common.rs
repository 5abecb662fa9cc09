//! What the generators of single-size requests share: the area, the mix, the clock.

use super::Context;
use crate::error::Result;
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, seeded};
use nandscape_core::{
    IoRecord, ParamError, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys, units,
};

keys! {
    pub(crate) COMMON:
    pub(crate) SPAN: String = text() or "100%",
        "size of the area that is used: a share of the logical capacity, or bytes";
    pub(crate) BS: u64 = size(1, 1 << 30) or "4k", "bytes of each request";
    pub(crate) COUNT: Option<u64> = count(),
        "requests; as many as fill the span once if neither count nor size is given";
    pub(crate) SIZE: Option<u64> = size(1, 1 << 60), "bytes transferred in all, instead of count";
    pub(crate) READ: f64 = share() or "0", "share of reads";
    pub(crate) TRIM: f64 = share() or "0", "share of discards";
    pub(crate) ALIGN: Option<u64> = size(1, 1 << 30),
        "starts are multiples of this many bytes from the start of the area; bs if absent";
    pub(crate) OFFSET: u64 = size(0, 1 << 49) or "0", "first byte of the area";
    pub(crate) GAP: Option<u64> = time(), "time between arrivals; if absent the load has no times of its own";
    pub(crate) SEED: Option<u64> = int(0, u64::MAX), "seed; that of the run if absent";
}

/// The generator of random numbers for `seed`, or that of the run.
pub(crate) fn rng(params: &Params, context: Context) -> Xoshiro256PlusPlus {
    seeded(params.get(SEED).unwrap_or(context.seed))
}

/// A share as a bound on draws of 64 bits; 2^64 is always.
pub(crate) fn threshold(share: f64) -> u128 {
    (share * (1u128 << 64) as f64) as u128
}

/// Refuses a key that would do nothing: it was given, and has a meaning only as `needs` says.
pub(crate) fn refuse(params: &Params, name: &str, needs: &str) -> Result<(), ParamError> {
    match params.iter().find(|(param, _)| param.name == name) {
        Some((param, _)) => Err(params.error(*param, format!("this key only {needs}"))),
        None => Ok(()),
    }
}

/// Refuses arrivals so far apart that the last comes after more than 100 years.
pub(crate) fn check_gap(params: &Params, gap_ns: u64, count: u64, start_ns: u64) -> Result<(), ParamError> {
    let end = gap_ns.checked_mul(count).and_then(|ns| ns.checked_add(start_ns));
    match end {
        Some(end) if end <= crate::gate::TIME_MAX_NS => Ok(()),
        _ => Err(params.error(GAP, "count x gap below 100 years")),
    }
}

pub(crate) fn info_of(name: &str, count: u64, has_real_times: bool) -> WorkloadInfo {
    let (format, expected_records) = (name.to_owned(), Some(count));
    WorkloadInfo { format, has_real_times, expected_records, ..WorkloadInfo::default() }
}

pub(crate) trait Pattern: Send {
    /// A slot below the number of slots, and the hint to send along.
    fn slot(&mut self, rng: &mut Xoshiro256PlusPlus) -> (u64, u16);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    base: u64,
    align: u64,
    pub(crate) slots: u64,
    /// Slots after which a next request begins when they follow each other.
    pub(crate) stride: u64,
    span: u64,
}

pub(crate) fn area(params: &Params, context: Context) -> Result<Area, ParamError> {
    let bs = params.get(BS);
    let (base, span) = extent(params, context, bs)?;
    let align = params.get(ALIGN).unwrap_or(bs);
    Ok(Area { base, align, slots: (span - bs) / align + 1, stride: bs.div_ceil(align), span })
}

/// First byte and bytes of the area, which has room for a request of `bs` bytes.
pub(crate) fn extent(params: &Params, context: Context, bs: u64) -> Result<(u64, u64), ParamError> {
    let capacity = context.target.capacity_bytes;
    let base = params.find(OFFSET).unwrap_or(0);
    let text = params.get(SPAN);
    let span = if text.ends_with('%') || text.parse::<f64>().is_ok_and(|v| v <= 1.0) {
        if capacity == 0 {
            return Err(params.error(SPAN, "a size in bytes, such as 1GiB, since no device is given"));
        }
        let share = units::parse_share(text).map_err(|error| params.error(SPAN, error.expected))?;
        (capacity as f64 * share) as u64
    } else {
        units::parse_size(text)
            .map_err(|_| params.error(SPAN, "a share such as 80% or a size such as 1GiB"))?
    };
    if span < bs {
        let (bs, span) = (units::format_bytes(bs), units::format_bytes(span));
        return Err(params.error(SPAN, format!("at least one request of {bs} (it is {span})")));
    }
    let end = base.checked_add(span);
    if capacity > 0 && end.is_none_or(|end| end > capacity) {
        let expected =
            format!("an area that ends within the capacity of {capacity} B (offset {base} + {span} B)");
        return Err(params.error(SPAN, expected));
    }
    if end.is_none_or(|end| end > crate::gate::OFFSET_MAX) {
        return Err(params.error(SPAN, "an area that ends below 2^49 B"));
    }
    Ok((base, span))
}

/// How many requests: as many as fill `span` once if neither `count` nor `size` is given.
pub(crate) fn requests(params: &Params, span: u64) -> Result<u64, ParamError> {
    let (bs, count, size) = (params.get(BS), params.get(COUNT), params.get(SIZE));
    let given = if size.is_some() { SIZE } else { COUNT };
    let count = match (count, size) {
        (Some(_), Some(_)) => return Err(params.error(SIZE, "either count or size, not both")),
        (Some(count), None) => count,
        (None, Some(size)) => size / bs,
        (None, None) => span / bs,
    };
    if count == 0 {
        return Err(params.error(given, "1 request or more"));
    }
    Ok(count)
}

pub(crate) struct Synthetic<P> {
    pattern: P,
    rng: Xoshiro256PlusPlus,
    area: Area,
    bs: u64,
    /// Draws below `read` are reads, those below `trim` discards; 2^64 is always. No draw is made for pure
    /// writes.
    read: u128,
    trim: u128,
    gap_ns: u64,
    now_ns: u64,
    left: u64,
    info: WorkloadInfo,
}

pub(crate) fn synthetic<P: Pattern>(
    name: &str,
    params: &Params,
    context: Context,
    pattern: impl FnOnce(&Area) -> Result<P, ParamError>,
) -> Result<Synthetic<P>, ParamError> {
    let area = area(params, context)?;
    let bs = params.get(BS);
    let count = requests(params, area.span)?;
    let (read, trim) = (params.get(READ), params.get(TRIM));
    if read + trim > 1.0 {
        return Err(params.error(TRIM, "shares of reads and discards that are at most 1 together"));
    }
    let gap = params.get(GAP);
    let gap_ns = gap.unwrap_or(0);
    check_gap(params, gap_ns, count, 0)?;
    Ok(Synthetic {
        pattern: pattern(&area)?,
        rng: rng(params, context),
        area,
        bs,
        read: threshold(read),
        trim: threshold(read + trim),
        gap_ns,
        now_ns: 0,
        left: count,
        info: info_of(name, count, gap.is_some()),
    })
}

impl<P: Pattern> Iterator for Synthetic<P> {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let op = if self.trim == 0 {
            TraceOp::Write
        } else {
            match u128::from(self.rng.next_u64()) {
                draw if draw < self.read => TraceOp::Read,
                draw if draw < self.trim => TraceOp::Trim,
                _ => TraceOp::Write,
            }
        };
        let (slot, hint) = self.pattern.slot(&mut self.rng);
        let at = SimTime(self.now_ns);
        self.now_ns += self.gap_ns;
        let offset = self.area.base + slot * self.area.align;
        Some(Ok(IoRecord { at, offset, len: self.bs, volume: 0, hint, op }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

impl<P: Pattern> TraceReader for Synthetic<P> {
    fn info(&self) -> WorkloadInfo {
        let records = self.info.expected_records.unwrap_or(0) - self.left;
        WorkloadInfo { records, ..self.info.clone() }
    }
}
