//! Key names and chords to CDP key events, for a US keyboard.
//!
//! Keys are named as in the DOM (`key`): <https://www.w3.org/TR/uievents-key/>. Chromium expects Windows key codes.

use tether_cdp::types::DispatchKeyEvent;

// CDP's modifier bits.
const ALT: u8 = 1;
const CONTROL: u8 = 2;
const META: u8 = 4;
const SHIFT: u8 = 8;

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyboardKey {
    key: String,
    code: String,
    /// The Windows virtual key code.
    key_code: u32,
    /// The text that it types.
    text: Option<String>,
    /// Its modifier bit; 0 for other keys.
    modifier: u8,
}

/// Keys pressed together: modifiers, and at most one other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChord(Vec<KeyboardKey>);

/// Keys that type no text: name, code, key code, modifier bit.
const NAMED_KEYS: &[(&str, &str, u32, u8)] = &[
    ("Control", "ControlLeft", 17, CONTROL),
    ("Shift", "ShiftLeft", 16, SHIFT),
    ("Alt", "AltLeft", 18, ALT),
    ("Meta", "MetaLeft", 91, META),
    ("Tab", "Tab", 9, 0),
    ("Backspace", "Backspace", 8, 0),
    ("Escape", "Escape", 27, 0),
    ("Delete", "Delete", 46, 0),
    ("Insert", "Insert", 45, 0),
    ("Home", "Home", 36, 0),
    ("End", "End", 35, 0),
    ("PageUp", "PageUp", 33, 0),
    ("PageDown", "PageDown", 34, 0),
    ("ArrowLeft", "ArrowLeft", 37, 0),
    ("ArrowUp", "ArrowUp", 38, 0),
    ("ArrowRight", "ArrowRight", 39, 0),
    ("ArrowDown", "ArrowDown", 40, 0),
    ("CapsLock", "CapsLock", 20, 0),
    ("NumLock", "NumLock", 144, 0),
    ("ScrollLock", "ScrollLock", 145, 0),
    ("PrintScreen", "PrintScreen", 44, 0),
    ("Pause", "Pause", 19, 0),
    ("ContextMenu", "ContextMenu", 93, 0),
];

/// What the digits type with Shift, from 0 to 9.
const SHIFTED_DIGITS: &str = ")!@#$%^&*(";

/// The other keys that type a character: without Shift, with Shift, code, key code.
const CHARACTER_KEYS: &[(char, char, &str, u32)] = &[
    (' ', ' ', "Space", 32),
    (';', ':', "Semicolon", 186),
    ('=', '+', "Equal", 187),
    (',', '<', "Comma", 188),
    ('-', '_', "Minus", 189),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
    ('`', '~', "Backquote", 192),
    ('[', '{', "BracketLeft", 219),
    ('\\', '|', "Backslash", 220),
    (']', '}', "BracketRight", 221),
    ('\'', '"', "Quote", 222),
];

/// The name that a synonym stands for.
fn resolve_alias(name: &str) -> &str {
    match name.to_ascii_lowercase().as_str() {
        "ctrl" => "Control",
        // That of the shortcuts of the platform.
        "controlormeta" | "mod" => {
            if cfg!(target_os = "macos") {
                "Meta"
            } else {
                "Control"
            }
        }
        "cmd" | "command" | "super" | "win" => "Meta",
        "option" => "Alt",
        "esc" => "Escape",
        "return" => "Enter",
        "del" => "Delete",
        "ins" => "Insert",
        "up" => "ArrowUp",
        "down" => "ArrowDown",
        "left" => "ArrowLeft",
        "right" => "ArrowRight",
        "pgup" => "PageUp",
        "pgdn" => "PageDown",
        "plus" => "+",
        "space" | "spacebar" => " ",
        _ => name,
    }
}

