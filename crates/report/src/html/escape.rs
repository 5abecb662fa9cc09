//! Everything that comes from outside passes through here on its way into the page.

use crate::number::printable;
use serde_json::Value;

/// Text for element content and for attributes in double or single quotes. Control characters are made
/// visible first.
pub(crate) fn text(raw: &str) -> String {
    escape(&printable(raw))
}

/// Like [`text`] for preformatted blocks, where line ends and tabs stay.
pub(crate) fn block(raw: &str) -> String {
    let lines: Vec<String> = raw
        .split('\n')
        .map(|line| escape(&line.split('\t').map(printable).collect::<Vec<_>>().join("\t")))
        .collect();
    lines.join("\n")
}

fn escape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// JSON for a `script` element. The element ends at the first `</script`, whatever JSON says, and `<!--`
/// changes how the rest is parsed; so no `<` is left. The two line separators are legal in JSON and were not
/// in JavaScript.
pub(crate) fn json_for_script(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn markup_from_outside_becomes_text() {
        assert_eq!(text("<b a='1' c=\"2\">&\n"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\u{a}");
        assert_eq!(block("a\tb\n<c>\u{7}"), "a\tb\n&lt;c&gt;\\u{7}");
    }

    #[test]
    fn script_data_cannot_end_its_element_and_reads_back() {
        let value = json!({"a</script><!--": "&\u{2028}\u{2029}"});
        let data = json_for_script(&value);
        assert!(!data.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{data}");
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), value);
    }
}
