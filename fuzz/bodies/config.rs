//! Arbitrary TOML as the configuration of a stack. What is accepted must survive being written and read back.

use nandscape_stack::config::Typed;

pub fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A fault script is a file of this machine.
    if text.contains("script") {
        return;
    }
    let check = |text: &str| {
        let mut typed = Typed::new();
        typed.merge_text("fuzz.toml", text)?;
        typed.check()
    };
    if let Ok(config) = check(text) {
        let again = config.to_toml();
        match check(&again) {
            Ok(same) => assert_eq!(same.hash(), config.hash(), "read back differently:\n{again}"),
            Err(error) => panic!("cannot be read back: {error}\n{again}"),
        }
    }
}
