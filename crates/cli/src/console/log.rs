//! What a server says, written from a thread of its own, so that it never waits for whoever reads it.
//!
//! * A queue of bounded size stands before the thread. What finds it full is left out and counted.
//! * Messages of a kind that strangers can bring about are bounded in number; how many were left out is said.
//! * No message steers a terminal, or looks like two.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of messages that wait to be written.
const QUEUE_BYTES: usize = 256 << 10;

/// Messages of one kind in [`SPAN`]; more are counted.
const MOST: u32 = 5;

/// The span in which messages of one kind are counted.
const SPAN: Duration = Duration::from_secs(10);

/// Lines on their way to a file that nobody may read.
#[derive(Debug)]
pub struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<String>,
    bytes: usize,
    /// The thread writes what it took from the queue.
    is_writing: bool,
    /// Messages that found the queue full.
    left_out: u64,
    kinds: BTreeMap<&'static str, Kind>,
    /// The last write failed; the next message is a reason to try again.
    is_stuck: bool,
}

/// Messages of one kind in the span that began last.
#[derive(Debug)]
struct Kind {
    begin: Instant,
    count: u32,
    left_out: u64,
}

impl Log {
    /// Writes to `file` from now on. `failed` is called with the first error; what could not be written
    /// is counted.
    pub fn start(
        mut file: Box<dyn Write + Send>,
        failed: impl FnOnce(&io::Error) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let log = Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        let theirs = Arc::clone(&log);
        let work = move || theirs.write(&mut *file, failed);
        std::thread::Builder::new().name("log".into()).spawn(work)?;
        Ok(log)
    }

    /// A panic elsewhere leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Text that is ours, with its ends of lines.
    pub fn push(&self, text: String) {
        self.lock().push(text);
        self.changed.notify_all();
    }

