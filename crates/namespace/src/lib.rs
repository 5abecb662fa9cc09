//! What a host sees over translation layers: plain block commands over one ([`BlockNamespace`]), or several
//! namespaces over NVM sets ([`NvmSubsystem`], [`sets`]), and the directives that tell writes apart
//! ([`directives`]). [`NamespaceStore`] is a namespace as one side of a cache.

mod block;
pub mod directives;
pub mod sets;
mod sole;
mod store;
mod subsystem;

pub use block::BlockNamespace;
pub use sole::Sole;
pub use store::NamespaceStore;
pub use subsystem::{
    NamespaceSpec, NvmSet, NvmSetError, NvmSubsystem, SetFacts, SharedDevice, SubsystemError,
};
