//! Parser events to trees, within limits.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag as RawTag};

use super::mapping;
use super::node::{Alias, Tag};
use super::positions::Positions;
use super::{Kind, MAX_ALIAS_WEIGHT, MAX_DEPTH, MAX_NODES, Node, Pair, Scalar, Style};
use crate::diag::codes::syntax;
use crate::diag::{Diagnostic, Diagnostics, FileId, Span};

/// A finished node with what the limits need to know of it.
#[derive(Debug, Clone)]
struct Built {
    node: Node,
    /// Nodes in it, long texts counted once more for each 64 bytes.
    weight: usize,
    /// Levels of nesting in it; 0 for a scalar.
    height: usize,
}

/// A sequence or mapping that is still open.
#[derive(Debug)]
struct Open {
    start: usize,
    anchor: usize,
    weight: usize,
    height: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Sequence(Vec<Node>),
    /// The key that waits for its value: `None` before a key, `Some(None)` after one that cannot be used.
    Mapping(Vec<Pair>, Option<Option<(Scalar, Span)>>),
}

/// Why a document was given up.
enum Stop {
    /// This document only.
    Document,
    /// The whole text.
    Text,
}

/// Reads one text.
pub(super) struct Reader<'t, 'd> {
    positions: Positions<'t>,
    diagnostics: &'d mut Diagnostics,
    documents: Vec<Node>,
    /// First character of what the current parser reads.
    base: usize,
    open: Vec<Open>,
    /// Anchors of the current document, once complete.
    anchors: BTreeMap<usize, Built>,
    nodes: usize,
    alias_weight: usize,
    aliases: Vec<Alias>,
}

impl<'t, 'd> Reader<'t, 'd> {
    pub(super) fn new(file: FileId, text: &'t str, diagnostics: &'d mut Diagnostics) -> Self {
        Self {
            positions: Positions::new(file, text),
            diagnostics,
            documents: Vec::new(),
            base: 0,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            nodes: 0,
            alias_weight: 0,
            aliases: Vec::new(),
        }
    }

    /// All documents that can be read, and the aliases in them.
    pub(super) fn documents(mut self) -> (Vec<Node>, Vec<Alias>) {
        let mut from = 0;
        while let Some(failed) = self.run(from) {
            match next_document(self.positions.text(), failed) {
                Some(next) => from = next,
                None => break,
            }
        }
        (self.documents, self.aliases)
    }

    /// Reads from a byte offset to the end, or to a problem: then the offset at which the bad document started.
    fn run(&mut self, from: usize) -> Option<usize> {
        self.base = self.positions.character(from);
        self.open.clear();
        self.anchors.clear();
        let mut document = from;
        for item in Parser::new_from_str(&self.positions.text()[from..]) {
            let (event, span) = match item {
                Ok(item) => item,
                Err(error) => {
                    self.syntax_error(&error);
                    return Some(document);
                }
            };
            let (start, end) = (self.character(&span.start), self.character(&span.end));
            if matches!(event, Event::DocumentStart(_) | Event::DocumentEnd) {
                document = self.positions.byte(start);
                self.anchors.clear();
            }
            match self.event(event, start, end) {
                Ok(()) => {}
                Err(Stop::Document) => return Some(document),
                Err(Stop::Text) => return None,
            }
        }
        None
    }

    fn character(&self, marker: &Marker) -> usize {
        self.base + marker.index()
    }

    fn event(&mut self, event: Event<'_>, start: usize, end: usize) -> Result<(), Stop> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text.into_owned(), style, tag.as_deref(), anchor, start, end)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), &["seq"], start, end);
                self.enter(start, end, anchor, Content::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), &["map"], start, end);
                self.enter(start, end, anchor, Content::Mapping(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(start, end),
            Event::Alias(anchor) => self.alias(anchor, start, end),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        tag: Option<&RawTag>,
        anchor: usize,
        start: usize,
        end: usize,
    ) -> Result<(), Stop> {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        };
        let tag = self.check_tag(tag, &["str", "null", "bool", "int", "float"], start, end);
        let weight = 1 + text.len() / 64;
        let mut span = self.positions.span(start, end);
        if text.is_empty() && style == Style::Plain {
            span.end = span.start;
        }
        let node = Node { span, kind: Kind::Scalar(Scalar { text, style, tag }) };
        self.finish(Built { node, weight, height: 0 }, anchor)
    }