    /// A message of a kind that may be frequent.
    pub fn push_of(&self, kind: &'static str, now: Instant, text: impl FnOnce() -> String) {
        let mut state = self.lock();
        state.close_spans(Some(now));
        let of = state.kinds.entry(kind).or_insert(Kind { begin: now, count: 0, left_out: 0 });
        if of.count < MOST {
            of.count += 1;
            state.push(text());
        } else {
            of.left_out += 1;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until everything is written, at most so long.
    pub fn drain(&self, most: Duration) {
        let deadline = Instant::now() + most;
        let mut state = self.lock();
        state.close_spans(None);
        self.changed.notify_all();
        while state.is_writing || !state.queue.is_empty() || (state.left_out > 0 && !state.is_stuck) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes what comes, as long as the process lives.
    fn write(&self, file: &mut dyn Write, failed: impl FnOnce(&io::Error)) {
        let mut failed = Some(failed);
        let mut state = self.lock();
        loop {
            state.close_spans(Some(Instant::now()));
            if let Some(text) = state.next() {
                state.is_writing = true;
                drop(state);
                // Here it may wait for its reader, for ever.
                let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
                if let Err(error) = &written
                    && let Some(failed) = failed.take()
                {
                    failed(error);
                }
                state = self.lock();
                state.is_writing = false;
                if written.is_err() {
                    state.fail();
                }
                self.changed.notify_all();
                continue;
            }
            let due =
                state.kinds.values().filter(|kind| kind.left_out > 0).map(|kind| kind.begin + SPAN).min();
            state = match due {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl State {
    fn push(&mut self, text: String) {
        self.is_stuck = false;
        // One alone may be longer.
        if self.bytes + text.len() > QUEUE_BYTES && !self.queue.is_empty() {
            self.left_out += 1;
            return;
        }
        self.bytes += text.len();
        self.queue.push_back(text);
    }

    fn next(&mut self) -> Option<String> {
        if let Some(text) = self.queue.pop_front() {
            self.bytes -= text.len();
            return Some(text);
        }
        if self.is_stuck {
            return None;
        }
        match std::mem::take(&mut self.left_out) {
            0 => None,
            count => Some(message(&format!("{count} messages left out: they could not be written in time"))),
        }
    }

    /// Says what was left out of spans that are over at `now`, or of all.
    fn close_spans(&mut self, now: Option<Instant>) {
        let is_over = |kind: &Kind| now.is_none_or(|now| now.saturating_duration_since(kind.begin) >= SPAN);
        let mut said = Vec::new();
        self.kinds.retain(|name, kind| {
            let is_over = is_over(kind);
            if is_over && kind.left_out > 0 {
                said.push(message(&format!("{name}: {} more left out", kind.left_out)));
            }
            !is_over
        });
        for text in said {
            self.push(text);
        }
    }

    /// What was to be written, and what waits, is lost.
    fn fail(&mut self) {
        self.left_out += 1 + self.queue.len() as u64;
        self.queue.clear();
        self.bytes = 0;
        self.is_stuck = true;
    }
}

/// A message as a line.
pub fn message(text: &str) -> String {
    format!("nandscape: {}\n", printable(text))
}

/// The same text without what steers a terminal or ends a line, which is written as an escape of Rust
/// instead.
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, char| {
        match char {
            '"' | '\'' | '\\' => out.push(char),
            char => out.extend(char.escape_debug()),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A file that takes a text when it is allowed to.
    struct Gate {
        allowed: Receiver<()>,
        written: Sender<String>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.written.send(String::from_utf8(bytes.to_vec()).unwrap()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Arc<Log>, Sender<()>, Receiver<String>) {
        let ((allow, allowed), (written, lines)) = (channel(), channel());
        let gate = Gate { allowed, written };
        (Log::start(Box::new(gate), |_| ()).unwrap(), allow, lines)
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read_and_what_it_missed_is_counted() {
        let (log, allow, lines) = gated();
        let line = |number: usize| format!("{number:0999}\n");
        // Returns, although nothing is written.
        (0..1000).for_each(|number| log.push(line(number)));
        log.drain(Duration::from_millis(1));
        let mut seen = Vec::new();
        let counted = loop {
            allow.send(()).unwrap();
            let text = lines.recv().unwrap();
            match text.trim_end().parse::<usize>() {
                Ok(number) => seen.push(number),
                Err(_) => break text,
            }
        };
        let missed = 1000 - seen.len();
        assert_eq!(
            counted,
            format!("nandscape: {missed} messages left out: they could not be written in time\n")
        );
        assert!(
            seen.is_sorted() && (262..=263).contains(&seen.len()),
            "the queue, and one in the hand: {seen:?}"
        );
        // It goes on.
        log.push("after\n".to_owned());
        allow.send(()).unwrap();
        assert_eq!(lines.recv().unwrap(), "after\n");
    }

    #[test]
    fn messages_of_one_kind_are_bounded_in_a_span_and_the_rest_is_counted() {
        let mut state = State::default();
        let log = Log { state: Mutex::default(), changed: Condvar::new() };
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        for number in 0..100 {
            log.push_of("rude", at(number), || format!("rude {number}\n"));
        }
        log.push_of("slow", at(100), || "slow\n".to_owned());
        std::mem::swap(&mut state.queue, &mut log.lock().queue);
        assert_eq!(state.queue, ["rude 0\n", "rude 1\n", "rude 2\n", "rude 3\n", "rude 4\n", "slow\n"]);
        // The next one after the span says what was left out of it, and counts from one again.
        log.push_of("rude", at(10_000), || "again\n".to_owned());
        assert_eq!(log.lock().queue, ["nandscape: rude: 95 more left out\n", "again\n"]);
        (0..10).for_each(|_| log.push_of("rude", at(10_001), || "more\n".to_owned()));
        log.lock().close_spans(None);
        assert_eq!(log.lock().queue.back().unwrap(), "nandscape: rude: 6 more left out\n");
    }

    #[test]
    fn a_message_steers_no_terminal_and_is_one_line() {
        let text = "'a' \"b\" \\ \x1b]0;owned\x07\r\nnandscape: error: x\t\u{9b}31m\u{202e}\u{fffd} ü 文";
        let said = message(text);
        assert_eq!(
            said,
            "nandscape: 'a' \"b\" \\ \\u{1b}]0;owned\\u{7}\\r\\nnandscape: error: x\\t\\u{9b}31m\\u{202e}\u{fffd} ü 文\n"
        );
        assert!(said.trim_end_matches('\n').chars().all(|char| !char.is_control()));
    }

    /// A file with room for nothing, until there is some.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<Option<String>>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match &mut *self.0.lock().unwrap() {
                None => Err(io::ErrorKind::StorageFull.into()),
                Some(text) => {
                    text.push_str(std::str::from_utf8(bytes).unwrap());
                    Ok(bytes.len())
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_counted_when_there_is_room_again() {
        let (disk, (told, errors)) = (Disk::default(), channel());
        let tell = move |error: &io::Error| told.send(error.kind()).unwrap();
        let log = Log::start(Box::new(disk.clone()), tell).unwrap();
        for number in 0..3 {
            log.push(format!("{number}\n"));
            // Nobody waits for what fails.
            log.drain(Duration::from_secs(3600));
        }
        assert_eq!(errors.recv().unwrap(), io::ErrorKind::StorageFull);
        assert!(errors.recv().is_err(), "told once");
        *disk.0.lock().unwrap() = Some(String::new());
        log.push("room\n".to_owned());
        log.drain(Duration::from_secs(3600));
        let counted = "nandscape: 3 messages left out: they could not be written in time\n";
        assert_eq!(disk.0.lock().unwrap().as_deref(), Some(&*format!("room\n{counted}")));
    }
}
