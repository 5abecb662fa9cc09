//! Records of what happened between checkpoints: what the flash alone does not tell.

use super::format::{u32_at, u64_at};

pub(super) const RECORD_BYTES: usize = 20;

/// Something that the flash alone does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Logical pages hold nothing: every version with a smaller sequence number is dropped.
    Drop {
        first: u32,
        count: u32,
        seq: u64,
    },
    /// The newest data of a logical page is here again, after a later copy was thrown away.
    Place {
        page: u32,
    },
    Retire {
        block: u32,
    },
}

impl Record {
    pub fn write(&self, out: &mut Vec<u8>) {
        let (kind, a, b, seq) = match *self {
            Self::Drop { first, count, seq } => (1u32, first, count, seq),
            Self::Place { page } => (2, page, 0, 0),
            Self::Retire { block } => (3, block, 0, 0),
        };
        for word in [kind, a, b] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&seq.to_le_bytes());
    }

    /// The records of a page; `None` if one of them is of no known kind.
    pub fn read_all(payload: &[u8]) -> Option<Vec<Self>> {
        let records = payload.chunks_exact(RECORD_BYTES).map(|bytes| {
            let a = u32_at(bytes, 4);
            match u32_at(bytes, 0) {
                1 => Some(Self::Drop { first: a, count: u32_at(bytes, 8), seq: u64_at(bytes, 12) }),
                2 => Some(Self::Place { page: a }),
                3 => Some(Self::Retire { block: a }),
                _ => None,
            }
        });
        records.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back() {
        let records = [
            Record::Drop { first: 5, count: 70_000, seq: 1 << 40 },
            Record::Place { page: 8 },
            Record::Retire { block: 9 },
        ];
        let mut bytes = Vec::new();
        for record in &records {
            record.write(&mut bytes);
        }
        assert_eq!(Record::read_all(&bytes).unwrap(), records);
        bytes[0] = 9;
        assert_eq!(Record::read_all(&bytes), None);
    }
}
