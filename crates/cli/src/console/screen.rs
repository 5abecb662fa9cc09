//! What stdout can show.

use rustix::termios::tcgetwinsize;
use std::env;
use std::io::IsTerminal;

/// A terminal, or what takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Characters in a line.
    pub width: usize,
    /// Lines; endless where nothing scrolls.
    pub height: usize,
    /// What was printed can be printed over.
    pub is_live: bool,
    /// Whether colour is shown and wanted (`NO_COLOR`).
    pub has_colour: bool,
    /// Whether block characters are shown.
    pub has_blocks: bool,
}

impl Screen {
    /// That of stdout, as it is now. Without a terminal lines are as long as `COLUMNS` says, or 80.
    pub fn of_stdout() -> Self {
        let stdout = std::io::stdout();
        let is_dumb = env::var("TERM").is_ok_and(|name| name == "dumb");
        let is_live = stdout.is_terminal() && !is_dumb;
        let size = tcgetwinsize(&stdout).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let columns = || env::var("COLUMNS").ok()?.parse().ok();
        Self {
            width: size.map(|size| size.ws_col.into()).or_else(columns).unwrap_or(80).clamp(24, 1000),
            height: size.filter(|_| is_live).map_or(usize::MAX, |size| size.ws_row.into()),
            is_live,
            has_colour: is_live && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            has_blocks: is_utf8(),
        }
    }

    /// A character for a share.
    pub const fn shade(&self, percent: u8) -> char {
        let [none, low, some, most, all] =
            if self.has_blocks { [' ', '░', '▒', '▓', '█'] } else { [' ', '.', '-', '+', '#'] };
        match percent {
            0 => none,
            1..=25 => low,
            26..=50 => some,
            51..=75 => most,
            _ => all,
        }
    }

    /// The letter of a state of zones, in its colour.
    pub fn coloured(&self, state: char) -> String {
        let code = match state {
            'i' => "36",
            'o' => "35",
            'c' => "33",
            'f' => "32",
            'r' => "1;31",
            'x' => "7;31",
            _ => "90",
        };
        if self.has_colour { format!("\u{1b}[{code}m{state}\u{1b}[0m") } else { state.to_string() }
    }
}

/// Whether the locale says so.
fn is_utf8() -> bool {
    let set = |name: &&str| env::var(name).is_ok_and(|value| !value.is_empty());
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find(|name| set(name)).and_then(|name| env::var(name).ok());
    locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}
