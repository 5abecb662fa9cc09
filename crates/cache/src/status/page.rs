//! Text and fields that are filled together.

use serde::{Serialize, Serializer};
use std::fmt;

/// What a field says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(u64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What is so, where a field misleads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// The true value.
    pub value: String,
    /// How the field misleads.
    pub because: &'static str,
}

/// A field as the design prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the original.
    pub name: String,
    /// What the original says.
    pub value: Value,
    /// What is so, where that misleads.
    pub truth: Option<Truth>,
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Beside<'a> {
            printed: &'a Value,
            #[serde(rename = "true")]
            truth: &'a str,
            because: &'a str,
        }
        match &self.truth {
            None => self.value.serialize(serializer),
            Some(truth) => Beside { printed: &self.value, truth: &truth.value, because: truth.because }
                .serialize(serializer),
        }
    }
}

/// Text in a design's own form, and its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    text: String,
    fields: Vec<Field>,
    /// Lines that the original does not print.
    beside: Vec<String>,
}

impl Page {
    /// The text as the original prints it, without a newline at its end.
    pub fn text(&self) -> &str {
        self.text.trim_end_matches('\n')
    }

    /// The text, followed by what the original does not print, and a line for each field that misleads.
    pub fn text_with_truths(&self) -> String {
        let mut text = self.text().to_owned();
        for line in &self.beside {
            text.push_str(&["\n# ", line].concat());
        }
        for field in &self.fields {
            if let Some(truth) = &field.truth {
                text.push_str(&["\n# ", &field.name, ": ", &truth.value, "; ", truth.because].concat());
            }
        }
        text
    }

    /// The fields, in the order of the text.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn starting(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn raw(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>, text: &str) -> &mut Self {
        self.fields.push(Field { name: name.to_owned(), value: value.into(), truth: None });
        self.raw(text)
    }

    /// A field that the original does not print.
    pub(super) fn beside(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        self.beside.push(format!("{name}: {value}"));
        self.put(name, value, "")
    }

    /// `name(value)`, as the device-mapper designs print.
    pub(super) fn paren(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let text = format!("{name}({value})");
        self.put(name, value, &text)
    }

    /// `name (value)`: names of devices stand apart.
    pub(super) fn paren_apart(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let text = format!("{name} ({value})");
        self.put(name, value, &text)
    }

    /// `name(value` and a unit `)`.
    pub(super) fn paren_unit(&mut self, name: &str, value: u64, unit: &str) -> &mut Self {
        self.put(name, value, &format!("{name}({value}{unit})"))
    }

    /// A line of a name and a value, in columns.
    pub(super) fn row(&mut self, width: usize, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let text = format!("{name:<width$} {:>12}\n", value.to_string());
        self.put(name, value, &text)
    }

    /// A value alone, with a space before it.
    pub(super) fn word(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let text = format!(" {value}");
        self.put(name, value, &text)
    }

    /// The last field is something that the original counts and nothing here could.
    pub(super) fn not_modelled(&mut self) -> &mut Self {
        self.truth("not counted", "nothing here does what the original counts")
    }

    /// What is so of the last field.
    pub(super) fn truth(&mut self, value: impl Into<String>, because: &'static str) -> &mut Self {
        if let Some(field) = self.fields.last_mut() {
            field.truth = Some(Truth { value: value.into(), because });
        }
        self
    }
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|field| (&field.name, field)))
    }
}
