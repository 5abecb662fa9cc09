//! `ioengine`: of no account but for two things: an engine that does no block requests is refused, and a
//! synchronous one has one request outstanding whatever `iodepth` says, as in fio.

use super::{Extra, Given};
use crate::job::Job;
use crate::values::Expected;

const SYNCHRONOUS: &str = "sync psync vsync pvsync pvsync2 mmap splice sg_sync";
const ASYNCHRONOUS: &str = "libaio posixaio solarisaio windowsaio io_uring io_uring_cmd sg nbd rbd \
    xnvme libblkio libiscsi http spdk gfapi gfapi_async libzbc dev-dax libpmem \
    pmemblk";

pub(super) fn engine(_: &mut Job, extra: &mut Extra, v: Given<'_>) -> Result<(), Expected> {
    // An engine's own options may follow a ':', such as external:PATH.
    let name = v.text()?.split(':').next().unwrap_or_default();
    let is_in = |names: &str| names.split(' ').any(|known| known == name);
    extra.is_synchronous = Some(is_in(SYNCHRONOUS));
    if is_in(SYNCHRONOUS) || is_in(ASYNCHRONOUS) || name == "external" || name.contains('/') {
        return Ok(());
    }
    Err("an engine that does block requests, such as libaio, io_uring or psync (which one does not matter here)".to_owned())
}
