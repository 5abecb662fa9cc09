//! Predictable latency mode of one NVM set (NVMe 2.0, section 8.16; features 13h, 14h, logs 0Ah, 0Bh).
//!
//! A set is in a deterministic window (DTWIN) or a non-deterministic one (NDWIN). In a DTWIN the device does
//! no work of its own, as long as the host stays within typical reads, typical writes and a longest time;
//! beyond any of them the device leaves the window by itself. What a set can promise comes from its
//! translation layer: writes from the room that it keeps for putting collection off.
//!
//! Where the standard leaves a choice: reads count as 4 KiB units by size, whatever their order; a command
//! that would go beyond a limit ends the window before it runs, so it is itself not predictable any more; an
//! NDWIN shows the estimates of a window that would begin at once.

use nandscape_core::{SimTime, state, state_of_enum};

/// Event bits of feature 13h and log 0Ah.
pub mod event {
    /// The reads estimate has fallen to its threshold.
    pub const READS_WARNING: u16 = 1;
    /// The writes estimate has fallen to its threshold.
    pub const WRITES_WARNING: u16 = 1 << 1;
    /// The time estimate has fallen to its threshold.
    pub const TIME_WARNING: u16 = 1 << 2;
    /// The device left the window because a typical value or the longest time was exceeded.
    pub const EXCEEDED: u16 = 1 << 14;
    /// The device left the window because of something it had not foreseen.
    pub const EXCURSION: u16 = 1 << 15;
    /// Bits with a meaning.
    pub const ALL: u16 = READS_WARNING | WRITES_WARNING | TIME_WARNING | EXCEEDED | EXCURSION;
}

/// Why a command of this mode fails; the names are those of the standard's status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlmError {
    /// Status 02h: no such set, a reserved value, or a set whose layer cannot put its work off.
    #[error("invalid field in command: {0}")]
    InvalidField(&'static str),
    /// Status 0Ch: a window is chosen while the mode is off.
    #[error("command sequence error: predictable latency mode is not enabled for the set")]
    CommandSequence,
}

/// What a set promises for a DTWIN and asks for between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Random 4 KiB reads of a window.
    pub reads_typical: u64,
    /// Writes of a window, in units of the optimal write size.
    pub writes_typical: u64,
    /// Longest window.
    pub time_max_ms: u64,
    /// NDWIN that the host should allow after a DTWIN that was used up.
    pub ndwin_high_ms: u64,
    /// NDWIN that must pass before the next DTWIN begins.
    pub ndwin_low_ms: u64,
    /// Optimal write size in bytes.
    pub write_bytes: u32,
}

/// The window a set is in, with the standard's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Window {
    #[default]
    Off = 0,
    Deterministic = 1,
    NonDeterministic = 2,
}

state_of_enum!(Window: Off, Deterministic, NonDeterministic);

/// Data of feature 13h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlmConfig {
    /// Events that are reported, see [`event`].
    pub enabled_events: u16,
    /// Warn when the reads estimate is at or below this.
    pub reads_threshold: u64,
    /// Warn when the writes estimate is at or below this.
    pub writes_threshold: u64,
    /// Warn when the time estimate is at or below this, in milliseconds.
    pub time_threshold_ms: u64,
}

state!(impl [] PlmConfig { saved: enabled_events, reads_threshold, writes_threshold, time_threshold_ms; });

impl PlmConfig {
    /// Length of the data.
    pub const BYTES: usize = 512;

    /// As feature 13h carries it.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut data = [0; Self::BYTES];
        data[..2].copy_from_slice(&self.enabled_events.to_le_bytes());
        for (at, value) in
            [(32, self.reads_threshold), (40, self.writes_threshold), (48, self.time_threshold_ms)]
        {
            data[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        data
    }

    /// Reads the data of a Set Features command.
    pub fn decode(data: &[u8; Self::BYTES]) -> Result<Self, PlmError> {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| data[at + i]));
        let enabled_events = u16::from_le_bytes([data[0], data[1]]);
        if enabled_events & !event::ALL != 0 {
            return Err(PlmError::InvalidField("reserved event bits are set"));
        }
        Ok(Self {
            enabled_events,
            reads_threshold: u64_at(32),
            writes_threshold: u64_at(40),
            time_threshold_ms: u64_at(48),
        })
    }
}