impl KeyboardKey {
    /// The key of this name, or the one that types this character.
    pub fn by_name(name: &str) -> Option<KeyboardKey> {
        let name = resolve_alias(name);
        let key = |key: &str, code: &str, key_code, text: Option<&str>, modifier| {
            let text = text.map(str::to_owned);
            Some(KeyboardKey { key: key.into(), code: code.into(), key_code, text, modifier })
        };
        let mut letters = name.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            return KeyboardKey::by_character(letter);
        }
        if let Some((name, code, key_code, bit)) = NAMED_KEYS.iter().find(|it| it.0.eq_ignore_ascii_case(name)) {
            return key(name, code, *key_code, None, *bit);
        }
        if name.eq_ignore_ascii_case("Enter") {
            return key("Enter", "Enter", 13, Some("\r"), 0);
        }
        let number = name.strip_prefix(['f', 'F'])?.parse::<u32>().ok().filter(|number| (1..=24).contains(number))?;
        let name = format!("F{number}");
        key(&name, &name, 111 + number, None, 0)
    }

    /// The key that types a character, if one does.
    pub fn by_character(letter: char) -> Option<KeyboardKey> {
        let key = |code: String, key_code| {
            Some(KeyboardKey { key: letter.into(), code, key_code, text: Some(letter.into()), modifier: 0 })
        };
        match letter {
            '\n' | '\r' => KeyboardKey::by_name("Enter"),
            '\t' => KeyboardKey::by_name("Tab"),
            'a'..='z' | 'A'..='Z' => {
                let upper = letter.to_ascii_uppercase();
                key(format!("Key{upper}"), u32::from(upper))
            }
            '0'..='9' => key(format!("Digit{letter}"), u32::from(letter)),
            _ => {
                if let Some(digit) = SHIFTED_DIGITS.find(letter) {
                    return key(format!("Digit{digit}"), 48 + digit as u32);
                }
                let (_, _, code, key_code) = CHARACTER_KEYS.iter().find(|it| it.0 == letter || it.1 == letter)?;
                key((*code).to_owned(), *key_code)
            }
        }
    }

    /// Press and release, with the modifier bits `held`.
    pub fn events(&self, held: u8) -> [DispatchKeyEvent; 2] {
        [self.press_event(held | self.modifier), self.release_event(held)]
    }

    fn press_event(&self, modifiers: u8) -> DispatchKeyEvent {
        // With Control, Alt or Meta, a key is a shortcut and types no text.
        let text = self.text.clone().filter(|_| modifiers & (CONTROL | ALT | META) == 0);
        let kind = if text.is_some() { "keyDown" } else { "rawKeyDown" };
        DispatchKeyEvent { kind, unmodified_text: text.clone(), text, ..self.base_event(modifiers) }
    }

    fn release_event(&self, modifiers: u8) -> DispatchKeyEvent {
        DispatchKeyEvent { kind: "keyUp", ..self.base_event(modifiers) }
    }

    fn base_event(&self, modifiers: u8) -> DispatchKeyEvent {
        let key = match self.key.chars().next() {
            // With Shift, `key` is the shifted character.
            Some(letter) if modifiers & SHIFT != 0 && self.text.is_some() => {
                shifted_character(letter).unwrap_or(self.key.clone())
            }
            _ => self.key.clone(),
        };
        DispatchKeyEvent {
            modifiers,
            key,
            code: self.code.clone(),
            windows_virtual_key_code: self.key_code,
            location: u8::from(self.modifier != 0),
            ..DispatchKeyEvent::default()
        }
    }
}

fn shifted_character(letter: char) -> Option<String> {
    match letter {
        'a'..='z' => Some(letter.to_ascii_uppercase().into()),
        '0'..='9' => SHIFTED_DIGITS.chars().nth(letter.to_digit(10)? as usize).map(String::from),
        _ => CHARACTER_KEYS.iter().find(|it| it.0 == letter).map(|it| it.1.into()),
    }
}

impl KeyChord {
    /// Parses `Control+Shift+P`; a `+` at the end is the plus key. The error is the unknown name.
    pub fn parse(text: &str) -> Result<KeyChord, String> {
        let (names, plus) = match text.strip_suffix('+') {
            Some("") => ("", true),
            Some(rest) => (rest.strip_suffix('+').unwrap_or(rest), true),
            None => (text, false),
        };
        let mut keys = Vec::new();
        for name in names.split('+').filter(|_| !names.is_empty()) {
            keys.push(KeyboardKey::by_name(name).ok_or_else(|| name.to_owned())?);
        }
        keys.extend(plus.then(|| KeyboardKey::by_character('+')).flatten());
        let others = keys.iter().filter(|key| key.modifier == 0).count();
        // Modifiers come first, followed by at most one other key.
        let in_order = keys.iter().rev().skip(1).all(|key| key.modifier != 0);
        if keys.is_empty() || others > 1 || !in_order {
            return Err(text.to_owned());
        }
        Ok(KeyChord(keys))
    }

