//! The list of policies.

use super::{Build, Eviction, Footprint};
use crate::key::BlockKey;
use nandscape_core::{Info, ParamError, Params, registry};
use std::collections::BTreeMap;

/// Something to do with the type of a policy that is known by name.
pub trait Visit {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<E: Build + Send + 'static>(self) -> Self::Output;
}

macro_rules! policies {
    ($($module:ident::$policy:ident),* $(,)?) => {
        /// Every policy that a running cache can have.
        pub static EVICTIONS: &[Info] = &[$(super::$module::$policy::INFO),*];

        /// Any of them, chosen when a cache is made.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each is the type of that name")]
        pub enum AnyEviction {
            $($policy(super::$module::$policy)),*
        }

        impl AnyEviction {
            /// A policy over `slots` empty slots.
            pub fn new(spec: &EvictionSpec, slots: u32, seed: u64) -> Self {
                $(if spec.info.name == super::$module::$policy::INFO.name {
                    return Self::$policy(super::$module::$policy::new(slots, &spec.params, seed));
                })*
                unreachable!("a spec names one of the list")
            }
        }

        impl Eviction for AnyEviction {
            #[inline]
            fn hit(&mut self, slot: u32) {
                match self { $(Self::$policy(policy) => policy.hit(slot)),* }
            }

            #[inline]
            fn miss(&mut self, key: BlockKey) {
                match self { $(Self::$policy(policy) => policy.miss(key)),* }
            }

            #[inline]
            fn evict(&mut self, may: impl FnMut(u32) -> bool) -> Option<u32> {
                match self { $(Self::$policy(policy) => policy.evict(may)),* }
            }

            #[inline]
            fn evicted(&mut self, slot: u32, key: BlockKey) {
                match self { $(Self::$policy(policy) => policy.evicted(slot, key)),* }
            }

            #[inline]
            fn insert(&mut self, slot: u32, key: BlockKey) {
                match self { $(Self::$policy(policy) => policy.insert(slot, key)),* }
            }

            fn remove(&mut self, slot: u32) {
                match self { $(Self::$policy(policy) => policy.remove(slot)),* }
            }

            fn relabel(&mut self, from: u32, to: u32) {
                match self { $(Self::$policy(policy) => policy.relabel(from, to)),* }
            }

            fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
                match self { $(Self::$policy(policy) => policy.coldest(each)),* }
            }

            fn favoured(&self) -> u32 {
                match self { $(Self::$policy(policy) => policy.favoured()),* }
            }

            fn moves(&self) -> (u64, u64) {
                match self { $(Self::$policy(policy) => policy.moves()),* }
            }

            fn footprint(&self) -> Footprint {
                match self { $(Self::$policy(policy) => policy.footprint()),* }
            }
        }

        /// Does something with the type of a policy, so that its code is compiled for that policy alone.
        pub fn visit<V: Visit>(spec: &EvictionSpec, visitor: V) -> V::Output {
            $(if spec.info.name == super::$module::$policy::INFO.name {
                return visitor.visit::<super::$module::$policy>();
            })*
            unreachable!("a spec names one of the list")
        }
    };
}

policies! {
    fifo::Fifo,
    lru::Lru,
    lru_mru::LruMru,
    mru::Mru,
    rand::Rand,
    clock::Clock,
    sieve::Sieve,
    s3_fifo::S3Fifo,
    s3_fifo_compact::S3FifoCompact,
    arc::Arc,
    two_q::TwoQ,
    lirs::Lirs,
    w_tiny_lfu::WTinyLfu,
    mq::Mq,
    smq::Smq,
    two_list::TwoList,
}

/// A policy and its checked parameters.
#[derive(Clone, Debug)]
pub struct EvictionSpec {
    info: &'static Info,
    params: Params,
}

impl EvictionSpec {
    /// The policy of that name with checked parameters. `prefix` is the table that they stand in, for
    /// messages.
    pub fn new(name: &str, prefix: &str, typed: &BTreeMap<String, String>) -> Result<Self, ParamError> {
        let info = registry::find("eviction policy", name, EVICTIONS, |info| info)?;
        Ok(Self { info, params: Params::check(info, prefix, typed)? })
    }

    /// Reads `name` or `name:key=value:key=value`.
    pub fn parse(text: &str) -> Result<Self, ParamError> {
        let mut words = text.split(':').map(str::trim);
        let name = words.next().unwrap_or_default();
        let mut typed = BTreeMap::new();
        for word in words {
            let expected = "key=value, such as s3-fifo:small=20%:ghost=50%";
            let (key, value) = word.split_once('=').ok_or_else(|| ParamError::bad(name, word, expected))?;
            typed.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        Self::new(name, "", &typed)
    }

    /// Name, summary, source and parameters.
    pub fn info(&self) -> &'static Info {
        self.info
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }
}
