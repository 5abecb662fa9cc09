//! In which order a collection works: erase a victim and then rewrite what it held (the thesis, which has no
//! spare space), or copy first and erase afterwards (which survives a loss of power and needs a reserve).

use nandscape_core::{FlashDevice, Param, ParamError, ParamKind, Params};

/// `gc_order`.
pub(crate) const GC_ORDER: Param = Param {
    name: "gc_order",
    summary: "erase-first is the thesis: no spare space, and a loss of power loses data; copy-first erases a victim once its live \
              pages are elsewhere; auto is copy-first where the device stores bytes",
    kind: ParamKind::Choice { of: &["auto", "erase-first", "copy-first"] },
    default: "auto",
};

/// `unsafe_order`.
pub(crate) const UNSAFE_ORDER: Param = Param {
    name: "unsafe_order",
    summary: "allow gc_order = erase-first on a device that stores bytes: whatever is being collected when the power goes is lost",
    kind: ParamKind::Bool,
    default: "false",
};

/// `reserve` of the layers that manage blocks or rows of blocks.
pub(crate) const RESERVE: Param = Param {
    name: "reserve",
    summary: "blocks (pm-gcc: rows of one block of every unit) held back from the capacity under copy-first; unset: 2, one to copy into \
              and one that makes sure that a victim has an invalid page, and a fiftieth, at least 1, for blocks that fail",
    kind: ParamKind::Int { min: 1, max: 1 << 24 },
    default: "",
};

/// `reserve` of the layers that manage superblocks.
pub(crate) const RESERVE_SUPERBLOCKS: Param = Param {
    name: "reserve",
    summary: "superblocks held back from the capacity under copy-first; unset: 2, a target and one for a loss of power in the middle of \
              it, and what the logs take, and a fiftieth, at least 1, for superblocks that fail",
    kind: ParamKind::Int { min: 1, max: 1 << 24 },
    default: "",
};

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
        let order = match params.text("gc_order") {
            "erase-first" => Self::EraseFirst,
            "copy-first" => Self::CopyFirst,
            _ if stores_data => Self::CopyFirst,
            _ => Self::EraseFirst,
        };
        if order == Self::EraseFirst {
            if params.get("reserve").is_some() {
                return Err(params.error("reserve", "no value, since erase-first holds nothing back"));
            }
            if stores_data && !params.flag("unsafe_order") {
                let expected = "copy-first on a device that stores bytes, where a loss of power between an erase and the rewriting \
                                loses data; unsafe_order = true allows it all the same";
                return Err(params.error("gc_order", expected));
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
    let reserve = match params.get("reserve") {
        None => least + (total / 50).max(1),
        Some(_) => params.int32("reserve"),
    };
    if reserve < least {
        return Err(params.error("reserve", format!("{least} or more {what}, the least that works here")));
    }
    if reserve >= total {
        let expected = format!("fewer than the {total} {what} of the device");
        return Err(match params.get("reserve") {
            Some(_) => params.error("reserve", expected),
            None => params
                .error("gc_order", format!("a device with more than {reserve} {what}, but it has {total}")),
        });
    }
    Ok(reserve)
}
