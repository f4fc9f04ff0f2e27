//! What pictures share: texts, boxes, colours.

use svg::Document;
use svg::node::element::{Rectangle, Text, Title};

pub const TEXT: &str = "#1d2733";
pub const FAINT: &str = "#6b7785";
pub const CPU: &str = "#d6e6f7";
pub const GPU: &str = "#fbdcc8";
pub const COPY: &str = "#e4e4e4";
pub const NONE: &str = "#ffffff";
pub const HOT: &str = "#c0392b";

/// An empty picture with a white ground.
pub fn document(width: f64, height: f64) -> Document {
    Document::new()
        .set("viewBox", (0, 0, width.ceil() as i64, height.ceil() as i64))
        .set("width", width.ceil() as i64)
        .set("height", height.ceil() as i64)
        .set("font-family", "Helvetica, Arial, sans-serif")
        .add(rectangle(0.0, 0.0, width, height).set("fill", "#ffffff"))
}

pub fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    Rectangle::new()
        .set("x", round(x))
        .set("y", round(y))
        .set("width", round(width))
        .set("height", round(height))
}

/// A line of text that begins at `x`, or has its middle there.
pub fn text(content: &str, x: f64, y: f64, size: u32, colour: &str) -> Text {
    Text::new(clean(content)).set("x", round(x)).set("y", round(y)).set("font-size", size).set("fill", colour)
}

/// What viewers show when the pointer rests on the element that it is added to.
pub fn title(content: &str) -> Title {
    Title::new(clean(content))
}

/// Tenths of a unit are enough, and keep files small.
pub fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// At most so many characters; the middle is left out, as names differ at their ends.
pub fn shortened(text: &str, most: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = (most / 2, most - most / 2 - 1);
    let end = &characters[characters.len() - tail..];
    characters[..head].iter().chain(&['…']).chain(end).collect()
}

/// Without characters that XML cannot have.
fn clean(text: &str) -> String {
    let allowed = |c: &char| *c == '\n' || (!c.is_control() && !matches!(*c, '\u{fffe}' | '\u{ffff}'));
    text.chars().filter(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcdefghij", 5), "ab…ij");
        assert_eq!(clean("a\u{1}b\nc"), "ab\nc");
    }

    #[test]
    fn texts_are_escaped() {
        let picture = document(10.2, 5.0).add(text("a<b&\"c\"", 1.0, 2.0, 10, TEXT)).to_string();
        assert!(picture.contains("a&lt;b&amp;") && picture.contains("viewBox=\"0 0 11 5\""), "{picture}");
    }
}
