//! A RAM disk. Pages are allocated when first written and freed by trims, or all of them by detaching it.

use crate::base::{Base, of_base};
use crate::contents::{Keep, PAGE};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{Applied, BlockCommand, Clocked, Op, SimTime, Store, StoreError, StoreResult, Token};

/// How fast memory is copied. Requests are served one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamSpeed {
    /// Time of a request besides copying, in nanoseconds.
    pub request_ns: u64,
    /// What a request costs more that does not begin where the one before ended, in nanoseconds.
    pub jump_ns: u64,
    /// Bytes per second copied out.
    pub read_bytes_per_s: u64,
    /// Bytes per second copied in.
    pub write_bytes_per_s: u64,
}

/// A dynamic, volatile RAM disk [cache-article rapiddisk].
#[derive(Debug)]
pub struct RamDisk {
    base: Base,
    speed: RamSpeed,
    free_at: u64,
    last_end: u64,
    is_detached: bool,
}

impl RamDisk {
    /// An empty RAM disk. A block is 512 bytes. Panics if the capacity is not whole blocks, or a rate is 0.
    pub fn new(capacity_bytes: u64, speed: RamSpeed, keep: Keep) -> Self {
        assert!(speed.read_bytes_per_s > 0 && speed.write_bytes_per_s > 0, "a rate is 0: {speed:?}");
        Self {
            base: Base::new(capacity_bytes, 512, keep),
            speed,
            free_at: 0,
            last_end: u64::MAX,
            is_detached: false,
        }
    }

    /// Pages allocated since it was made; freeing does not lower it.
    pub const fn allocations(&self) -> u64 {
        self.base.contents.allocations
    }

    /// Frees everything and gives the bytes freed. What is submitted from now on finds the device gone.
    pub fn detach(&mut self) -> u64 {
        self.is_detached = true;
        self.base.contents.clear() * PAGE
    }

    /// Loses power: it is there as before, and empty.
    pub fn lose_power(&mut self) {
        self.base.contents.clear();
        self.last_end = u64::MAX;
    }

    fn service_ns(&mut self, command: BlockCommand) -> u64 {
        let rate = match command.op {
            Op::Read => self.speed.read_bytes_per_s,
            Op::Write => self.speed.write_bytes_per_s,
            Op::Trim | Op::WriteZeroes => return self.speed.request_ns,
            Op::Flush => return 0,
        };
        let is_jump = self.last_end != command.extent.offset;
        self.last_end = command.extent.end();
        self.speed.request_ns
            + if is_jump { self.speed.jump_ns } else { 0 }
            + crate::transfer_ns(command.extent.len, rate)
    }
}

impl Store for RamDisk {
    of_base!();

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        if self.is_detached {
            return Err(StoreError::Gone { detail: "the RAM disk is detached".to_owned() });
        }
        self.base.take(command, payload)?;
        Ok(Applied::default())
    }

    fn start(&mut self, command: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        self.free_at = self.free_at.max(at.0) + self.service_ns(command);
        Ok(Token(self.free_at))
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        Ok(Token(self.free_at.max(at.0)))
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.base.counts = HostCounts::default();
        self.free_at = at.0;
    }
}

impl Clocked for RamDisk {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::{Extent, Hint};

    const SPEED: RamSpeed = RamSpeed {
        request_ns: 1000,
        jump_ns: 500,
        read_bytes_per_s: 4_096_000_000,
        write_bytes_per_s: 2_048_000_000,
    };

    impl RamDisk {
        fn used_bytes(&self) -> u64 {
            self.base.contents.pages * PAGE
        }
    }

    fn command(op: Op, offset: u64, len: u64) -> BlockCommand {
        BlockCommand::new(op, Extent::new(offset, len), Hint::default())
    }

    #[test]
    fn memory_is_used_only_for_what_was_written() {
        // [cache-article rapiddisk]: 1024 MB are 1,073,741,824 bytes.
        let mut disk = RamDisk::new(1024 << 20, SPEED, Keep::Bytes);
        assert_eq!((disk.capacity_bytes(), disk.used_bytes()), (1_073_741_824, 0));
        let mut bytes = [9; 8192];
        disk.submit(command(Op::Read, 1 << 20, 8192), Payload::Read(&mut bytes), SimTime(0)).unwrap();
        assert_eq!((bytes, disk.used_bytes()), ([0; 8192], 0), "a read allocates nothing");
        for _ in 0..2 {
            disk.submit(command(Op::Write, 1 << 20, 8192), Payload::Write(&[3; 8192]), SimTime(0)).unwrap();
        }
        assert_eq!((disk.used_bytes(), disk.allocations()), (8192, 2));
        disk.submit(command(Op::Trim, 1 << 20, 4096), Payload::None, SimTime(0)).unwrap();
        assert_eq!((disk.used_bytes(), disk.allocations()), (4096, 2));
        assert_eq!(disk.detach(), 4096);
        let error = disk.submit(command(Op::Read, 0, 512), Payload::None, SimTime(0)).unwrap_err();
        assert_eq!(error.to_string(), "the device is gone: the RAM disk is detached");
    }

    #[test]
    fn power_empties_it() {
        let mut disk = RamDisk::new(1 << 20, SPEED, Keep::Bytes);
        disk.submit(command(Op::Write, 0, 512), Payload::Write(&[3; 512]), SimTime(0)).unwrap();
        disk.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
        disk.lose_power();
        let mut bytes = [9; 512];
        disk.submit(command(Op::Read, 0, 512), Payload::Read(&mut bytes), SimTime(0)).unwrap();
        assert_eq!((bytes, disk.used_bytes()), ([0; 512], 0));
    }

    #[test]
    fn a_request_costs_its_overhead_its_jump_and_its_bytes() {
        let mut disk = RamDisk::new(1 << 20, SPEED, Keep::Nothing);
        let mut done =
            |op, offset, at| disk.submit(command(op, offset, 4096), Payload::None, SimTime(at)).unwrap().0;
        assert_eq!(done(Op::Read, 0, 0), 1000 + 500 + 1000);
        assert_eq!(done(Op::Read, 4096, 0), 2500 + 1000 + 1000, "in sequence, after the first");
        assert_eq!(done(Op::Write, 0, 10_000), 10_000 + 1000 + 500 + 2000);
        assert_eq!(done(Op::Flush, 0, 10_000), 13_500, "a flush waits for what came before");
    }

    #[test]
    fn refused_commands_change_nothing_and_say_why() {
        let mut disk = RamDisk::new(1 << 20, SPEED, Keep::Bytes);
        let mut refused = |offset, len| {
            disk.submit(command(Op::Write, offset, len), Payload::None, SimTime(0)).unwrap_err().to_string()
        };
        assert_eq!(refused(1 << 20, 512), "512 bytes at offset 1048576 reach past the end at 1048576");
        assert_eq!(refused(100, 512), "512 bytes at offset 100 are not whole blocks of 512 bytes");
        assert_eq!(
            refused(u64::MAX - 511, 1024),
            "1024 bytes at offset 18446744073709551104 reach past the end at 1048576"
        );
        assert_eq!((disk.used_bytes(), disk.idle_from()), (0, SimTime(0)));
    }
}
