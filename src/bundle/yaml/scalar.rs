//! The spelling of texts. The library decides how a text is written so that every reader takes it for that text; what
//! needs no decision, nearly all of a bundle, is told apart first, because the library looks at each text many times.

use serde::Serialize;
use serde_saphyr::{DoubleQuoted, SerializerOptions};

use super::YamlError;

/// Columns that the content of a mapping, list or block stands to the right of what it belongs to.
pub(super) const STEP: usize = 2;

/// Words of letters that some reader takes for something else than text.
const AMBIGUOUS: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"];

/// The options of the one spelling.
pub(super) fn options() -> SerializerOptions {
    serde_saphyr::ser_options! {
        indent_step: STEP,
        compact_list_indent: true,
        empty_as_braces: true,
        prefer_block_scalars: true,
        // Folding a long line would make a diff of one word touch many lines.
        folded_wrap_chars: usize::MAX,
        yaml_12: false,
    }
}

/// A scalar as the library spells it, without the line feed behind it.
pub(super) fn spelled<T: Serialize>(value: &T) -> Result<String, YamlError> {
    let mut text = serde_saphyr::to_string_with_options(value, options()).map_err(|e| YamlError::new(&e))?;
    text.truncate(text.trim_end_matches('\n').len());
    Ok(text)
}

/// Writes a key and its colon.
pub(super) fn key(out: &mut String, key: &str) -> Result<(), YamlError> {
    if is_plain_word(key) && !key.contains(':') {
        out.push_str(key);
    } else {
        // Keys follow other rules than values, and the library knows them only as part of a mapping.
        let pair = spelled(&std::collections::BTreeMap::from([(key, 0)]))?;
        out.push_str(pair.strip_suffix(": 0").unwrap_or(&pair));
    }
    out.push(':');
    Ok(())
}

/// Writes a text, and the line feed behind it. The lines of a block get `indent` columns.
pub(super) fn text(out: &mut String, text: &str, indent: usize) -> Result<(), YamlError> {
    if is_plain_word(text) {
        out.push_str(text);
        out.push('\n');
    } else if let Some(chomping) = plain_block(text) {
        out.push('|');
        out.push_str(chomping);
        out.push('\n');
        lines(out, text, indent);
    } else {
        odd_text(out, text, indent)?;
    }
    Ok(())
}

fn odd_text(out: &mut String, text: &str, indent: usize) -> Result<(), YamlError> {
    if is_misread_block(text) {
        out.push_str(&spelled(&DoubleQuoted(text))?);
        out.push('\n');
        return Ok(());
    }
    let spelled = serde_saphyr::to_string_with_options(&text, options()).map_err(|e| YamlError::new(&e))?;
    let (first, block) = spelled.split_once('\n').unwrap_or((&spelled, ""));
    out.push_str(first);
    out.push('\n');
    for line in block.split_inclusive('\n') {
        // Indented by the library as far as a document's own block is.
        lines(out, line.strip_prefix("  ").unwrap_or(line), indent);
    }
    Ok(())
}

/// Writes lines with `indent` blanks before each. Empty ones stay empty, which means the same: editors and commit hooks
/// take blanks off them, and a file that they changed would count as edited by hand.
fn lines(out: &mut String, text: &str, indent: usize) {
    for line in text.split_inclusive('\n') {
        if line != "\n" {
            blanks(out, indent);
        }
        out.push_str(line);
    }
    if !text.ends_with('\n') {
        out.push('\n');
    }
}

/// Writes blanks.
pub(super) fn blanks(out: &mut String, count: usize) {
    const SOME: &str = "                                ";
    let mut left = count;
    while left > 0 {
        let now = left.min(SOME.len());
        out.push_str(&SOME[..now]);
        left -= now;
    }
}

/// Whether a text is a word that every reader takes for text: of letters, digits and what paths and images are made of,
/// not with a digit or sign in front, not one of the words with a meaning.
fn is_plain_word(text: &str) -> bool {
    let (Some(first), Some(last)) = (text.bytes().next(), text.bytes().next_back()) else { return false };
    (first.is_ascii_alphabetic() || first == b'/')
        && last != b':'
        && text.bytes().all(is_word_byte)
        && !(text.len() <= 5 && AMBIGUOUS.iter().any(|word| text.eq_ignore_ascii_case(word)))
}

fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-'..=b':' | b'_')
}

/// How the block ends (`-` or nothing) that holds a text of several lines as it is; `None` when something in it needs
/// the library's care.
fn plain_block(text: &str) -> Option<&'static str> {
    let is_plain = |b: u8| matches!(b, b' '..=b'~' | b'\n' | b'\t');
    // Without an early end, so that the compiler takes many bytes at once: scripts are long.
    let plain = text.bytes().fold(true, |plain, b| plain & is_plain(b));
    let starts_well = text.bytes().next().is_some_and(|b| !matches!(b, b' ' | b'\n' | b'\t'));
    let feeds = text.len() - text.trim_end_matches('\n').len();
    if !plain || !starts_well || feeds > 1 || !text.contains('\n') {
        return None;
    }
    Some(if feeds == 0 { "-" } else { "" })
}

/// Whether a literal block would be misread: libyaml and Go's readers take a tab at the start of a block's first line for
/// indentation and refuse the document.
fn is_misread_block(text: &str) -> bool {
    text.trim_start_matches(['\n', ' ']).starts_with('\t')
}
