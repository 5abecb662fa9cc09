//! `[faults]`: what is to go wrong with the flash, by seed or one by one.

use crate::keys::{ConfigError, Result, flat, table_of};
use nandscape_core::{Geometry, Info, Oob, OutOfBand as _, Params, UnitId, keys};
use nandscape_media::faults::{Fault, FaultPlan, PowerCut, Scripted, parse_script};
use std::collections::BTreeMap;

keys! { PARAMS:
    SEED: u64 = int(0, u64::MAX) or "1", "seed of everything that is drawn";
    PROGRAM: f64 = share() or "0", "share of programs that fail";
    ERASE: f64 = share() or "0", "share of erases that fail";
    UNREADABLE: f64 = share() or "0",
        "share of programmed pages whose data cannot be read until the block is erased";
    ROT: f64 = share() or "0",
        "bits flipped somewhere in the stored data for each operation, from 0 to 1; found by checksums, so \
         only where bytes are kept";
    POWER_CUT: Option<u64> = int(0, u64::MAX >> 1),
        "operation at which the power is cut: a replay fails, a server ends as if killed";
    POWER_CUT_KIND: String = choice(&["lost", "torn"]) or "lost",
        "lost: that operation is not done; torn: it is half done";
    STUCK: Option<String> = text(), "dies that do nothing, such as 3 or 0,3; die = lun x channels + channel";
    SLOW: Option<String> = text(), "dies that take longer, each with how many times, such as 2:4 or 0:3,2:4";
    LIST: Option<String> = text(),
        "faults one by one, separated by ';', such as 1000 program-fail; 2000 rot page=7 bit=1";
    SCRIPT: Option<String> = text(), "file of such faults, one a line, # for comments; becomes part of list";
}

/// Keys of `[faults]`.
pub static FAULTS: Info = Info {
    name: "faults",
    summary: "what goes wrong with the flash; operations are programs and erases, counted from 0",
    source: "docs/faults.md",
    params: PARAMS,
};

/// A checked `[faults]` table.
#[derive(Clone, Debug)]
pub struct FaultsConfig {
    /// What goes wrong.
    pub plan: FaultPlan,
    params: Params,
    is_default: bool,
}

impl FaultsConfig {
    pub(crate) fn check(table: &toml::Table, geometry: &Geometry, is_compressing: bool) -> Result<Self> {
        let mut typed = flat("faults.", table)?;
        read_script(&mut typed)?;
        let params = Params::check(&FAULTS, "faults.", &typed)?;
        let power_cut =
            params.get(POWER_CUT).map(|at| PowerCut { at, is_torn: params.get(POWER_CUT_KIND) == "torn" });
        let mut plan = FaultPlan {
            seed: params.get(SEED),
            program: params.get(PROGRAM),
            erase: params.get(ERASE),
            unreadable: params.get(UNREADABLE),
            rot: params.get(ROT),
            power_cut,
            ..FaultPlan::default()
        };
        plan.script =
            dies(&params)?.into_iter().map(|die| Scripted { at: 0, fault: Fault::Stuck { die } }).collect();
        plan.script.extend(slow_dies(&params)?);
        if let Some(list) = params.get(LIST) {
            let lines = list.replace(';', "\n");
            parse_script(&lines, &mut plan).map_err(|error| {
                let fault = lines.lines().nth(error.line - 1).unwrap_or("").trim();
                params
                    .error(LIST, format!("faults such as 1000 program-fail; in '{fault}': {}", error.message))
            })?;
        }
        plan.check(geometry, Oob::BYTES)
            .map_err(|error| ConfigError::Unsuited(format!("faults: {error}")))?;
        let is_slow = plan.script.iter().any(|line| matches!(line.fault, Fault::Slow { .. }));
        if is_slow && is_compressing {
            return Err(params.error(SLOW, "no slow dies, since device.compression is below 1").into());
        }
        Ok(Self { plan, params, is_default: typed.is_empty() })
    }

    pub(crate) fn to_table(&self) -> Option<toml::Table> {
        (!self.is_default).then(|| table_of(&self.params))
    }
}

/// Puts the lines of the script into the list, so that the configuration says what happens whatever becomes
/// of the file.
fn read_script(typed: &mut BTreeMap<String, String>) -> Result<()> {
    let Some(path) = typed.remove("script").filter(|path| !path.is_empty()) else { return Ok(()) };
    let io = |message: String| ConfigError::Io { path: path.clone(), message };
    let text = std::fs::read_to_string(&path).map_err(|error| io(error.to_string()))?;
    parse_script(&text, &mut FaultPlan::default()).map_err(|error| ConfigError::Io {
        path: format!("{path}:{}", error.line),
        message: error.message,
    })?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let list = typed.entry("list".to_owned()).or_default();
    if !list.is_empty() && !lines.is_empty() {
        list.push_str("; ");
    }
    list.push_str(&lines.join("; "));
    Ok(())
}

fn dies(params: &Params) -> Result<Vec<UnitId>> {
    let Some(list) = params.get(STUCK) else { return Ok(Vec::new()) };
    list.split(',')
        .map(|text| {
            text.trim().parse().map(UnitId).map_err(|_| params.error(STUCK, "die numbers such as 0,3").into())
        })
        .collect()
}

fn slow_dies(params: &Params) -> Result<Vec<Scripted>> {
    let Some(list) = params.get(SLOW) else { return Ok(Vec::new()) };
    let slow = |text: &str| {
        let (die, factor) = text.trim().split_once(':')?;
        let die = UnitId(die.parse().ok()?);
        let factor = factor.parse().ok().filter(|factor| (1..=1000).contains(factor))?;
        Some(Scripted { at: 0, fault: Fault::Slow { die, factor } })
    };
    list.split(',')
        .map(|text| {
            slow(text).ok_or_else(|| {
                params
                    .error(SLOW, "dies with how many times as long, up to 1000, such as 2:4 or 0:3,2:4")
                    .into()
            })
        })
        .collect()
}