    /// Reports tags that are not in `allowed` (names of the core schema) and returns what the others say.
    fn check_tag(&mut self, tag: Option<&RawTag>, allowed: &[&str], start: usize, end: usize) -> Tag {
        let Some(tag) = tag else { return Tag::None };
        // The parser gives the non-specific tag `!` as an empty handle with the suffix `!`.
        if tag.handle.is_empty() && tag.suffix == "!" {
            return Tag::Text;
        }
        if tag.is_yaml_core_schema() && allowed.contains(&tag.suffix.as_str()) {
            return if tag.suffix == "str" { Tag::Text } else { Tag::Plain };
        }
        let span = self.positions.span(start, end);
        let shown = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
        let message = format!("the tag `{shown}` has no meaning here");
        let help = "take the tag out; quotes are enough to make a value text";
        self.diagnostics.push(Diagnostic::error(syntax::UNSUPPORTED_TAG, span, message).help(help));
        Tag::None
    }

    fn enter(&mut self, start: usize, end: usize, anchor: usize, content: Content) -> Result<(), Stop> {
        if self.open.len() >= MAX_DEPTH {
            return self.too_deep(start, end);
        }
        self.open.push(Open { start, anchor, weight: 1, height: 1, content });
        Ok(())
    }

    fn too_deep(&mut self, start: usize, end: usize) -> Result<(), Stop> {
        let span = self.positions.span(start, end.max(start + 1));
        let message = format!("nested deeper than {MAX_DEPTH} levels");
        self.diagnostics.push(Diagnostic::error(syntax::TOO_DEEP, span, message));
        Err(Stop::Document)
    }

    fn leave(&mut self, start: usize, end: usize) -> Result<(), Stop> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let last = match &open.content {
            Content::Sequence(items) => items.last().map(|node| node.span.end),
            Content::Mapping(pairs, _) => pairs.last().map(|pair| pair.value.span.end.max(pair.key_span.end)),
        };
        // In flow style the end has a closing bracket; in block style it is where the next thing starts.
        // The token of a closing bracket goes on to the end of its line.
        let mut span = self.positions.span(open.start, start + 1);
        if start == end {
            span.end = last.unwrap_or(span.start).max(span.start);
        }
        let kind = match open.content {
            Content::Sequence(items) => Kind::Sequence(items),
            Content::Mapping(pairs, _) => Kind::Mapping(mapping::finish(pairs, self.diagnostics)),
        };
        self.finish(Built { node: Node { span, kind }, weight: open.weight, height: open.height }, open.anchor)
    }

    fn alias(&mut self, anchor: usize, start: usize, end: usize) -> Result<(), Stop> {
        let span = self.positions.span(start, end);
        let Some(built) = self.anchors.get(&anchor) else {
            let message = "the alias stands inside the value that it names";
            self.diagnostics.push(Diagnostic::error(syntax::ALIAS, span, message));
            return Err(Stop::Document);
        };
        self.alias_weight += built.weight;
        if self.alias_weight > MAX_ALIAS_WEIGHT {
            let message = format!("the aliases of this file add more than {MAX_ALIAS_WEIGHT} values");
            let help = "write the repeated parts out, or split the file";
            self.diagnostics.push(Diagnostic::error(syntax::ALIAS, span, message).help(help));
            return Err(Stop::Text);
        }
        if self.open.len() + built.height > MAX_DEPTH {
            return self.too_deep(start, end);
        }
        let mut built = built.clone();
        self.aliases.push(Alias { used: span, written: built.node.span });
        built.node.place_at(span);
        self.finish(built, 0)
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, built: Built, anchor: usize) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes + self.alias_weight > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values");
            self.diagnostics
                .push(Diagnostic::error(syntax::TOO_LARGE, built.node.span, message).help("split the file"));
            return Err(Stop::Text);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, built.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            if !built.node.is_null() {
                self.documents.push(built.node);
            }
            return Ok(());
        };
        parent.weight += built.weight;
        parent.height = parent.height.max(built.height + 1);
        match &mut parent.content {
            Content::Sequence(items) => items.push(built.node),
            Content::Mapping(pairs, waiting) => match waiting.take() {
                None => *waiting = Some(mapping::key(built.node, self.diagnostics)),
                Some(Some((key, key_span))) => {
                    pairs.push(Pair { key, key_span, value: place_empty(built.node, key_span) });
                }
                Some(None) => {}
            },
        }
        Ok(())
    }

    fn syntax_error(&mut self, error: &ScanError) {
        let span = self.positions.point(self.character(error.marker()));
        if error.info().contains("recursion limit") {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            self.diagnostics.push(Diagnostic::error(syntax::TOO_DEEP, span, message));
            return;
        }
        let (message, mut help) = explain(error.info());
        if is_template(self.positions.text(), span.start) {
            help = Some("this looks like a template (Helm, Jinja): render it before it is read");
        }
        let diagnostic = Diagnostic::error(syntax::YAML_SYNTAX, span, message);
        self.diagnostics.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }
}

