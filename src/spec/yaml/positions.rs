//! The parser counts characters, diagnostics count bytes.

use crate::diag::{FileId, Span};

/// How many characters lie between two remembered offsets.
const STEP: usize = 64;

/// Converts character indexes of one text to byte offsets.
#[derive(Debug)]
pub(crate) struct Positions<'t> {
    file: FileId,
    text: &'t str,
    /// Byte offset of every `STEP`-th character; empty when the text is ASCII and the two are equal.
    marks: Vec<usize>,
}

impl<'t> Positions<'t> {
    pub(crate) fn new(file: FileId, text: &'t str) -> Self {
        let marks =
            if text.is_ascii() { Vec::new() } else { text.char_indices().step_by(STEP).map(|(at, _)| at).collect() };
        Self { file, text, marks }
    }

    /// Byte offset of the character with this index; the end of the text when there is none.
    pub(crate) fn byte(&self, character: usize) -> usize {
        if self.text.is_empty() || self.marks.is_empty() {
            return character.min(self.text.len());
        }
        let Some(&mark) = self.marks.get(character / STEP) else {
            return self.text.len();
        };
        self.text[mark..].char_indices().nth(character % STEP).map_or(self.text.len(), |(at, _)| mark + at)
    }

    /// Index of the character that starts at this byte offset (which is one where a character starts).
    pub(crate) fn character(&self, byte: usize) -> usize {
        if self.marks.is_empty() {
            return byte;
        }
        let before = self.marks.partition_point(|&mark| mark <= byte).saturating_sub(1);
        let Some(&mark) = self.marks.get(before) else {
            return byte;
        };
        before * STEP + self.text[mark..byte.min(self.text.len())].chars().count()
    }

    /// The span from one character to another, without line breaks and blanks at its end.
    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        let start = self.byte(start);
        let end = self.byte(end).max(start);
        let end = start + self.text[start..end].trim_end().len();
        Span { file: self.file, start, end }
    }

    /// The span of one character, or of nothing at the end of a line.
    pub(crate) fn point(&self, character: usize) -> Span {
        self.span(character, character + 1)
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_char_indices(text in "(?s)[a-c\u{e9}\u{1f995}\n]{0,300}") {
            let positions = Positions::new(FileId(0), &text);
            for (character, (byte, _)) in text.char_indices().enumerate() {
                prop_assert_eq!(positions.byte(character), byte);
                prop_assert_eq!(positions.character(byte), character);
            }
            prop_assert_eq!(positions.byte(text.chars().count() + 5), text.len());
        }
    }
}
