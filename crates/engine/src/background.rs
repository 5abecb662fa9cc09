//! What is to happen without a request.

use crate::{Clock, Engine};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the stack is given its idle time, and recorded commands are passed on.
const TICK: Duration = Duration::from_millis(100);
/// How often samples are taken and warnings given.
const SAMPLE: Duration = Duration::from_secs(1);
/// A warning is not repeated earlier.
const REPEAT: Duration = Duration::from_secs(30);
/// Share of late answers in a second from which the host does not keep the pace.
const LATE_SHARE: f64 = 0.01;

/// A thread that gives the stack its idle time, takes samples for [`Engine::stat`], and tells what somebody
/// should know. Ends when dropped.
#[derive(Debug)]
pub struct Background {
    /// Dropped to end the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts it. `tell` is called with warnings: answers begin to be late, a set has become read-only,
    /// checksums do not match, a recording ended with an error.
    pub fn start(engine: &Arc<Engine>, mut tell: impl FnMut(&str) + Send + 'static) -> std::io::Result<Self> {
        let (alive, ended) = channel::<()>();
        let engine = Arc::clone(engine);
        let work = move || {
            let (mut watch, mut sampled) = (Watch::default(), Instant::now());
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                engine.tick();
                if sampled.elapsed() >= SAMPLE {
                    sampled = Instant::now();
                    engine.sample();
                    watch.look(&engine, &mut tell);
                }
            }
        };
        let thread = std::thread::Builder::new().name("background".into()).spawn(work)?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by itself.
            let _ = thread.join();
        }
    }
}

impl Engine {
    /// Gives the stack the idle time since the last request, and passes recorded commands on.
    fn tick(&self) {
        let mut stack = self.lock();
        stack.idle(Instant::now());
        if let Some(tap) = &mut stack.tap {
            tap.hand_over();
        }
    }
}

/// What was seen last, so that only what is new is told.
#[derive(Debug, Default)]
struct Watch {
    answers: u64,
    late: u64,
    told_late: Option<Instant>,
    checksum_errors: u64,
    read_only: u16,
    told_recording: bool,
}

impl Watch {
    fn look(&mut self, engine: &Engine, tell: &mut dyn FnMut(&str)) {
        if engine.clock() == Clock::Paced {
            self.pace(engine, tell);
        }
        let (sets, health, recording) = {
            let stack = engine.lock();
            let recording = stack.tap.as_ref().map(crate::record::Tap::stat);
            let inside = stack.model.subsystem.inspect();
            let sets: Vec<_> = (0..inside.sets())
                .filter_map(|set| Some((set, inside.layer(set).read_only()?.to_owned())))
                .collect();
            let health = (inside.sets() > 0).then(|| inside.device(0).tally().health);
            (sets, health.unwrap_or_default(), recording)
        };
        for (set, why) in sets.iter().skip(usize::from(self.read_only)) {
            tell(&format!("set {set} is read-only: {why}"));
        }
        self.read_only = self.read_only.max(sets.len() as u16);
        if health.checksum_errors > self.checksum_errors {
            tell(&format!("{} pages failed their checksum so far", health.checksum_errors));
            self.checksum_errors = health.checksum_errors;
        }
        let error = recording.and_then(|recording| Some((recording.path, recording.error?)));
        if let Some((path, error)) = error.as_ref().filter(|_| !self.told_recording) {
            tell(&format!("the recording to {path} has ended: {error}"));
        }
        self.told_recording = error.is_some();
    }

    fn pace(&mut self, engine: &Engine, tell: &mut dyn FnMut(&str)) {
        let pace = engine.pace_stat();
        // Counters that went back were reset.
        let answers = pace.answers.checked_sub(self.answers).unwrap_or(pace.answers);
        let late = pace.late.checked_sub(self.late).unwrap_or(pace.late);
        (self.answers, self.late) = (pace.answers, pace.late);
        let is_late = answers > 0 && late as f64 / answers as f64 > LATE_SHARE;
        if is_late && self.told_late.is_none_or(|told| told.elapsed() >= REPEAT) {
            self.told_late = Some(Instant::now());
            let ms = |ns: u64| ns as f64 / 1e6;
            tell(&format!(
                "the host does not keep the pace: {late} of {answers} answers in the last second were late \
                 (p50 {:.3} ms, p99 {:.3} ms, at most {:.3} ms since the start)",
                ms(pace.late_ns.p50),
                ms(pace.late_ns.p99),
                ms(pace.late_ns.max)
            ));
        }
    }
}