/// Contents of log page 0Ah.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlmLog {
    /// Present window.
    pub window: Window,
    /// Events since the log was last read without Retain Asynchronous Event.
    pub events: u16,
    /// What the set promises.
    pub budget: Budget,
    /// Reads left in this window.
    pub reads_estimate: u64,
    /// Writes left, in optimal write sizes.
    pub writes_estimate: u64,
    /// Time left, in milliseconds.
    pub time_estimate_ms: u64,
}

impl PlmLog {
    /// Length of the page.
    pub const BYTES: usize = 512;

    /// The page's bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut page = [0; Self::BYTES];
        page[0] = self.window as u8;
        page[2..4].copy_from_slice(&self.events.to_le_bytes());
        for (at, value) in [
            (32, self.budget.reads_typical),
            (40, self.budget.writes_typical),
            (48, self.budget.time_max_ms),
            (56, self.budget.ndwin_high_ms),
            (64, self.budget.ndwin_low_ms),
            (128, self.reads_estimate),
            (136, self.writes_estimate),
            (144, self.time_estimate_ms),
        ] {
            page[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        page
    }
}

/// Log page 0Bh: the sets with events, by identifier.
pub fn encode_aggregate(identifiers: &[u16]) -> Vec<u8> {
    let mut page = (identifiers.len() as u64).to_le_bytes().to_vec();
    page.extend(identifiers.iter().flat_map(|id| id.to_le_bytes()));
    page
}

/// The state machine of one set. Time comes with every call and never goes back; what is due happens first.
#[derive(Clone, Debug)]
pub struct PredictableLatency {
    budget: Budget,
    config: PlmConfig,
    window: Window,
    /// When the present window began.
    since: SimTime,
    /// A DTWIN was asked for and waits for the shortest NDWIN to pass.
    is_awaited: bool,
    reads: u64,
    written_bytes: u64,
    /// Least writes estimate shown in this DTWIN.
    writes_left: u64,
    events: u16,
    /// Warnings raised in this DTWIN: each is raised once.
    warned: u16,
    /// A set with events has been added to log 0Bh and nobody was told yet.
    is_news: bool,
}

state!(impl [] PredictableLatency {
    saved: config, window, since, is_awaited, reads, written_bytes, writes_left, events, warned, is_news;
    fixed: budget;
});

const MS: u64 = 1_000_000;

impl PredictableLatency {
    /// With the mode off. An NDWIN lasts at least 1 ms, so that a layer can catch up with what it put off.
    pub fn new(budget: Budget) -> Self {
        assert!(budget.ndwin_low_ms > 0 && budget.write_bytes > 0, "{budget:?}");
        Self {
            budget,
            config: PlmConfig::default(),
            window: Window::Off,
            since: SimTime::ZERO,
            is_awaited: false,
            reads: 0,
            written_bytes: 0,
            writes_left: 0,
            events: 0,
            warned: 0,
            is_news: false,
        }
    }

    /// The present window.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// What the set promises.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Feature 13h: data and enable bit.
    pub const fn config(&self) -> (PlmConfig, bool) {
        (self.config, !matches!(self.window, Window::Off))
    }

    /// Set Features 13h. Enabling begins in an NDWIN; disabling forgets what was pending.
    pub fn configure(&mut self, enable: bool, config: PlmConfig, at: SimTime) {
        self.config = config;
        if !enable {
            *self = Self { config, ..Self::new(self.budget) };
        } else if self.window == Window::Off {
            self.begin(Window::NonDeterministic, at);
        }
    }

    /// Set Features 14h: 1 for a DTWIN, begun after the shortest NDWIN if none is running, 2 for an NDWIN.
    pub fn select(&mut self, window: u8, at: SimTime) -> Result<(), PlmError> {
        if self.window == Window::Off {
            return Err(PlmError::CommandSequence);
        }
        self.pass(at);
        match (window, self.window) {
            (1, Window::Deterministic) => {}
            (1, _) => {
                self.is_awaited = true;
                self.pass(at);
            }
            (2, Window::Deterministic) => self.begin(Window::NonDeterministic, at),
            (2, _) => self.is_awaited = false,
            _ => return Err(PlmError::InvalidField("window select is neither 1 nor 2")),
        }
        Ok(())
    }

    /// When the window next changes by itself: an awaited DTWIN begins, or the longest DTWIN is over.
    pub fn due(&self) -> Option<SimTime> {
        match self.window {
            Window::NonDeterministic if self.is_awaited => Some(self.since + self.budget.ndwin_low_ms * MS),
            Window::Deterministic => Some(self.since + (self.budget.time_max_ms * MS + 1)),
            _ => None,
        }
    }

