//! Escapes and shortens text from outside (callers, upstreams, peers, files, databases) in log lines, messages and tables for
//! operators.
//!
//! Such text can be long, and can have characters that end a line, move the cursor, turn the direction of the text after them,
//! or show nothing. A reader could take a part of such text for a line of this program.

use std::fmt::{self, Display, Write};

/// Longest text in a log line or in a message, in bytes. The caller's response has longer reasons, such as that of a revert,
/// in full.
pub const LINE: usize = 1_000;

/// Longest text in a table beside others, in bytes.
pub const CELL: usize = 200;

/// Stands at the end of a text that was cut.
const CUT: &str = "...";

/// Whether a reader cannot see a character: controls, separators of lines, marks of direction, and characters without a
/// width (Unicode's general categories Cc, Cf, Zl and Zp, variation selectors and the fillers that show nothing; as of Unicode 15).
pub const fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A text of one line, in which characters that are not seen have the escapes of JSON.
pub struct Sanitized<T> {
    text: T,
    most: usize,
    keeps_lines: bool,
}

/// A text from outside as a part of a log line or of a message.
pub const fn sanitize<T: Display>(text: T) -> Sanitized<T> {
    Sanitized { text, most: LINE, keeps_lines: false }
}

/// A text from outside as a part of a table.
pub const fn cell<T: Display>(text: T) -> Sanitized<T> {
    Sanitized { text, most: CELL, keeps_lines: false }
}

/// A whole output of this program, whose own line breaks and tabs stay. JSON stays JSON of the same meaning.
pub const fn output<T: Display>(text: T) -> Sanitized<T> {
    Sanitized { text, most: usize::MAX, keeps_lines: true }
}

impl<T: Display> Display for Sanitized<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Escaper { to: f, left: self.most, keeps_lines: self.keeps_lines, is_cut: false };
        let written = write!(line, "{}", self.text);
        // `Escaper` stops a text that is too long with an error, which is no failure of the output.
        if line.is_cut { f.write_str(CUT) } else { written }
    }
}

/// Escapes the text that is written to it, and returns an error where the text exceeds its length.
struct Escaper<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    /// The number of bytes that may still be written, escapes included.
    left: usize,
    keeps_lines: bool,
    is_cut: bool,
}

impl Escaper<'_, '_> {
    /// Writes a text without escapes, as far as the length allows.
    fn plain(&mut self, text: &str) -> fmt::Result {
        let Some(left) = self.left.checked_sub(text.len()) else {
            self.is_cut = true;
            self.to.write_str(text.get(..text.floor_char_boundary(self.left)).unwrap_or_default())?;
            return Err(fmt::Error);
        };
        self.left = left;
        self.to.write_str(text)
    }

    /// Writes an escape, which is never cut.
    fn escape(&mut self, character: char) -> fmt::Result {
        let escape = match character {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            _ => character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        };
        if escape.len() > self.left {
            self.is_cut = true;
            return Err(fmt::Error);
        }
        self.plain(&escape)
    }
}

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let keeps_lines = self.keeps_lines;
        let is_escaped =
            |character: char| is_unseen(character) && !(keeps_lines && matches!(character, '\n' | '\t'));
        for piece in text.split_inclusive(is_escaped) {
            match piece.chars().next_back().filter(|last| is_escaped(*last)) {
                None => self.plain(piece)?,
                Some(last) => {
                    self.plain(piece.strip_suffix(last).unwrap_or_default())?;
                    self.escape(last)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that forge lines or hide text, one of each kind.
    const HOSTILE: &str = "\n\r\t\0\u{1b}[31m\u{7f}\u{85}\u{9b}\u{ad}\u{61c}\u{200b}\u{200f}\u{2028}\u{2029}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0041}\u{fe0f}\u{3164}";

    #[test]
    fn no_character_that_forges_a_line_or_hides_text_is_shown_as_itself() {
        for shown in [sanitize(HOSTILE).to_string(), cell(HOSTILE).to_string()] {
            assert!(!shown.chars().any(is_unseen), "{shown:?}");
            assert!(shown.starts_with(r"\n\r\t\u0000\u001b[31m"), "{shown}");
        }
        assert!(sanitize(HOSTILE).to_string().contains(r"\u202e\u2066\u2069\ufeff\udb40\udc41\ufe0f\u3164"));
        assert_eq!(sanitize("plain text, größer, 漢字, 🦀").to_string(), "plain text, größer, 漢字, 🦀");
    }

    #[test]
    fn a_text_is_cut_and_the_rest_of_it_is_not_formatted() {
        struct Endless;
        impl Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("ä\u{202e}")?;
                }
            }
        }
        for shown in [sanitize(Endless).to_string(), sanitize("x".repeat(8_000_000)).to_string()] {
            assert!(shown.len() <= LINE + CUT.len() && shown.ends_with(CUT), "{}", shown.len());
        }
        assert!(cell(Endless).to_string().len() <= CELL + CUT.len());
        let whole = "x".repeat(LINE);
        assert_eq!(sanitize(&whole).to_string(), whole);
    }

    #[test]
    fn json_keeps_its_meaning_and_its_lines() {
        let value = serde_json::json!({ "name": HOSTILE, "list": [1, "🦀\u{202e}"] });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let shown = output(&pretty).to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(!shown.chars().any(|c| c != '\n' && is_unseen(c)));
        assert_eq!(shown.lines().count(), pretty.lines().count());
    }
}
