//! What a host sees over translation layers: block commands on namespaces over NVM sets ([`NvmSubsystem`],
//! [`sets`]) and directives ([`directives`]). What it sees over flash without one: zones ([`zones`]) and
//! vector access ([`vector`]). [`NamespaceStore`] is a namespace as one side of a cache.

mod admin;
pub mod directives;
mod regions;
pub mod sets;
mod store;
mod subsystem;
pub mod vector;
pub mod zones;

pub use admin::{GET_FEATURES, GET_LOG_PAGE, IDENTIFY, SET_FEATURES};
pub use store::NamespaceStore;
pub use subsystem::{
    NamespaceSpec, NvmSet, NvmSetError, NvmSubsystem, SetFacts, SharedDevice, SubsystemError,
};
