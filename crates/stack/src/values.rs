//! Several values where one is taken: `0.07,0.28`, `1..8`, `0.07..0.28:4`.

/// Values that one list has at most.
pub const MOST_VALUES: usize = 1000;

/// The parts of a list, ranges among them; `None` for a single value.
///
/// # Errors
///
/// A range that is none; the message says what was expected.
pub fn values(text: &str) -> Result<Option<Vec<String>>, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            Some((from, to)) => all.extend(range(part, from, to)?),
            None => all.push(part.to_owned()),
        }
    }
    Ok(Some(all).filter(|_| text.contains(',') || text.contains("..")))
}

/// Seeds of a list or range, such as `1..8` or `1,2,3`, each once.
///
/// # Errors
///
/// What is no seed; the message says what was expected.
pub fn seeds(text: &str) -> Result<Vec<u64>, String> {
    let all = values(text)?.unwrap_or_else(|| vec![text.trim().to_owned()]);
    let mut seeds = Vec::new();
    for part in all {
        let seed = part.parse().map_err(|_| {
            format!("'{part}': expected a seed from 0 on, a list such as 1,2,3, or a range such as 1..8")
        })?;
        if seeds.contains(&seed) {
            return Err(format!("{seed} is there twice: expected each seed once"));
        }
        seeds.push(seed);
    }
    Ok(seeds)
}

/// `1..8`: every whole number; `0.07..0.28:4`: so many, evenly spaced.
fn range(part: &str, from: &str, to: &str) -> Result<Vec<String>, String> {
    let expected = || format!("'{part}': expected a range such as 1..8, or 0.07..0.28:4 for four values");
    if let Some((to, count)) = to.split_once(':') {
        let percents = [from, to].map(|text| text.trim().strip_suffix('%'));
        let (from, to, unit) = match percents {
            [Some(from), Some(to)] => (from, to, "%"),
            _ => (from, to, ""),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let (from, to) = number(from).zip(number(to)).ok_or_else(expected)?;
        let count: usize =
            count.trim().parse().ok().filter(|n| (2..=MOST_VALUES).contains(n)).ok_or_else(expected)?;
        let step = (to - from) / (count - 1) as f64;
        // As many digits as a person would type.
        let shown = |at: usize| ((from + step * at as f64) * 1e6).round() / 1e6;
        return Ok((0..count).map(|at| format!("{}{unit}", shown(at))).collect());
    }
    let whole = |text: &str| text.trim().parse::<u64>().ok();
    let (from, to) = whole(from).zip(whole(to)).filter(|(from, to)| from <= to).ok_or_else(expected)?;
    if to - from >= MOST_VALUES as u64 {
        return Err(expected());
    }
    Ok((from..=to).map(|n| n.to_string()).collect())
}
