//! A cache from a preset and what is to be otherwise.
//!
//! [`Design::parse`] checks typed keys ([`KEYS`], and the parameters of every policy that is named) and names
//! the key that is wrong; [`Design::create`] makes a cache of it that can be asked.

mod facts;
mod keys;
mod parse;
mod share;
#[cfg(test)]
mod tests;

pub use facts::Now;
pub use keys::{KEYS, Typed};

use crate::engine::{BoxedStore, Cache, CacheError, Disk, Setup, Started};
use crate::metadata::{self, MetadataError, Sketch, StoreArea};
use crate::mode::Mode;
use crate::presets::{self, Flushing, PRESETS, Preset, Quirks};
use keys::{blocks, names, quoted};
use nandscape_core::{ParamError, Params, SimTime, Store};
use nandscape_policies::Map;
use nandscape_policies::admission::{Admission, Chain};
use nandscape_policies::cleaning::{self, Cleaning};
use nandscape_policies::eviction::{AnyEviction, EvictionSpec};

/// Why a cache cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ComposeError {
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error(transparent)]
    Cache(#[from] CacheError),
}

fn named(key: &str, name: &str) -> std::iter::Once<(String, String)> {
    std::iter::once((key.to_owned(), name.to_owned()))
}

/// A policy by name, with what was typed for it.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    typed: Typed,
}

/// A checked design of a cache, of which any number of caches can be made.
#[derive(Clone, Debug)]
pub struct Design {
    /// What it follows, where nothing else was said.
    pub preset: &'static Preset,
    /// Cache block in bytes.
    pub block_bytes: u32,
    /// Slots at most; `None`: as many as fit.
    pub slots: Option<u32>,
    /// Sets.
    pub map: Map,
    /// Mode to begin with.
    pub mode: Mode,
    /// Eviction policy.
    pub eviction: EvictionSpec,
    /// Kind of metadata ([`metadata::KINDS`]).
    pub metadata: &'static str,
    /// What is flushed before metadata are written.
    pub flushing: Flushing,
    /// What else is particular.
    pub quirks: Quirks,
    /// Of what policies draw.
    pub seed: u64,
    admission: Member,
    cleanings: Vec<Member>,
    /// Names of these, separated by commas.
    cleaning: String,
    prefix: String,
    typed: Typed,
}

impl Design {
    /// Checks what was typed. `prefix` is the table that the keys stand in, such as `cache.`, for errors.
    /// Without `preset` it is nandscape's own.
    ///
    /// # Errors
    ///
    /// The key, its value and what was expected: an unknown key or name, a value out of range, a mode or
    /// block that the preset does not have.
    pub fn parse(prefix: &str, typed: &Typed) -> Result<Self, ParamError> {
        let mut rest = typed.clone();
        let own = Params::check(&KEYS, prefix, &KEYS.take(&mut rest))?;
        let preset = match own.get(keys::PRESET) {
            None => &PRESETS[0],
            Some(name) => presets::find(name)?,
        };
        let block_bytes = parse::block(&own, preset)?;
        let metadata = parse::metadata(&own, preset)?;
        let mode = parse::mode(prefix, &own, preset, metadata)?;
        let eviction = parse::eviction(prefix, &own, preset, &mut rest)?;
        let admission = parse::admission(prefix, &own, preset, &mut rest)?;
        let cleanings = parse::cleanings(prefix, &own, preset, &mut rest)?;
        let design = Self {
            preset,
            block_bytes,
            slots: own.get(keys::SIZE).map(|text| blocks(prefix, text, block_bytes)).transpose()?,
            map: parse::map(&own, preset, block_bytes)?,
            mode,
            eviction,
            metadata,
            flushing: own.get(keys::FLUSHING).unwrap_or(preset.flushing),
            quirks: Quirks {
                partial: own.get(keys::PARTIAL).unwrap_or(preset.quirks.partial),
                victims: own.get(keys::VICTIMS).unwrap_or(preset.quirks.victims),
                ..preset.quirks
            },
            seed: own.get(keys::SEED),
            admission,
            cleaning: cleanings.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(","),
            cleanings,
            prefix: prefix.to_owned(),
            typed: typed.clone(),
        };
        if let Some(key) = rest.keys().next() {
            return Err(design.unknown(key));
        }
        // What is in range by itself and wrong together shows when it is built.
        design.admission(64)?;
        design.cleanings(64, 64)?;
        Ok(design)
    }

    /// What it was parsed from: gives an equal design again.
    pub fn typed(&self) -> &Typed {
        &self.typed
    }

    /// [`Design::typed`] as text, a key a line, which is also TOML: what is kept with the metadata.
    pub fn text(&self) -> String {
        self.typed.iter().fold(String::new(), |text, (key, value)| text + key + " = " + &quoted(value) + "\n")
    }

