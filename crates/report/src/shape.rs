//! The device of a run, read back from its recorded configuration. A report must not fail over a
//! configuration it does not know, so everything here is optional.

use crate::number::grouped;
use nandscape_core::scaled_blocks;
use nandscape_core::units::{format_bytes, parse_size};
use serde_json::Value;

/// The shape of a device, for captions and for laying out the wear maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Preset or name, if the configuration has one.
    pub name: Option<String>,
    pub channels: u64,
    pub dies_per_channel: u64,
    pub planes_per_die: u64,
    pub blocks_per_plane: u64,
    pub pages_per_block: u64,
    pub page_bytes: u64,
}

fn size(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| parse_size(value.as_str()?).ok())
}

impl Shape {
    /// From the `device` table of a configuration; `None` if it has not all the keys.
    pub fn from_config(config: &Value) -> Option<Self> {
        let device = config.get("device")?;
        let count = |key: &str| device.get(key).and_then(Value::as_u64).filter(|v| (1..=1 << 32).contains(v));
        // A scaled device has fewer blocks than its configuration says.
        let blocks = count("blocks_per_plane")?;
        let scale = device.get("scale").and_then(Value::as_str);
        let scaled = scale.and_then(|scale| scaled_blocks(u32::try_from(blocks).ok()?, scale));
        Some(Self {
            name: ["name", "preset"].iter().find_map(|k| device.get(k)?.as_str()).map(str::to_owned),
            channels: count("channels")?,
            dies_per_channel: count("dies_per_channel")?,
            planes_per_die: count("planes_per_die")?,
            blocks_per_plane: scaled.map_or(blocks, u64::from),
            pages_per_block: count("pages_per_block")?,
            page_bytes: size(device.get("page")?)?,
        })
    }

    /// Dies of the device.
    pub const fn units(&self) -> u64 {
        self.channels.saturating_mul(self.dies_per_channel)
    }

    pub const fn blocks_per_unit(&self) -> u64 {
        self.planes_per_die.saturating_mul(self.blocks_per_plane)
    }

    /// One line, such as `thesis: 8 channels x 4 dies x 1 plane x 16 blocks x 32 pages x 32 KiB = 512 MiB`.
    pub fn describe(&self) -> String {
        let some = |n: u64, what: &str| format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" });
        let bytes = [self.blocks_per_unit(), self.pages_per_block, self.page_bytes]
            .iter()
            .fold(self.units(), |product, factor| product.saturating_mul(*factor));
        let parts = [
            some(self.channels, "channel"),
            some(self.dies_per_channel, "die"),
            some(self.planes_per_die, "plane"),
            some(self.blocks_per_plane, "block"),
            some(self.pages_per_block, "page"),
            format_bytes(self.page_bytes),
        ];
        let shape = format!("{} = {}", parts.join(" x "), format_bytes(bytes));
        match &self.name {
            Some(name) => format!("{name}: {shape}"),
            None => shape,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_may_be_text_or_numbers_and_nonsense_is_no_shape() {
        let device = |page: Value| {
            json!({"device": {"channels": 8, "dies_per_channel": 4, "planes_per_die": 1, "blocks_per_plane": 16,
                "pages_per_block": 32, "page": page}})
        };
        let mut scaled = device(json!("32KiB"));
        scaled["device"]["blocks_per_plane"] = json!(640);
        for (scale, blocks) in [("1/8", 80), ("1/64", 16), ("half", 640)] {
            scaled["device"]["scale"] = json!(scale);
            assert_eq!(Shape::from_config(&scaled).unwrap().blocks_per_plane, blocks, "{scale}");
        }
        let shape = Shape::from_config(&device(json!("32KiB"))).unwrap();
        assert_eq!(Some(&shape), Shape::from_config(&device(json!(32768))).as_ref());
        assert_eq!(
            shape.describe(),
            "8 channels x 4 dies x 1 plane x 16 blocks x 32 pages x 32 KiB = 512 MiB"
        );
        assert_eq!(Shape::from_config(&device(json!("wide"))), None);
        assert_eq!(Shape::from_config(&json!({"device": 3})), None);
    }
}
