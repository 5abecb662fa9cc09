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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_values() {
        let all = |text: &str| values(text).unwrap().map(|values| values.join(" "));
        assert_eq!(all("0.07"), None);
        assert_eq!(all("0.07,0.28").unwrap(), "0.07 0.28");
        assert_eq!(all("1..4").unwrap(), "1 2 3 4");
        assert_eq!(all("0,4..6, 8").unwrap(), "0 4 5 6 8");
        assert_eq!(all("0.07..0.28:4").unwrap(), "0.07 0.14 0.21 0.28");
        assert_eq!(all("7%..28%:4").unwrap(), "7% 14% 21% 28%");
        for wrong in ["1..", "7%..0.28:4", "4..1", "a..b", "0..1:1", "0..x:3", "1..100000", "../faults.toml"]
        {
            assert!(values(wrong).unwrap_err().contains("expected a range"), "{wrong}");
        }
    }

    #[test]
    fn seeds_are_whole_numbers_each_once() {
        assert_eq!(seeds("42").unwrap(), [42]);
        assert_eq!(seeds("1..3,7").unwrap(), [1, 2, 3, 7]);
        assert!(seeds("1,1").unwrap_err().contains("expected each seed once"));
        for wrong in ["", "x", "-1", "1,", "0.5"] {
            assert!(seeds(wrong).unwrap_err().contains("expected a seed"), "{wrong}");
        }
    }
}