    /// Key and value of every setting, defaults included, in a fixed order.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut put = |key: &str, value: String| out.push((key.to_owned(), value));
        put("preset", self.preset.info.name.to_owned());
        put("block", nandscape_core::units::format_bytes(self.block_bytes.into()));
        put("size", self.slots.map_or("all".to_owned(), |slots| format!("{slots}b")));
        put("mode", self.mode.name().to_owned());
        for (key, value) in presets::map_settings(self.map, self.block_bytes) {
            put(key, value);
        }
        out.extend(self.of_eviction());
        out.extend(self.of_admission());
        out.extend(self.of_cleaning());
        out.push(("metadata".to_owned(), self.metadata.to_owned()));
        out.push(("flushing".to_owned(), self.flushing.name().to_owned()));
        out
    }

    /// Of the settings those of the eviction policy.
    pub fn of_eviction(&self) -> Vec<(String, String)> {
        let params = self.eviction.params();
        let params = params.iter().map(|(param, text)| (param.name.to_owned(), text.to_owned()));
        named("eviction", self.eviction.info().name).chain(params).collect()
    }

    /// Of the settings those of the admission policies.
    pub fn of_admission(&self) -> Vec<(String, String)> {
        named("admission", &self.admission.name).chain(self.admission.typed.clone()).collect()
    }

    /// Of the settings those of the cleaning policies.
    pub fn of_cleaning(&self) -> Vec<(String, String)> {
        let typed = self.cleanings.iter().flat_map(|member| member.typed.clone());
        named("cleaning", &self.cleaning).chain(typed.collect::<Typed>()).collect()
    }

    /// Names of the cleaning policies.
    pub fn cleaning_names(&self) -> impl Iterator<Item = &str> {
        self.cleanings.iter().map(|member| member.name.as_str())
    }

    /// What the engine is told.
    pub fn setup(&self) -> Setup {
        Setup { block_bytes: self.block_bytes, mode: self.mode, map: self.map, seed: self.seed }
    }

    /// Of so many slots those that are used: what fills no set is left out.
    pub fn whole_slots(&self, slots: u32) -> u32 {
        match self.map.ways(slots) {
            0 => slots,
            ways => slots / ways * ways,
        }
    }

    /// Makes the eviction policy of a set with so many slots, from a seed.
    pub fn policies(&self) -> impl FnMut(u32, u64) -> AnyEviction {
        let spec = self.eviction.clone();
        move |ways, seed| AnyEviction::new(&spec, ways, seed)
    }

    /// What the metadata of a new cache are told, for a fast store of this capacity and block: the size that
    /// was asked for, and no more.
    ///
    /// # Errors
    ///
    /// The fast store has no room for that.
    pub fn metadata_setup(
        &self,
        capacity_bytes: u64,
        store_block: u32,
        uuid: [u8; 16],
        volumes: Vec<metadata::Volume>,
    ) -> Result<metadata::Setup, MetadataError> {
        let mut setup = metadata::Setup {
            capacity_bytes,
            store_block,
            block_bytes: self.block_bytes,
            uuid,
            settings: self.text(),
            volumes,
        };
        if let Some(slots) = self.slots {
            let needed = metadata::bytes_for(self.metadata, &setup, slots)?;
            if needed > capacity_bytes {
                return Err(MetadataError::TooSmall { capacity: capacity_bytes, needed });
            }
            setup.capacity_bytes = needed;
        }
        Ok(setup)
    }

    /// Bytes that metadata take before the data, behind the slots that they are for: so many, or the size
    /// that was asked for if that is less, on a store with blocks of so many bytes.
    pub fn metadata_bytes(&self, slots: u32, store_block: u32) -> Result<(u32, u64), MetadataError> {
        let slots = self.slots.map_or(slots, |size| size.min(slots));
        let setup = self.metadata_setup(u64::MAX >> 1, store_block, [0; 16], Vec::new())?;
        let needed = metadata::bytes_for(self.metadata, &setup, slots)?;
        Ok((slots, needed - u64::from(slots) * u64::from(self.block_bytes)))
    }

    /// What the metadata of a new cache are told of the capacity of a fast store: where it is written in
    /// order, what as many slots take as fill its regions.
    fn capacity_on(&self, fast: &dyn Store) -> Result<u64, MetadataError> {
        let Some(regions) = fast.regions() else { return Ok(fast.capacity_bytes()) };
        let per = regions.bytes / u64::from(self.block_bytes);
        let slots = u32::try_from(per * u64::from(regions.count)).unwrap_or(u32::MAX);
        let (slots, metadata) = self.metadata_bytes(slots, 512)?;
        if metadata > regions.first {
            return Err(MetadataError::Refused(format!(
                "the metadata take {metadata} bytes: the cache device has {} that are written anywhere, expected more (zone.conventional), larger cache blocks (cache.block) or a smaller cache (cache.size)",
                regions.first
            )));
        }
        Ok(metadata + u64::from(slots) * u64::from(self.block_bytes))
    }

    /// An empty cache on `fast` in front of these disks. What was on `fast` before is gone.
    pub fn create(
        &self,
        mut fast: BoxedStore,
        disks: Vec<Disk>,
        uuid: [u8; 16],
        at: SimTime,
    ) -> Result<Started<AnyEviction>, ComposeError> {
        let volumes = (0..).zip(&disks).map(|(id, disk)| metadata::Volume {
            id,
            uuid: disk.uuid,
            bytes: disk.store.capacity_bytes(),
            stamp: [0; 16],
        });
        let capacity = self.capacity_on(fast.as_ref())?;
        let setup = self.metadata_setup(capacity, fast.block_bytes(), uuid, volumes.collect())?;
        let (opened, at) = if fast.stores_bytes() {
            let mut area = StoreArea::new(fast.as_mut(), at);
            (metadata::create(self.metadata, &setup, &mut area)?, area.at)
        } else {
            (metadata::create(self.metadata, &setup, &mut Sketch::new(fast.capacity_bytes()))?, at)
        };
        let mut started = Cache::start(fast, disks, opened, &self.setup(), self.policies(), at)?;
        self.equip(&mut started.cache)?;
        Ok(started)
    }

    /// The cache that is on `fast`, whose volumes these disks are: see [`Cache::open`].
    pub fn open(
        &self,
        fast: BoxedStore,
        disks: Vec<Disk>,
        at: SimTime,
    ) -> Result<Started<AnyEviction>, ComposeError> {
        let mut started = Cache::open(fast, disks, &self.setup(), self.policies(), at)?;
        self.equip(&mut started.cache)?;
        Ok(started)
    }

    /// Gives a cache that was made with [`Design::setup`] and [`Design::policies`] all that the engine can be
    /// given later: whoever opens a cache calls this after it.
    pub fn equip(&self, cache: &mut Cache<AnyEviction>) -> Result<(), ParamError> {
        cache.set_admission(self.admission(cache.slots())?);
        cache.set_flushing(self.flushing);
        cache.set_quirks(self.quirks);
        cache.set_cleanings(self.cleanings(cache.slots(), cache.ways())?);
        Ok(())
    }

    /// The admission policies of a cache with so many slots; `None` where everything is let in.
    pub fn admission(&self, slots: u32) -> Result<Option<Box<dyn Admission + Send>>, ParamError> {
        let Member { name, typed } = &self.admission;
        let chain = Chain::build(name, &self.prefix, typed, slots, self.seed)?;
        Ok((!chain.is_empty()).then(|| Box::new(chain) as _))
    }

    /// The cleaning policies of a cache with so many slots in sets of `ways`.
    pub fn cleanings(&self, slots: u32, ways: u32) -> Result<Vec<Box<dyn Cleaning + Send>>, ParamError> {
        let shape = (slots, ways, self.block_bytes);
        let members = self.cleanings.iter().filter(|member| member.name != "none");
        members.map(|member| cleaning::build(&member.name, &self.prefix, &member.typed, shape)).collect()
    }

    fn unknown(&self, key: &str) -> ParamError {
        let admissions = nandscape_policies::admission::ADMISSIONS.iter().map(|entry| entry.info);
        let admissions = admissions.filter(|info| names(&self.admission.name).any(|name| name == info.name));
        let cleanings = cleaning::CLEANINGS.iter().map(|entry| entry.info);
        let cleanings = cleanings.filter(|info| self.cleaning_names().any(|name| name == info.name));
        let infos = [KEYS, *self.eviction.info()].into_iter().chain(admissions).chain(cleanings);
        let known = infos.chain([cleaning::CAPS]).flat_map(|info| info.params).map(|param| param.name);
        let evictions = nandscape_policies::eviction::EVICTIONS.iter();
        let all = evictions.chain(nandscape_policies::admission::ADMISSIONS.iter().map(|entry| &entry.info));
        let mut all = all.chain(cleaning::CLEANINGS.iter().map(|entry| &entry.info));
        let other = all.find(|info| info.has(key));
        let other = other.map_or_else(String::new, |info| {
            format!(", which does not have '{}', whose key it is", info.name)
        });
        ParamError::UnknownKey {
            key: format!("{}{key}", self.prefix),
            owner: format!("a cache of preset {}{other}", self.preset.info.name),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}