/// A value that is not there has the place of its key: there is nothing else to point at.
fn place_empty(mut value: Node, key_span: Span) -> Node {
    if value.span.start == value.span.end {
        value.span = key_span;
    }
    value
}

/// Whether a template stands on the line of this offset or on the one before: the parser often stops a line late.
fn is_template(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').unwrap_or(0);
    let from = text[..line].rfind('\n').unwrap_or(0);
    let to = text[at..].find('\n').map_or(text.len(), |length| at + length);
    ["{{", "{%"].iter().any(|mark| text[from..to].contains(mark))
}

/// What the parser found, in words of ours where its own would not help.
fn explain(info: &str) -> (String, Option<&'static str>) {
    let (message, help) = if info.contains("unknown anchor") {
        (
            "this alias has no anchor before it",
            "write `&name` before the value that is meant, or quote a text that starts with `*`",
        )
    } else if info.contains("tab") {
        ("a tab where YAML wants spaces", "indent with spaces")
    } else if info.contains("mapping values are not allowed") {
        ("`: ` inside a value without quotes", "put the value in quotes, or write it in a block after `|`")
    } else if info.contains("quoted scalar") && info.contains("end of stream") {
        ("this quote is never closed", "close it, or put the whole text in the other kind of quotes")
    } else if info.contains("quoted scalar") && info.contains("document indicator") {
        (
            "this quote is not closed before the next `---` or `...` line",
            "close it, or put the whole text in the other kind of quotes",
        )
    } else if info.contains("simple key") {
        (
            "this is neither a list item nor a `key: value` pair",
            "a list item is `- value`, a pair is `key: value`; both need the blank",
        )
    } else if info.contains("did not find expected key") || info.contains("invalid indentation") {
        ("the indentation fits none of the lines above", "keys of one mapping start in the same column")
    } else if info.contains("flow sequence")
        || info.contains("flow mapping")
        || info.contains("did not find expected node")
    {
        (
            "a list in `[ ]` or a mapping in `{ }` goes wrong at this place",
            "close every `[` and `{`, put commas between items, and quote texts that start with one of them",
        )
    } else {
        return (format!("not YAML: {info}"), None);
    };
    (message.to_owned(), Some(help))
}

/// Offset of the first `---` line that starts after `after`. Such a line ends whatever the document before it was in.
fn next_document(text: &str, after: usize) -> Option<usize> {
    let mut at = after;
    loop {
        at += text[at..].find('\n')? + 1;
        let rest = text[at..].strip_prefix("---");
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])) {
            return Some(at);
        }
    }
}
