//! Making an image, and finding out what an image holds.

use crate::blocks::{End, Words, lost_words};
use crate::error::{ImageError, Result};
use crate::flash::{Block, Flash, Mended};
use crate::header::Header;
use crate::layout::{CONFIG, CONFIG_BYTES, OOB_HEAD, version_for};
use crate::state::{self, State};
use crate::store::Store;
use nandscape_core::{BlockId, Capabilities, Geometry, OutOfBand};
use nandscape_files::os;
use nandscape_media::NandOptions;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Header and configuration as they stand in the file.
pub(crate) fn head(header: &Header) -> Vec<u8> {
    let mut head = header.encode();
    head.resize(CONFIG as usize, 0);
    head.extend_from_slice(header.config.as_bytes());
    head
}

/// Fills the tables of a store that holds `header`.
pub(crate) fn format<S: Store, O: OutOfBand>(
    store: S,
    header: Header,
    boot: [u8; 16],
    bad: &[BlockId],
    options: &NandOptions,
) -> std::io::Result<Flash<S, O>> {
    let mut blocks = vec![Block::default(); header.geometry.blocks() as usize];
    for block in bad {
        blocks[block.index()].is_bad = true;
    }
    for (die, age) in blocks.chunks_mut(header.geometry.blocks_per_unit() as usize).zip(&options.ages) {
        for block in die {
            block.erases = *age;
        }
    }
    let state = State { is_clean: false, epoch: 1, opens: 1, boot };
    let mut flash = Flash::new(store, header, state, blocks);
    for block in (0..flash.blocks.len() as u32).map(BlockId) {
        flash.settle(block);
        flash.put_word(block);
    }
    flash.put_state();
    flash.sync_first()?;
    Ok(flash)
}

pub(crate) fn header(
    path: &Path,
    geometry: &Geometry,
    options: &NandOptions,
    oob_bytes: u32,
    config: &str,
) -> Result<Header> {
    if config.len() as u64 > CONFIG_BYTES {
        let what = format!("the configuration has {} bytes: expected at most {CONFIG_BYTES}", config.len());
        return Err(ImageError::unsuited(path, what));
    }
    let uuid = os::draw_uuid().map_err(ImageError::io(path, "draw a UUID"))?;
    let created_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(Header {
        version: version_for(oob_bytes),
        oob_bytes: oob_bytes.max(OOB_HEAD as u32),
        uuid,
        geometry: *geometry,
        endurance: options.endurance,
        capabilities: Capabilities { stores_data: true, ..options.capabilities },
        created_s,
        config: config.to_owned(),
    })
}

/// Opens an image in a store, on a machine that was started as `boot` says.
pub(crate) fn load<S: Store, O: OutOfBand>(
    mut store: S,
    header: Header,
    boot: [u8; 16],
    path: &Path,
) -> Result<Flash<S, O>> {
    let layout = header.layout();
    let copies = layout.states().map(|at| State::decode(&store.tables()[at as usize..][..state::BYTES]));
    let found = State::latest(copies);
    let end = match found {
        Some(state) if state.is_clean => End::Closed,
        // Whatever was stored is there, unless the machine failed.
        Some(state) if state.boot == boot && boot != [0; 16] => End::Killed,
        _ => End::Failed,
    };
    let mut mended = Mended { is_state: copies.contains(&None), blocks: Vec::new() };
    let mut blocks = Vec::with_capacity(header.geometry.blocks() as usize);
    let mut rebuilt = Vec::new();
    for block in (0..header.geometry.blocks()).map(BlockId) {
        let words = Words::read(&mut store, &layout, block);
        let state = words.block(end, header.geometry.pages_per_block);
        blocks.push(state.ok_or_else(|| lost_words(&store, &layout, block, path))?);
        if words.is_mended || words.last.is_none() {
            mended.blocks.push(block);
        }
        if words.last.is_none() {
            rebuilt.push(block);
        }
    }
    let before = found.unwrap_or(State { is_clean: false, epoch: 0, opens: 0, boot });
    let state = State { is_clean: false, boot, opens: before.opens.wrapping_add(1), epoch: before.epoch };
    let mut flash = Flash::new(store, header, state, blocks);
    flash.was_clean = before.is_clean;
    flash.mended = mended;
    if end == End::Failed {
        // No session: a sync failed, and what the system read from its cache may not be on the disk.
        let rewrites = before.boot == [0; 16];
        flash.scan(found.map(|state| state.epoch), rewrites);
        if rewrites {
            flash.store.rewrite_tables();
        }
        if !flash.unproven.is_empty() {
            flash.state.boot = [0; 16];
        }
    } else {
        flash.find_write_pointers(end);
        for block in rebuilt {
            flash.rebuild_word(block);
        }
    }
    flash.put_state();
    flash.sync_first().map_err(ImageError::io(path, "sync"))?;
    flash.check_whole(path)?;
    Ok(flash)
}
