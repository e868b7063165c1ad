//! Extracts the text that a reader of HTML sees, without markup, scripts and styles.
//!
//! It uses only the tokenizer of html5ever. Without a tree, elements that are nested wrongly or a
//! million deep cost nothing.

use std::cell::{Cell, RefCell};

use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Elements within a line, whose tags do not separate words. All other tags do.
const INLINE: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "rb", "ruby", "s", "samp", "small",
    "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "blink", "math",
    "mi", "mn", "mo",
];

/// Elements without text for readers. Their content is not markup either.
const RAW: [&str; 6] = ["style", "iframe", "noembed", "noframes", "noscript", "xmp"];

/// Returns the text of a document, with a line for each block. White space becomes one space, or a
/// line end between blocks.
pub(super) fn text_of_html(html: &str) -> String {
    let sink = TextSink::default();
    let options = TokenizerOpts {
        // The file reader has already skipped the byte order mark.
        discard_bom: false,
        ..TokenizerOpts::default()
    };
    let tokenizer = Tokenizer::new(sink, options);
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The tokenizer stops at a script, which is not run, and at an encoding, which is known.
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    tokenizer.sink.text.into_inner()
}

/// Gathers text.
#[derive(Default)]
struct TextSink {
    text: RefCell<String>,
    /// The gap before the next word.
    gap: Cell<TextGap>,
    /// The element whose content is skipped until its end tag.
    skipped: RefCell<Option<html5ever::LocalName>>,
    /// The number of open elements whose content is for scripts only.
    templates: Cell<usize>,
}

/// A gap between two words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum TextGap {
    #[default]
    None,
    Space,
    Line,
}

impl TextSink {
    fn widen(&self, gap: TextGap) {
        self.gap.set(self.gap.get().max(gap));
    }

    fn characters(&self, characters: &str) {
        if self.skipped.borrow().is_some() || self.templates.get() > 0 {
            return;
        }
        let mut text = self.text.borrow_mut();
        let is_space = |c: char| c.is_ascii_whitespace();
        for (number, word) in characters.split(is_space).enumerate() {
            if number > 0 {
                self.widen(TextGap::Space);
            }
            if word.is_empty() {
                continue;
            }
            match self.gap.replace(TextGap::None) {
                _ if text.is_empty() => {}
                TextGap::None => {}
                TextGap::Space => text.push(' '),
                TextGap::Line => text.push('\n'),
            }
            text.push_str(word);
        }
    }

    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if !INLINE.contains(&name) {
            self.widen(TextGap::Line);
        }
        match tag.kind {
            TagKind::EndTag => {
                let mut skipped = self.skipped.borrow_mut();
                if skipped.as_ref() == Some(&tag.name) {
                    *skipped = None;
                }
                if name == "template" {
                    self.templates.set(self.templates.get().saturating_sub(1));
                }
                TokenSinkResult::Continue
            }
            TagKind::StartTag => match name {
                "script" => self.skip(tag, RawKind::ScriptData),
                "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                "plaintext" => TokenSinkResult::Plaintext,
                "template" => {
                    self.templates.set(self.templates.get() + 1);
                    TokenSinkResult::Continue
                }
                name if RAW.contains(&name) => self.skip(tag, RawKind::Rawtext),
                _ => TokenSinkResult::Continue,
            },
        }
    }

    fn skip(&self, tag: &Tag, kind: RawKind) -> TokenSinkResult<()> {
        *self.skipped.borrow_mut() = Some(tag.name.clone());
        TokenSinkResult::RawData(kind)
    }
}

impl TokenSink for TextSink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(characters) => self.characters(&characters),
            Token::TagToken(tag) => return self.tag(&tag),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::ParseError(_)
            | Token::EOFToken => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_text_is_what_a_reader_sees() {
        for (html, text) in [
            ("plain words", "plain words"),
            ("", ""),
            ("<p>a<p>b", "a\nb"),
            ("a<b>b</b>c <i>d</i>", "abc d"),
            ("  a \n b\t<br> c ", "a b\nc"),
            (
                "a&amp;b &lt;c&gt; &eacute;&#x20AC;&#233; &nosuch; &amp",
                "a&b <c> é€é &nosuch; &",
            ),
            ("&#0;&#x110000;&#xD800;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("a<script>if (1 < 2) \"</p>\" + '<b>'</script>b", "a\nb"),
            ("a<script><!-- <script> </script> b --></script>c", "a\nc"),
            ("a<style>p { content: '</p>' }</STYLE >b", "a\nb"),
            (
                "<head><title>A &amp; <b>B</title></head><body>c",
                "A & <b>B\nc",
            ),
            ("a<!-- <p>b</p> -->c<!doctype html>d", "acd"),
            ("<template><p>a<template>b</template>c</template>d", "d"),
            ("<noscript><p>a</p></noscript><iframe>b</iframe>c", "c"),
            ("<table><tr><td>a<td>b<tr><td>c", "a\nb\nc"),
            ("<b><i>a</b> b</i></div></p> c", "a b\nc"),
            ("<p title='<p>x</p>' hidden=\"a>b\">c</p>", "c"),
            ("a < b and b > c <3 &lt;", "a < b and b > c <3 <"),
            ("a<", "a<"),
            ("a<p b='c", "a"),
            ("a<script>b", "a"),
            ("<svg><text>a</text></svg><![CDATA[b]]>", "a"),
            ("<textarea>a <b></textarea>c", "a <b>\nc"),
            ("\u{feff}\u{a0}a\u{3000}b", "\u{feff}\u{a0}a\u{3000}b"),
            ("a\0b", "ab"),
        ] {
            assert_eq!(text_of_html(html), text, "{html:?}");
        }
    }

    /// A tree of this depth would overflow the stack, and a quadratic walk would not end.
    #[test]
    fn deep_or_wrong_nesting_of_html_is_read() {
        let depth = 2_000_000;
        let deep = "<div>".repeat(depth) + "a" + &"</div>".repeat(depth);
        assert_eq!(text_of_html(&deep), "a");
        let open = "<b><i><p>".repeat(depth / 4) + "a";
        assert_eq!(text_of_html(&open), "a");
        let templates = "<template>".repeat(depth / 4) + "a";
        assert_eq!(text_of_html(&templates), "");
        let entities = "&amp;".repeat(depth);
        assert_eq!(text_of_html(&entities).len(), depth);
    }

    proptest::proptest! {
        #[test]
        fn any_input_has_an_html_text(html in "([<>&;/!'\"=a-c# \\-]|<p>|</b>|<script>|</script>|<!--|-->|&amp;|<template>){0,60}") {
            let text = text_of_html(&html);
            proptest::prop_assert!(!text.starts_with([' ', '\n']) && !text.ends_with([' ', '\n']));
            proptest::prop_assert!(!text.contains("  ") && !text.contains("\n\n"));
        }
    }
}