    /// Lets time pass. What is due happens now: a device notices when it looks.
    pub fn pass(&mut self, at: SimTime) {
        let is_due = self.due().is_some_and(|due| at >= due);
        match self.window {
            Window::NonDeterministic if is_due => self.begin(Window::Deterministic, at),
            Window::Deterministic if is_due => self.leave(event::EXCEEDED, at),
            Window::Deterministic => self.warn_of_time(at),
            _ => {}
        }
    }

    /// A read of so many bytes is about to run. Gives whether the set is in a DTWIN for it.
    pub fn read(&mut self, bytes: u64, at: SimTime) -> bool {
        self.pass(at);
        if self.window == Window::Deterministic {
            self.reads += bytes.div_ceil(4096);
            if self.reads > self.budget.reads_typical {
                self.leave(event::EXCEEDED, at);
            } else if self.budget.reads_typical - self.reads <= self.config.reads_threshold {
                self.raise_once(event::READS_WARNING);
            }
        }
        self.window == Window::Deterministic
    }

    /// A write of so many bytes is about to run, and the layer can still take `room_bytes` without
    /// collecting. Gives whether the set is in a DTWIN for it.
    pub fn write(&mut self, bytes: u64, room_bytes: u64, at: SimTime) -> bool {
        self.pass(at);
        if self.window == Window::Deterministic {
            self.written_bytes += bytes;
            let size = u64::from(self.budget.write_bytes);
            let used = self.written_bytes.div_ceil(size);
            if used > self.budget.writes_typical {
                self.leave(event::EXCEEDED, at);
            } else if room_bytes < bytes {
                self.leave(event::EXCURSION, at);
            } else {
                let left = (self.budget.writes_typical - used).min((room_bytes - bytes) / size);
                self.writes_left = self.writes_left.min(left);
                if self.writes_left <= self.config.writes_threshold {
                    self.raise_once(event::WRITES_WARNING);
                }
            }
        }
        self.window == Window::Deterministic
    }

    /// The device had to do something in a DTWIN that it had not foreseen.
    pub fn excursion(&mut self, at: SimTime) {
        self.pass(at);
        if self.window == Window::Deterministic {
            self.leave(event::EXCURSION, at);
        }
    }

    /// The room that the layer has as a DTWIN begins: the writes estimate starts from it.
    pub fn note_room(&mut self, room_bytes: u64) {
        self.writes_left = self.writes_left.min(room_bytes / u64::from(self.budget.write_bytes));
    }

    /// Get Log Page 0Ah. Without `retain` the events are forgotten, and the set leaves log 0Bh.
    pub fn log(&mut self, retain: bool, at: SimTime) -> PlmLog {
        self.pass(at);
        let is_deterministic = self.window == Window::Deterministic;
        let elapsed_ms = if is_deterministic { at.since(self.since).0.div_ceil(MS) } else { 0 };
        let log = PlmLog {
            window: self.window,
            events: self.events,
            budget: self.budget,
            reads_estimate: self.budget.reads_typical - if is_deterministic { self.reads } else { 0 },
            writes_estimate: if is_deterministic { self.writes_left } else { self.budget.writes_typical },
            time_estimate_ms: self.budget.time_max_ms.saturating_sub(elapsed_ms),
        };
        if !retain {
            self.events = 0;
            self.is_news = false;
        }
        log
    }

    /// Whether the set is in log 0Bh.
    pub const fn has_events(&self) -> bool {
        self.events != 0
    }

    /// Whether the set came into log 0Bh since the last call: an asynchronous event is due.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    fn begin(&mut self, window: Window, at: SimTime) {
        self.window = window;
        self.since = at;
        self.is_awaited = false;
        self.reads = 0;
        self.written_bytes = 0;
        self.writes_left = self.budget.writes_typical;
        self.warned = 0;
    }

    fn leave(&mut self, why: u16, at: SimTime) {
        self.begin(Window::NonDeterministic, at);
        self.raise(why);
    }

    fn warn_of_time(&mut self, at: SimTime) {
        let left = (self.since + self.budget.time_max_ms * MS).0 - at.0;
        if left <= self.config.time_threshold_ms.saturating_mul(MS) {
            self.raise_once(event::TIME_WARNING);
        }
    }

    fn raise_once(&mut self, bit: u16) {
        if self.warned & bit == 0 {
            self.warned |= bit;
            self.raise(bit);
        }
    }

    fn raise(&mut self, bit: u16) {
        if self.config.enabled_events & bit != 0 {
            self.is_news |= self.events == 0;
            self.events |= bit;
        }
    }
}
