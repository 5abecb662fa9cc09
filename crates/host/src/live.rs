//! A policy in front of a served device: sets the stream of every write that clients send.

use crate::policy::{PolicySetup, StreamPolicy, WriteFacts};
use nandscape_core::command::Payload;
use nandscape_core::{Clocked, Command, Hint, Layered, Op, Origin, SimTime, Submitted, Subsystem};

/// A subsystem whose writes have the streams that a policy chose, one policy for each namespace. All else
/// passes unchanged. A write beyond the end of its namespace is refused below, and no policy hears of it.
pub struct Live {
    inner: Box<dyn Subsystem + Send>,
    policies: Vec<Box<dyn StreamPolicy>>,
    setup: PolicySetup,
}

impl Live {
    /// Lets policies, one for each namespace of `inner`, choose among the streams of `setup`.
    pub fn new(
        inner: Box<dyn Subsystem + Send>,
        policies: Vec<Box<dyn StreamPolicy>>,
        setup: PolicySetup,
    ) -> Self {
        assert_eq!(inner.namespaces().len(), policies.len(), "a policy for each namespace");
        Self { inner, policies, setup }
    }
}

nandscape_core::no_state!(impl [] Live: "a stream policy of a served device (host)");

impl Layered for Live {
    fn below(&self) -> &dyn Subsystem {
        &*self.inner
    }

    fn below_mut(&mut self) -> &mut dyn Subsystem {
        &mut *self.inner
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        let Command::Block(mut command) = command else {
            return self.inner.submit(namespace, command, payload, at);
        };
        let extent = command.extent;
        if extent.end() <= self.inner.namespaces()[namespace as usize].capacity_bytes {
            let policy = &mut self.policies[namespace as usize];
            match command.op {
                Op::Write if extent.len > 0 => {
                    let origin = Origin { volume: namespace, ..Origin::default() };
                    let (offset, len, hint) = (extent.offset, extent.len, command.hint.0);
                    let stream = policy.assign(&WriteFacts { at, offset, len, hint, origin });
                    assert!(stream <= self.setup.streams, "stream {stream} of {}", self.setup.streams);
                    command.hint = Hint(self.setup.id(stream));
                }
                Op::Trim | Op::WriteZeroes => policy.trimmed(extent.offset, extent.len),
                _ => {}
            }
        }
        self.inner.submit(namespace, command.into(), payload, at)
    }
}

impl Clocked for Live {
    nandscape_core::delegate_clock!(self, self.inner);
}
