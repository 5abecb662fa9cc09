//! The fixed traces of the side-by-side runs against MQSim: addresses from a 64-bit xorshift (shifts 13, 7,
//! 17), one draw an address, address = draw mod slots; with reads, a second draw decides: (draw >> 20) mod 10
//! below `reads` is a read.
//!
//! `preset` T1, T2 or T3 gives the three published ones (seed 88172645463325252, start at 1000 ns); any key
//! given beside it wins.

use super::Generator;
use super::common::{check_gap, info_of};
use crate::error::Result;
use nandscape_core::{Info, IoRecord, ParamError, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys};

keys! { PARAMS:
    PRESET: String = choice(&["t1", "t2", "t3"]) or "t1",
        "T1: 1M writes of 16k; T2: 1M requests of 4k, 7 in 10 reads; T3: 4M writes of 16k";
    SLOTS: Option<u64> = int(1, 1 << 40), "places that a request may start at";
    BS: Option<u64> = size(512, 1 << 24), "bytes of a request and of a slot";
    COUNT: Option<u64> = count(), "requests";
    READS: Option<u64> = int(0, 10), "reads in ten requests; at 0 no second draw is made";
    GAP: Option<u64> = time(), "time between arrivals";
    START: u64 = time() or "1us", "arrival of the first request";
    SEED: u64 = int(1, u64::MAX) or "88172645463325252", "state of the xorshift before the first draw";
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "mqsim-t",
        summary: "fixed random traces for comparisons with MQSim (xorshift addresses, constant gap)",
        source: "Marsaglia, Xorshift RNGs, J. Stat. Soft. 8(14), 2003; docs/reproductions/mqsim.md",
        params: PARAMS,
    },
    build: |params, _| Ok(Box::new(build(params)?)),
};

/// slots, bytes, requests, reads in ten, gap in ns.
const PRESETS: [(&str, [u64; 5]); 3] = [
    ("t1", [228_170_112 / 32, 16 << 10, 1_000_000, 0, 50_000]),
    ("t2", [228_170_112 / 8, 4 << 10, 1_000_000, 7, 25_000]),
    ("t3", [48_318_368 / 32, 16 << 10, 4_000_000, 0, 100_000]),
];

fn build(params: &Params) -> Result<MqsimT, ParamError> {
    let name = params.get(PRESET);
    let [slots, bs, count, reads, gap_ns] = PRESETS
        .iter()
        .find(|(preset, _)| *preset == name)
        .map(|(_, values)| *values)
        .expect("a checked choice");
    let (slots, bs) = (params.get(SLOTS).unwrap_or(slots), params.get(BS).unwrap_or(bs));
    let (count, reads) = (params.get(COUNT).unwrap_or(count), params.get(READS).unwrap_or(reads));
    let gap_ns = params.get(GAP).unwrap_or(gap_ns);
    if slots.checked_mul(bs).is_none_or(|end| end > crate::gate::OFFSET_MAX) {
        return Err(params.error(SLOTS, "slots x bs below 2^49 B"));
    }
    let start_ns = params.get(START);
    check_gap(params, gap_ns, count, start_ns)?;
    Ok(MqsimT { state: params.get(SEED), slots, bs, count, reads, gap_ns, now_ns: start_ns, done: 0 })
}

struct MqsimT {
    state: u64,
    slots: u64,
    bs: u64,
    count: u64,
    reads: u64,
    gap_ns: u64,
    now_ns: u64,
    done: u64,
}

impl MqsimT {
    #[inline]
    fn draw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Iterator for MqsimT {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done == self.count {
            return None;
        }
        let slot = self.draw() % self.slots;
        let is_read = self.reads > 0 && (self.draw() >> 20) % 10 < self.reads;
        let at = SimTime(self.now_ns);
        self.now_ns += self.gap_ns;
        self.done += 1;
        let op = if is_read { TraceOp::Read } else { TraceOp::Write };
        Some(Ok(IoRecord { at, offset: slot * self.bs, len: self.bs, volume: 0, hint: 0, op }))
    }
}

impl TraceReader for MqsimT {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo { records: self.done, ..info_of("mqsim-t", self.count, self.gap_ns > 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, Target, open};

    fn load(text: &str) -> Vec<IoRecord> {
        open(text, &OpenOptions::default(), Target::NONE).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs of xorshift64 (13, 7, 17) from this seed, as in Marsaglia's paper and everywhere
        // since.
        let first = load("mqsim-t:count=2,slots=1099511627776,bs=512,start=5ns,gap=7ns");
        let draws = [8_748_534_153_485_358_512u64, 3_040_900_993_826_735_515];
        for (record, draw) in first.iter().zip(draws) {
            assert_eq!(record.offset, draw % (1 << 40) * 512);
        }
        assert_eq!(first.iter().map(|r| r.at.as_ns()).collect::<Vec<_>>(), [5, 12]);
    }

    #[test]
    fn the_presets_have_the_published_size_and_mix() {
        let t2 = load("mqsim-t:preset=t2");
        assert_eq!((t2.len(), t2[0].at.as_ns(), t2[1].at.as_ns()), (1_000_000, 1000, 26_000));
        // MQSim reports 299,675 page programs for T2, one for each write.
        assert_eq!(t2.iter().filter(|r| r.op == TraceOp::Write).count(), 299_675);
        assert!(t2.iter().all(|r| r.len == 4096 && r.offset + r.len <= 228_170_112 * 512));
        let t1 = load("mqsim-t:count=1000");
        assert!(t1.iter().all(|r| r.op == TraceOp::Write && r.len == 16_384 && r.offset % 16_384 == 0));
        assert_eq!(t1[999].at.as_ns(), 1000 + 999 * 50_000);
    }
}
