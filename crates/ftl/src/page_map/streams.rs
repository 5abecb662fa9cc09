//! Streams: which log a hint names, the pieces logs are given, and what the configuration says about them.

use super::PageMap;
use super::config::{Config, SplitKind};
use nandscape_core::{FlashDevice, Geometry, Hint, LogStatus, ParamError, Params};

impl<D: FlashDevice> PageMap<D> {
    /// The log that a hint names; log 0 for hints above all logs. Without streams hints mean nothing.
    #[inline]
    pub(super) fn log_of(&mut self, hint: Hint) -> usize {
        if self.host_bytes.len() == 1 {
            return 0;
        }
        let log = usize::from(hint.0);
        let log = if log < self.host_bytes.len() { log } else { 0 };
        if !self.domains[0].logs[log].active {
            self.activate(log);
        }
        log
    }

    #[cold]
    fn activate(&mut self, log: usize) {
        for domain in &mut self.domains {
            domain.activate(log);
        }
    }

    /// Sums over the domains; a piece of a striped log has a part in each, so pieces are those of the
    /// fullest.
    pub(super) fn status_of(&self, log: usize) -> LogStatus {
        let Some(written) = self.host_bytes.get(log) else { return LogStatus::default() };
        let host_bytes = written - self.host_bytes_before[log];
        let block_bytes = u64::from(self.pages_per_block) * u64::from(self.page_bytes);
        let mut status = LogStatus { host_bytes, ..LogStatus::default() };
        for domain in &self.domains {
            let Some(pieces) = &domain.pieces else { continue };
            status.piece_bytes += u64::from(pieces.blocks_per_piece()) * block_bytes;
            status.room_bytes += u64::from(pieces.left(log)) * block_bytes
                + domain.open_pages(log) * u64::from(self.page_bytes);
            status.pieces = status.pieces.max(u64::from(pieces.count(log)));
        }
        status
    }

    /// Closes the present piece of a log everywhere. Gives the bytes left in it.
    pub(super) fn renew(&mut self, log: usize) -> u64 {
        if log >= self.host_bytes.len() {
            return 0;
        }
        let infos = &mut self.blocks.infos;
        let pages: u64 = self.domains.iter_mut().map(|domain| domain.renew(log, infos, self.seq)).sum();
        pages * u64::from(self.page_bytes)
    }
}

/// For each host log whether its survivors are kept apart for good; empty without streams.
pub(super) fn isolation(params: &Params, shared_frontier: bool) -> Result<Vec<bool>, ParamError> {
    let expected = || params.error("gc_isolation", "initially or persistently, once or for each log from 0");
    let words: Result<Vec<bool>, ParamError> = params
        .text("gc_isolation")
        .split(',')
        .map(|word| match word.trim() {
            "persistently" => Ok(true),
            "initially" => Ok(false),
            _ => Err(expected()),
        })
        .collect();
    let words = words?;
    let streams = params.int32("streams") as usize;
    if streams == 0 {
        return Ok(Vec::new());
    }
    if shared_frontier && words.contains(&false) {
        let expected =
            "persistently where gc_frontier is shared, since moved pages then follow their own log";
        return Err(params.error("gc_isolation", expected));
    }
    match words.as_slice() {
        [all] => Ok(vec![*all; streams + 1]),
        each if each.len() == streams + 1 => Ok(words),
        _ => Err(params.error(
            "gc_isolation",
            format!("one word for all logs, or {} of them for logs 0 to {streams}", streams + 1),
        )),
    }
}

/// How blocks are divided among streams.
pub(super) fn split(params: &Params, persistent: &[bool]) -> Result<SplitKind, ParamError> {
    let text = params.text("split").trim();
    if text == "global" {
        return Ok(SplitKind::Global);
    }
    if persistent.is_empty() || persistent.contains(&false) {
        let expected = "global where there are no streams, or where survivors of several streams share blocks (gc_isolation)";
        return Err(params.error("split", expected));
    }
    if text == "auto" {
        return Ok(SplitKind::Auto { logs: persistent.len() });
    }
    let streams = persistent.len() - 1;
    let shares: Option<Vec<f64>> = text
        .split(',')
        .map(|share| share.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share)))
        .collect();
    let shares = shares.filter(|shares| shares.len() == streams && shares.iter().sum::<f64>() <= 1.0 + 1e-9);
    let Some(mut shares) = shares else {
        let expected = format!(
            "global, auto or {streams} number(s) of a sum of at most 1, the share of each stream from 1; the rest is log 0's"
        );
        return Err(params.error("split", expected));
    };
    shares.insert(0, (1.0 - shares.iter().sum::<f64>()).max(0.0));
    Ok(SplitKind::Fixed(shares))
}

/// Blocks of a piece in the whole device, if the key is given and they are whole.
pub(super) fn granularity_blocks(params: &Params, geometry: &Geometry) -> Option<u64> {
    params.get("stream_granularity")?;
    let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
    let bytes = params.size("stream_granularity");
    bytes.is_multiple_of(block_bytes).then_some(bytes / block_bytes)
}

/// The greatest number of open blocks up to `most` that fills pieces of so many blocks evenly.
pub(super) fn divisor(piece_blocks: u64, most: u32) -> u32 {
    (1..=most).rev().find(|open| piece_blocks.is_multiple_of(u64::from(*open))).unwrap_or(1)
}

/// Blocks of a piece in each of `domains` domains; 0 without streams.
pub(super) fn blocks_per_piece(
    params: &Params,
    config: &Config,
    geometry: &Geometry,
    domains: u32,
) -> Result<u32, ParamError> {
    if config.persistent.is_empty() {
        return Ok(0);
    }
    if params.get("stream_granularity").is_none() {
        return Ok(config.frontiers.of_one());
    }
    let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
    let unit = block_bytes * u64::from(domains) * u64::from(config.frontiers.of_all());
    granularity_blocks(params, geometry)
        .filter(|blocks| *blocks <= u64::from(geometry.blocks()))
        .filter(|blocks| (blocks * block_bytes).is_multiple_of(unit))
        .map(|blocks| (blocks / u64::from(domains)) as u32)
        .ok_or_else(|| {
            let expected = format!(
                "a multiple of {unit} bytes, which is {} block(s) of {block_bytes} bytes, up to the device's {}",
                unit / block_bytes,
                geometry.blocks()
            );
            params.error("stream_granularity", expected)
        })
}
