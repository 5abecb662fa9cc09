//! Collection while the host is idle, an option of the strategies of the thesis, whose collection is lazy
//! ([thesis 5] leaves a background thread to later work).
//!
//! A strategy does one step at a time: the page maps empty and erase a victim, the superblock maps erase a
//! superblock without live pages, the hybrid map merges a log. A step uses the code of the foreground, so
//! order, failures and counters are the same. A step begins only in idle time, but is always finished.

use nandscape_core::{ParamError, Params, keys};

keys! {
    pub(crate) BACKGROUND_GC: bool = flag() or "false", "collect while the host is idle";
    pub(crate) BACKGROUND_WATERMARK: String = text() or "5%",
        "erased space at which background GC stops, in blocks (or % of them)";
}

/// Erased pages at which background collection of a device with so many good blocks stops; `None` if it is
/// off.
pub(crate) fn wanted_pages(
    params: &Params,
    blocks: u64,
    pages_per_block: u32,
) -> Result<Option<u64>, ParamError> {
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    let pages = watermark(params.get(BACKGROUND_WATERMARK), blocks, pages_per_block).ok_or_else(|| {
        let expected = format!("a number of blocks up to {blocks}, or a percentage of them such as 5%");
        params.error(BACKGROUND_WATERMARK, expected)
    })?;
    Ok(params.get(BACKGROUND_GC).then_some(pages))
}

/// `12`, `1.5` or `2%` of so many blocks, in pages, rounded down.
pub(crate) fn watermark(text: &str, blocks: u32, pages: u32) -> Option<u64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, f64::from(blocks) / 100.0),
        None => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().ok()? * scale;
    (0.0..=f64::from(blocks)).contains(&value).then_some((value * f64::from(pages)) as u64)
}
