//! Entities such as `&lt;` in XML and HTML.

use quick_xml::escape::unescape;

/// Longer ones are no character.
const LONGEST: usize = 12;

/// Decodes the predefined and the numeric entities. Others stay, like those for control characters.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest.bytes().take(LONGEST).position(|byte| byte == b';').map_or("&", |end| &rest[..=end]);
        match unescape(entity) {
            Ok(plain) if !plain.contains(|c: char| c.is_control() && c != '\n') => {
                out.push_str(&plain);
                rest = &rest[entity.len()..];
            }
            _ => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}
