//! In which order a collection works: erase a victim and then rewrite what it held (the thesis, which has no
//! spare space), or copy first and erase afterwards (which survives a loss of power and needs a reserve).

use nandscape_core::{FlashDevice, ParamError, Params, keys};

keys! {
    pub(crate) GC_ORDER: String = choice(&["auto", "erase-first", "copy-first"]) or "auto",
        "erase-first is the thesis: no spare space, and a loss of power loses data; copy-first erases a \
         victim once its live pages are elsewhere; auto is copy-first where the device stores bytes";
    pub(crate) UNSAFE_ORDER: bool = flag() or "false",
        "allow gc_order = erase-first on a device that stores bytes: whatever is being collected when the \
         power goes is lost";
    pub(crate) RESERVE: Option<u32> = int(1, 1 << 24),
        "blocks (pm-gcc: rows of one block of every unit) held back from the capacity under copy-first; \
         unset: 2, one to copy into and one that makes sure that a victim has an invalid page, and a \
         fiftieth, at least 1, for blocks that fail";
}

/// When a victim is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Before its live pages are rewritten.
    EraseFirst,
    /// After its live pages were copied.
    CopyFirst,
}

impl Order {
    /// The order for a device. Erase-first is refused where it risks bytes, unless it is asked for by name.
    pub(crate) fn of<D: FlashDevice>(device: &mut D, params: &Params) -> Result<Self, ParamError> {
        let stores_data = device.capabilities().stores_data;
        let order = match params.get(GC_ORDER) {
            "erase-first" => Self::EraseFirst,
            "copy-first" => Self::CopyFirst,
            _ if stores_data => Self::CopyFirst,
            _ => Self::EraseFirst,
        };
        if order == Self::EraseFirst {
            if params.get(RESERVE).is_some() {
                return Err(params.error(RESERVE, "no value, since erase-first holds nothing back"));
            }
            if stores_data && !params.get(UNSAFE_ORDER) {
                let expected = "copy-first on a device that stores bytes, where a loss of power between an erase and the rewriting \
                                loses data; unsafe_order = true allows it all the same";
                return Err(params.error(GC_ORDER, expected));
            }
            if let Some(journal) = device.journal_mut() {
                journal.allow_loss();
            }
        }
        Ok(order)
    }
}

/// How many of `total` units of space are held back: what was typed, or `least` and a fiftieth, at least one,
/// for failures. `least` is what works without failures.
pub(crate) fn reserve(params: &Params, least: u32, total: u32, what: &str) -> Result<u32, ParamError> {
    let typed = params.get(RESERVE);
    let reserve = typed.unwrap_or_else(|| least + (total / 50).max(1));
    if reserve < least {
        return Err(params.error(RESERVE, format!("{least} or more {what}, the least that works here")));
    }
    if reserve >= total {
        let expected = format!("fewer than the {total} {what} of the device");
        if typed.is_some() {
            return Err(params.error(RESERVE, expected));
        }
        let expected = format!("a device with more than {reserve} {what}, but it has {total}");
        return Err(params.error(GC_ORDER, expected));
    }
    Ok(reserve)
}
