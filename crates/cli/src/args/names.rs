//! Values that name things of registries, typed in any case.

use std::convert::Infallible;
use std::path::Path;

/// Names, separated by commas, in lower case, as all names are. What stands behind a colon, and files, stay.
#[expect(clippy::unnecessary_wraps, reason = "value parsers return a result")]
pub fn name(text: &str) -> Result<String, Infallible> {
    let lower = |part: &str| {
        let (name, rest) = part.split_at(part.find(':').unwrap_or(part.len()));
        let is_file = Path::new(name).extension().is_some_and(|extension| extension == "toml");
        if is_file { part.to_owned() } else { name.to_ascii_lowercase() + rest }
    };
    Ok(text.split(',').map(lower).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_lower_case_and_the_rest_stays() {
        for (typed, expected) in [
            ("Page-Map", "page-map"),
            ("PM-GCL,Page-Map", "pm-gcl,page-map"),
            ("BLOCK:ftl.op=7%,Zone-Map", "block:ftl.op=7%,zone-map"),
            ("S3-FIFO:small=20%", "s3-fifo:small=20%"),
            ("My/Drive.toml", "My/Drive.toml"),
        ] {
            assert_eq!(name(typed).unwrap(), expected);
        }
    }
}
