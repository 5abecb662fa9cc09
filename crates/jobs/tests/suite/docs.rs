//! docs/jobs.md names every option where it belongs.

use nandscape_jobs::options::{Kind, known};

#[test]
fn every_option_stands_under_what_becomes_of_it() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/jobs.md")).unwrap();
    let section = |heading: &str| {
        let (_, rest) = text.split_once(heading).unwrap_or_else(|| panic!("no '{heading}'"));
        rest.split("\n## ").next().unwrap().to_owned()
    };
    let read = section("## Options that are read\n");
    let ignored = section("## Options that are ignored\n");
    let refused = section("## Options that are refused\n");
    for option in known() {
        let (place, name) = match option.kind {
            Kind::Read => (&read, "read"),
            Kind::Ignored => (&ignored, "ignored"),
            Kind::Refused => (&refused, "refused"),
        };
        for key in option.names.split('|') {
            assert!(place.contains(&format!("`{key}`")), "{key} is not listed under the {name} ones");
        }
        assert!(place.contains(option.reason), "{}: another reason", option.names);
    }
}
