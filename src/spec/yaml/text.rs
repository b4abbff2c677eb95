//! Bytes to text: size, encoding, characters that YAML does not allow.

use crate::diag::codes::syntax;
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span};

/// How many characters of a text a message shows.
const SHOWN: usize = 40;

/// A text for a message: its first line, cut when long.
pub(crate) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(SHOWN).collect();
    if cut.len() < text.trim_end().len() { format!("{cut}…") } else { cut }
}

/// Adds a text to the source map. `None` when it cannot be read as text; why is in `diagnostics`.
///
/// What is not UTF-8 is shown as U+FFFD, so that the offset of the first such byte stays right.
pub(crate) fn decode_text(
    sources: &mut SourceMap,
    name: String,
    bytes: Vec<u8>,
    diagnostics: &mut Diagnostics,
) -> Option<crate::diag::FileId> {
    let size = bytes.len();
    if size > super::MAX_BYTES {
        let file = sources.add(name, "");
        let message = format!("the file has {size} bytes; flux-gen reads up to {} bytes", super::MAX_BYTES);
        diagnostics.push(Diagnostic::error(syntax::TOO_LARGE, Span { file, start: 0, end: 0 }, message));
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            let control = forbidden(&text);
            let file = sources.add(name, text);
            let Some((start, character)) = control else {
                return Some(file);
            };
            let span = Span { file, start, end: start + character.len_utf8() };
            let message = format!("the character U+{:04X} at byte {start} may not stand in YAML", u32::from(character));
            let help = r#"take it out, or write it as an escape in double quotes, such as "\x1b""#;
            diagnostics.push(Diagnostic::error(syntax::FORBIDDEN_CHARACTER, span, message).help(help));
            None
        }
        Err(error) => {
            let start = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let byte = bytes.get(start).copied().unwrap_or_default();
            let wide = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
            let file = sources.add(name, String::from_utf8_lossy(&bytes).into_owned());
            let span = Span { file, start, end: start + char::REPLACEMENT_CHARACTER.len_utf8() };
            let message = if wide {
                "the file is UTF-16, not UTF-8".to_owned()
            } else {
                format!("byte {start} (0x{byte:02X}) is not UTF-8")
            };
            diagnostics.push(Diagnostic::error(syntax::NOT_UTF8, span, message).help("save the file as UTF-8"));
            None
        }
    }
}

/// The first character outside `c-printable` of YAML 1.2.2, section 5.1. A byte order mark is allowed here; whether it
/// stands at a good place is for the parser to say.
fn forbidden(text: &str) -> Option<(usize, char)> {
    text.char_indices().find(|&(_, c)| {
        !matches!(c,
            '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{D7FF}'
            | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
    })
}
