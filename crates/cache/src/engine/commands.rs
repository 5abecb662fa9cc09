//! Commands of hosts, from their arrival to the answer.

use super::timeline::{Gather, Moment};
use super::{Cache, CacheError, Result};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Op, SimTime, StoreError, Token};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Executes a command on a volume, issued at `at`. The token completes when it is answered.
    ///
    /// After an error of a disk, the extent of the command may be written in part; everything else is as
    /// before. Errors of the fast store are not the caller's, unless something was lost
    /// ([`Cache::health`], [`Cache::lost`]): a read of that fails, and the next flush of its volume once.
    ///
    /// What a durable command wrote survives a loss of power as far as the design keeps it: in the cache with
    /// its metadata where it became dirty, and on the disk of this volume where it went there. No other disk
    /// is flushed for it, but for those that a block has left to since the last commit.
    pub fn submit(
        &mut self,
        volume: u16,
        mut command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token> {
        self.arrive(at)?;
        self.check(volume, command, &payload)?;
        let host = &mut self.volumes[usize::from(volume)].host;
        host.count(command, self.directory.shape.block_bytes());
        let is_durable = std::mem::take(&mut command.is_durable);
        self.meter.begin(volume, command);
        if is_durable && command.op == Op::Write {
            self.meter.own().forced_writes += 1;
        }
        self.writeback.last_request = self.timeline.now();
        let mut payload = payload;
        self.begin_tries();
        let mut done = self.execute(volume, command, &mut payload, is_durable);
        if let Err(CacheError::Fast(error)) = done {
            done = self.execute_again(volume, command, &mut payload, is_durable, error);
        }
        self.meter.end(command.op);
        let token = done?;
        if matches!(command.op, Op::Read | Op::Write) {
            self.time_answer(token);
        }
        self.after_command();
        Ok(token)
    }

    /// After an error of the fast store.
    #[cold]
    fn execute_again(
        &mut self,
        volume: u16,
        command: BlockCommand,
        payload: &mut Payload<'_>,
        is_durable: bool,
        error: StoreError,
    ) -> Result<Token> {
        let is_change = !matches!(command.op, Op::Read | Op::Flush);
        self.failures.given_up.under_way = is_change.then_some(volume);
        let mut failure = error;
        let done = loop {
            if let Err(error) = self.degrade(failure.clone()) {
                break Err(error);
            }
            self.meter.try_again();
            match self.execute(volume, command, payload, is_durable) {
                Err(CacheError::Fast(error)) => failure = error,
                done => break done,
            }
        };
        self.failures.given_up.under_way = None;
        if is_change && done.is_ok() {
            self.record_given_up(volume)?;
        } else if is_change {
            self.lose_change(volume, command.extent, failure);
        }
        done
    }

    #[inline]
    fn execute(
        &mut self,
        volume: u16,
        command: BlockCommand,
        payload: &mut Payload<'_>,
        is_durable: bool,
    ) -> Result<Token> {
        self.has_written_disk = false;
        if command.op == Op::Read && !self.failures.lost.is_empty() {
            self.failures.check(volume, command.extent)?;
        }
        let is_change = !matches!(command.op, Op::Read | Op::Flush);
        if is_change && self.failures.bypassed.is_some() {
            self.ensure_recorded(volume)?;
        }
        match (command.op, payload) {
            (Op::Read, Payload::Read(bytes)) => self.read(volume, command, Some(bytes)),
            (Op::Read, _) => self.read(volume, command, None),
            (Op::Write, Payload::Write(bytes)) => self.write(volume, command, Some(bytes)),
            (Op::Write, _) => self.write(volume, command, None),
            (Op::Trim | Op::WriteZeroes, _) => self.trim(volume, command),
            (Op::Flush, _) => self.flush(volume),
        }?;
        if is_change && !self.failures.lost.is_empty() {
            self.failures.find_again(volume, command.extent);
        }
        if is_durable {
            self.persist(volume)?;
        }
        if self.durability.commits.is_due {
            let committed = self.commit_together()?;
            self.wait(committed);
        } else if self.durability.is_long() {
            self.commit()?;
        }
        Ok(self.timeline.answer(&mut self.answer))
    }

    /// A command comes at `at`: starts what is due until then.
    #[inline]
    pub(super) fn arrive(&mut self, at: SimTime) -> Result<()> {
        self.answer = Gather::default();
        let has_cleaning =
            self.writeback.has_policies() && (self.writeback.again() <= at || !self.timeline.is_quiet());
        if has_cleaning || self.durability.commits.awaited > 0 {
            return self.pass(at, false);
        }
        self.timeline.arrive(at);
        self.settle_fills()
    }

    /// Tells the metadata of the slots whose filling has begun.
    #[inline]
    pub(super) fn settle_fills(&mut self) -> Result<()> {
        loop {
            match self.settle_all_fills() {
                Err(CacheError::Fast(error)) => self.degrade(error)?,
                done => return done,
            }
            if self.durability.commits.open.is_none() {
                return Ok(());
            }
            // Answers wait for it.
            self.durability.commits.is_due = true;
        }
    }

    fn settle_all_fills(&mut self) -> Result<()> {
        while let Some(slot) = self.timeline.news.take_filled() {
            self.note_filled(slot)?;
        }
        if self.timeline.news.has_noticed() {
            self.take_notices();
        }
        if self.timeline.news.has_errors() {
            self.note_late_errors();
        }
        if self.durability.commits.is_due {
            self.commit_together()?;
        }
        Ok(())
    }

    fn check(&self, volume: u16, command: BlockCommand, payload: &Payload<'_>) -> Result<()> {
        let place = self.volumes.get(usize::from(volume)).filter(|volume| volume.is_attached);
        let place = place.ok_or(CacheError::NoVolume(volume))?;
        if command.op == Op::Flush {
            return Ok(());
        }
        let (extent, capacity) = (command.extent, self.directory.capacity(volume));
        let is_inside = extent.offset.checked_add(extent.len).is_some_and(|end| end <= capacity);
        if !is_inside || extent.len == 0 {
            return Err(CacheError::OutOfRange { volume, extent, capacity });
        }
        let unit = place.unit;
        if !extent.offset.is_multiple_of(u64::from(unit)) || !extent.len.is_multiple_of(u64::from(unit)) {
            return Err(CacheError::Unaligned { extent, unit });
        }
        let got = match (command.op, payload) {
            (Op::Read, Payload::Read(bytes)) => bytes.len() as u64,
            (Op::Write, Payload::Write(bytes)) => bytes.len() as u64,
            (Op::Write, _) if self.buffers.keeps_bytes => 0,
            _ => extent.len,
        };
        if got == extent.len { Ok(()) } else { Err(CacheError::Payload { expected: extent.len, got }) }
    }

    /// Makes durable what was written to the volume so far: the disk's part, the cache's part, and the
    /// metadata.
    fn flush(&mut self, volume: u16) -> Result<()> {
        if let Some(error) = self.take_late_error() {
            return Err(error);
        }
        let concerns_disk = self.durability.concerns_disk(volume);
        if concerns_disk {
            // What relies on it is settled by this commit.
            self.durability.need_flush(&self.timeline, volume);
        }
        let committed = self.commit()?;
        self.wait(committed);
        let disk = if concerns_disk {
            self.durability.flush_disk(&self.directory.slots, &mut self.timeline, volume)
        } else {
            Ok(self.durability.disks[usize::from(volume)].host_flushed)
        };
        self.flush_fast_with(committed)?;
        self.take_failure(volume)?;
        self.wait(disk?);
        self.record_given_up(volume)
    }

    /// The answer waits for a flush of the fast store with a commit in it, which has one of its own in
    /// designs that flush for commits.
    fn flush_fast_with(&mut self, committed: Moment) -> Result<()> {
        let after = if self.durability.rules.flushing.covers_cache() { Moment::PAST } else { committed };
        let flushed = self.flush_fast(after)?;
        self.wait(flushed);
        Ok(())
    }

    /// Makes durable what the command under way has written.
    #[cold]
    fn persist(&mut self, volume: u16) -> Result<()> {
        if self.has_written_disk {
            self.durability.need_flush(&self.timeline, volume);
        }
        let committed = self.commit()?;
        self.wait(committed);
        self.flush_fast_with(committed)?;
        if self.has_written_disk {
            let disk = self.durability.flush_disk(&self.directory.slots, &mut self.timeline, volume)?;
            self.wait(disk);
        }
        self.record_given_up(volume)
    }
}
