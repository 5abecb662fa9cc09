//! Lists and ranges where one value is taken.

use nandscape_stack::{seeds, values};

#[test]
fn lists_and_ranges_are_values() {
    let all = |text: &str| values(text).unwrap().map(|values| values.join(" "));
    assert_eq!(all("0.07"), None);
    assert_eq!(all("0.07,0.28").unwrap(), "0.07 0.28");
    assert_eq!(all("1..4").unwrap(), "1 2 3 4");
    assert_eq!(all("0,4..6, 8").unwrap(), "0 4 5 6 8");
    assert_eq!(all("0.07..0.28:4").unwrap(), "0.07 0.14 0.21 0.28");
    assert_eq!(all("7%..28%:4").unwrap(), "7% 14% 21% 28%");
    for wrong in ["1..", "7%..0.28:4", "4..1", "a..b", "0..1:1", "0..x:3", "1..100000", "../faults.toml"] {
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