    /// Presses in order, releases in reverse.
    pub fn events(&self) -> Vec<DispatchKeyEvent> {
        let mut held = 0;
        let mut events = Vec::new();
        for key in &self.0 {
            held |= key.modifier;
            let mut down = key.press_event(held);
            if held & SHIFT != 0 && down.text.is_some() && down.key.chars().count() == 1 {
                down.text = Some(down.key.clone());
            }
            events.push(down);
        }
        for key in self.0.iter().rev() {
            held &= !key.modifier;
            events.push(key.release_event(held));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_events(text: &str) -> Vec<String> {
        let events = KeyChord::parse(text).unwrap_or_else(|name| panic!("{text}: {name}")).events();
        let describe = |it: DispatchKeyEvent| {
            let typed = it.text.map(|text| format!(" types {text:?}")).unwrap_or_default();
            format!("{} {} {} {} {}{typed}", it.kind, it.key, it.code, it.windows_virtual_key_code, it.modifiers)
        };
        events.into_iter().map(describe).collect()
    }

    #[test]
    fn chords_are_pressed_and_released_in_order() {
        assert_eq!(describe_events("a"), ["keyDown a KeyA 65 0 types \"a\"", "keyUp a KeyA 65 0"]);
        assert_eq!(describe_events("Enter"), ["keyDown Enter Enter 13 0 types \"\\r\"", "keyUp Enter Enter 13 0"]);
        assert_eq!(describe_events("f12"), ["rawKeyDown F12 F12 123 0", "keyUp F12 F12 123 0"]);
        assert_eq!(
            describe_events("Ctrl+Shift+P"),
            [
                "rawKeyDown Control ControlLeft 17 2",
                "rawKeyDown Shift ShiftLeft 16 10",
                "rawKeyDown P KeyP 80 10",
                "keyUp P KeyP 80 10",
                "keyUp Shift ShiftLeft 16 2",
                "keyUp Control ControlLeft 17 0",
            ]
        );
        assert_eq!(describe_events("Shift+a")[1], "keyDown A KeyA 65 8 types \"A\"");
        assert_eq!(describe_events("Shift+1")[1], "keyDown ! Digit1 49 8 types \"!\"");
        assert_eq!(describe_events("Shift+Space")[1], "keyDown   Space 32 8 types \" \"");
        assert_eq!(describe_events("Shift+Enter")[1], "keyDown Enter Enter 13 8 types \"\\r\"");
        assert_eq!(describe_events("Control+Shift+Enter")[2], "rawKeyDown Enter Enter 13 10");
        assert_eq!(describe_events("Shift+Tab")[1], "rawKeyDown Tab Tab 9 8");
        assert_eq!(describe_events("Shift+F10")[1], "rawKeyDown F10 F10 121 8");
        assert_eq!(describe_events("+")[0], "keyDown + Equal 187 0 types \"+\"");
        assert_eq!(describe_events("Control++")[1], "rawKeyDown + Equal 187 2");
        assert_eq!(describe_events("ControlOrMeta+K"), describe_events("Control+K"));
        assert_eq!(describe_events("Control")[0], "rawKeyDown Control ControlLeft 17 2");
    }

    #[test]
    fn an_invalid_chord_is_rejected_with_the_unknown_name() {
        for (text, expect) in
            [("Contrl+P", "Contrl"), ("", ""), ("a+b", "a+b"), ("P+Control", "P+Control"), ("F25", "F25")]
        {
            assert_eq!(KeyChord::parse(text), Err(expect.to_owned()), "{text}");
        }
    }

    #[test]
    fn every_ascii_character_has_a_key() {
        for letter in (' '..='~').chain(['\n', '\t']) {
            let key = KeyboardKey::by_character(letter).unwrap_or_else(|| panic!("{letter:?}"));
            assert!(key.key_code > 0 && !key.code.is_empty());
        }
        assert_eq!(KeyboardKey::by_character('ü'), None);
    }
}
