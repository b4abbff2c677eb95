//! The text as a tree of values with places, and what Flux's TOML reader refuses beyond the TOML standard.

use std::ops::Range;

use toml_edit::{Datetime, Document, InlineTable, Item, Key, Table as TomlTable, TableLike, Value as TomlValue};

use super::reader::Checker;

/// A value and its place.
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

pub(super) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime(Datetime),
    Array(Vec<Node>),
    Table(Table),
}

/// A table in the order of the text.
#[derive(Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
}

pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Value {
    /// The kind in the words of Flux's messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a real number",
            Self::Boolean(_) => "a boolean",
            Self::Datetime(_) => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads the text. Syntax errors are recorded, and there is no tree then.
pub(super) fn parse(checker: &mut Checker<'_>) -> Option<Table> {
    let text = checker.text;
    if text.starts_with('\u{feff}') {
        checker
            .error(0..'\u{feff}'.len_utf8(), "", "the file starts with a byte order mark, which Flux takes for a key")
            .help("save it as UTF-8 without a byte order mark");
        return None;
    }
    match Document::parse(text.to_owned()) {
        Ok(document) => {
            let root = convert_table(document.as_table());
            check_values(checker, &root, "");
            Some(root)
        }
        Err(error) => {
            let span = error.span().unwrap_or(text.len()..text.len());
            let message = error.message().trim().replace('\n', ", ");
            let unclosed = message.contains("unclosed array");
            let problem = checker.error(span, "", format!("not valid TOML: {message}"));
            if unclosed {
                problem.help("Flux's own reader never returns from an unclosed array: the broker would hang");
            }
            None
        }
    }
}

fn convert_table(table: &dyn TableLike) -> Table {
    let mut entries = Vec::new();
    for (name, item) in table.iter() {
        let key_span = table.get_key_value(name).and_then(|(key, _)| key_span(key)).unwrap_or(0..0);
        if let Some(node) = convert_item(item, &key_span) {
            entries.push(Entry { key: name.to_owned(), key_span, node });
        }
    }
    Table { entries }
}

fn key_span(key: &Key) -> Option<Range<usize>> {
    key.span()
}

/// Tables made by dotted keys or headers have no span of their own: `at` stands for it.
fn convert_item(item: &Item, at: &Range<usize>) -> Option<Node> {
    let node = |span: Option<Range<usize>>, value| Some(Node { span: span.unwrap_or_else(|| at.clone()), value });
    match item {
        Item::None => None,
        Item::Value(value) => Some(convert_value(value, at)),
        Item::Table(table) => node(header_span(table), Value::Table(convert_table(table))),
        Item::ArrayOfTables(tables) => {
            let nodes = tables.iter().map(|table| Node {
                span: header_span(table).unwrap_or_else(|| at.clone()),
                value: Value::Table(convert_table(table)),
            });
            node(tables.span(), Value::Array(nodes.collect()))
        }
    }
}

fn header_span(table: &TomlTable) -> Option<Range<usize>> {
    table.span().filter(|span| !span.is_empty())
}

fn convert_value(value: &TomlValue, at: &Range<usize>) -> Node {
    let span = value.span().unwrap_or_else(|| at.clone());
    let value = match value {
        TomlValue::String(text) => Value::String(text.value().clone()),
        TomlValue::Integer(number) => Value::Integer(*number.value()),
        TomlValue::Float(number) => Value::Float(*number.value()),
        TomlValue::Boolean(flag) => Value::Boolean(*flag.value()),
        TomlValue::Datetime(date) => Value::Datetime(*date.value()),
        TomlValue::Array(array) => Value::Array(array.iter().map(|item| convert_value(item, &span)).collect()),
        TomlValue::InlineTable(table) => Value::Table(convert_inline(table)),
    };
    Node { span, value }
}

fn convert_inline(table: &InlineTable) -> Table {
    convert_table(table)
}

/// Flux's TOML reader (tomlc99) knows an older TOML, and what it reads must fit JSON.
fn check_values(checker: &mut Checker<'_>, table: &Table, path: &str) {
    for entry in &table.entries {
        let path = join(path, &entry.key);
        check_value(checker, &entry.node, &path);
    }
}

fn check_value(checker: &mut Checker<'_>, node: &Node, path: &str) {
    let span = node.span.clone();
    match &node.value {
        Value::Table(table) => {
            check_inline_newlines(checker, node, table, path);
            check_values(checker, table, path);
        }
        Value::Array(items) => check_array(checker, items, path),
        Value::String(_) => check_escapes(checker, span, path),
        Value::Float(number) if !number.is_finite() => {
            checker.error(span, path, "Flux cannot represent nan and inf");
        }
        Value::Datetime(date) => {
            let late_enough = date.date.is_some_and(|date| date.year >= 1970) && date.time.is_some();
            if !late_enough {
                checker.error(span, path, "Flux only reads a date together with a time, from 1970 on");
            }
        }
        _ => {}
    }
}

fn check_array(checker: &mut Checker<'_>, items: &[Node], path: &str) {
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if std::mem::discriminant(&item.value) != std::mem::discriminant(&items[0].value) {
            let message =
                format!("Flux wants all elements of an array to be of one kind: this is {}", item.value.kind());
            let help = format!("the first element is {}", items[0].value.kind());
            checker.error(item.span.clone(), &path, message).help(help);
        }
        check_value(checker, item, &path);
    }
}

/// TOML 1.1 allows line ends between the braces of an inline table, Flux does not (inside nested arrays and strings it does).
fn check_inline_newlines(checker: &mut Checker<'_>, node: &Node, table: &Table, path: &str) {
    if checker.text.as_bytes().get(node.span.start) != Some(&b'{') {
        return;
    }
    let inside = |at: usize| table.entries.iter().any(|entry| contains_nested(&entry.node, at));
    let newline = node.span.clone().find(|&at| checker.text.as_bytes().get(at) == Some(&b'\n') && !inside(at));
    if let Some(at) = newline {
        checker
            .error(at..at + 1, path, "Flux does not allow a line end inside { }")
            .help("write the table on one line");
    }
}

/// True if `at` lies in a value below `node`; dotted keys have no braces of their own.
fn contains_nested(node: &Node, at: usize) -> bool {
    match &node.value {
        Value::Table(table) if !node.span.contains(&at) => {
            table.entries.iter().any(|entry| contains_nested(&entry.node, at))
        }
        _ => node.span.contains(&at),
    }
}

/// `\x41`, `\e` and lower case digits in `\u00e9` are beyond Flux's reader.
fn check_escapes(checker: &mut Checker<'_>, span: Range<usize>, path: &str) {
    let raw = checker.text.get(span.clone()).unwrap_or("");
    if !raw.starts_with('"') {
        return;
    }
    let mut characters = raw.char_indices();
    while let Some((at, c)) = characters.next() {
        if c != '\\' {
            continue;
        }
        let Some((_, letter)) = characters.next() else { break };
        let digits = match letter {
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let lower = raw.get(at + 2..at + 2 + digits).is_some_and(|hex| hex.contains(|c: char| c.is_ascii_lowercase()));
        if lower || letter == 'x' || letter == 'e' {
            let start = span.start + at;
            checker
                .error(start..start + 2 + digits, path, "Flux does not know this escape")
                .help("write the character itself, or \\u and four upper case hexadecimal digits");
        }
    }
}

/// `a` + `b` → `a.b`.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
