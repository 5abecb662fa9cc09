//! How a workload is opened, and as what.

use nandscape_core::TraceReader;
use nandscape_host::fs::Below;
use std::collections::BTreeMap;

/// An open workload.
pub type BoxReader = Box<dyn TraceReader + Send>;

/// Splits `name:key=value,...`.
pub(crate) fn parse_call(text: &str) -> Result<(String, BTreeMap<String, String>), String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let mut params = BTreeMap::new();
    for pair in rest.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| format!("'{pair}': expected key=value, such as bs=4k"))?;
        if params.insert(key.trim().to_owned(), value.trim().to_owned()).is_some() {
            return Err(format!("key '{}' is given twice", key.trim()));
        }
    }
    Ok((name.trim().to_owned(), params))
}

/// How a workload is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenOptions {
    /// Format by name, with parameters where wanted: `mqsim:unit=us`. Absent: detected from content.
    pub format: Option<String>,
    /// Columns of an odd CSV, such as `time=0:us,op=3,offset=4:sectors,len=5`; see [`crate::formats`].
    pub columns: Option<String>,
    /// Volumes to keep: numbers, `major,minor`, or names such as `hm_0`. Empty keeps all, side by side.
    pub volumes: Vec<String>,
    /// Moves touched 4 KiB pages together, in address order. Takes one more pass.
    pub remap_dense: bool,
    /// How often the whole workload is replayed, 1 or more.
    pub repeat: u64,
    /// Factor on every gap between arrivals, above 0.
    pub time_scale: f64,
    /// Requests of the source that are read at most (before repetition).
    pub limit: Option<u64>,
    /// Seed of generators that are not given one.
    pub seed: u64,
    /// Believes addresses beyond 2^40 sectors.
    pub force: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            format: None,
            columns: None,
            volumes: Vec::new(),
            remap_dense: false,
            repeat: 1,
            time_scale: 1.0,
            limit: None,
            seed: 1,
            force: false,
        }
    }
}

/// The device that the workload will run on, for generators whose span is a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Logical capacity in bytes; 0 where there is no device, so that only spans in bytes can be used.
    pub capacity_bytes: u64,
    /// Bytes that file systems have: of several devices, whose common capacity the spans are shares of, those
    /// of the device itself.
    pub volume_bytes: u64,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// What files are put on there.
    pub files: Below,
}

impl Target {
    /// No device.
    pub const NONE: Self = Self { capacity_bytes: 0, volume_bytes: 0, page_bytes: 4096, files: Below::Ext4 };
}
