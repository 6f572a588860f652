//! Classes, objects and threads of a scripted virtual machine; they are the same for the same seed.
//!
//! An object's class follows from its id, and its values from what is asked, so that answers agree with each other. Objects
//! refer to each other in circles.

use super::choices::Choices;

/// The data of a packet, written field by field. Ids have eight bytes.
#[derive(Default)]
pub struct PacketText {
    pub bytes: Vec<u8>,
}

impl PacketText {
    pub fn byte(mut self, byte: u8) -> PacketText {
        self.bytes.push(byte);
        self
    }

    pub fn int(mut self, number: i32) -> PacketText {
        self.bytes.extend(number.to_be_bytes());
        self
    }

    pub fn long(mut self, number: i64) -> PacketText {
        self.bytes.extend(number.to_be_bytes());
        self
    }

    pub fn text(mut self, text: &str) -> PacketText {
        self = self.int(text.len() as i32);
        self.bytes.extend(text.as_bytes());
        self
    }
}

/// A class: its signature, its superclass by its place, its fields, its methods.
struct ScriptedClass {
    signature: &'static str,
    superclass: usize,
    fields: &'static [(&'static str, &'static str)],
    methods: &'static [(&'static str, &'static str)],
}

const fn class(
    signature: &'static str,
    superclass: usize,
    fields: &'static [(&'static str, &'static str)],
    methods: &'static [(&'static str, &'static str)],
) -> ScriptedClass {
    ScriptedClass { signature, superclass, fields, methods }
}

const OBJECT: &str = "Ljava/lang/Object;";
const MAP_FIELDS: &[(&str, &str)] = &[("size", "I"), ("table", "[Ljava/util/HashMap$Node;"), ("head", OBJECT)];
const NODE_FIELDS: &[(&str, &str)] =
    &[("key", OBJECT), ("value", OBJECT), ("next", "Ljava/util/HashMap$Node;"), ("hash", "I"), ("after", OBJECT)];

/// A class's id is its place, counted from 1.
const CLASSES: [ScriptedClass; 32] = [
    class(OBJECT, 0, &[], &[("toString", "()Ljava/lang/String;"), ("equals", "(Ljava/lang/Object;)Z")]),
    class("Ljava/lang/String;", 1, &[("value", "[B"), ("hash", "I")], &[("length", "()I"), ("charAt", "(I)C")]),
    class("Ljava/util/Optional;", 1, &[("value", OBJECT)], &[("get", "()Ljava/lang/Object;")]),
    class("Lapp/Main;", 1, &[("value", OBJECT), ("x", "[I"), ("a", "Lapp/Main;"), ("count", "J")], MAIN_METHODS),
    class("Lapp/Main$Inner;", 4, &[("this$0", "Lapp/Main;"), ("val$n", "I")], &[("<init>", "(Lapp/Main;I)V")]),
    class("[Ljava/lang/Object;", 1, &[], &[]),
    class("[I", 1, &[], &[]),
    class("[[[D", 1, &[], &[]),
    class("Ljava/util/ArrayList;", 1, &[("size", "I"), ("elementData", "[Ljava/lang/Object;")], &[]),
    class("Ljava/util/HashMap;", 1, MAP_FIELDS, &[]),
    class("Ljava/util/HashMap$Node;", 1, NODE_FIELDS, &[]),
    class("[Ljava/util/HashMap$Node;", 1, &[], &[]),
    class("Ljava/util/LinkedHashMap;", 10, &[("head", "Ljava/util/LinkedHashMap$Entry;")], &[]),
    class("Ljava/util/LinkedHashMap$Entry;", 11, &[("after", "Ljava/util/LinkedHashMap$Entry;")], &[]),
    class("Ljava/util/HashSet;", 1, &[("map", "Ljava/util/HashMap;")], &[]),
    class("Ljava/util/LinkedList;", 1, &[("size", "I"), ("first", "Ljava/util/LinkedList$Node;")], &[]),
    class("Ljava/util/LinkedList$Node;", 1, &[("item", OBJECT), ("next", "Ljava/util/LinkedList$Node;")], &[]),
    class("Ljava/util/TreeMap;", 1, &[("size", "I"), ("root", "Ljava/util/TreeMap$Entry;")], &[]),
    class("Ljava/util/TreeMap$Entry;", 1, TREE_FIELDS, &[]),
    class("Ljava/util/ArrayDeque;", 1, &[("elements", "[Ljava/lang/Object;"), ("head", "I"), ("tail", "I")], &[]),
    class("Ljava/util/Collections$UnmodifiableCollection;", 1, &[("c", "Ljava/util/Collection;")], &[]),
    class("Ljava/util/ImmutableCollections$ListN;", 1, &[("elements", "[Ljava/lang/Object;")], &[]),
    class("Ljava/util/ImmutableCollections$MapN;", 1, &[("size", "I"), ("table", "[Ljava/lang/Object;")], &[]),
    class("Ljava/util/concurrent/ConcurrentHashMap;", 1, &[("table", "[Ljava/util/HashMap$Node;")], &[]),
    class("Ljava/lang/Integer;", 1, &[("value", "I")], &[("valueOf", "(I)Ljava/lang/Integer;")]),
    class("Ljava/lang/Character;", 1, &[("value", "C")], &[]),
    class("Ljava/lang/Thread;", 1, &[("name", "Ljava/lang/String;")], &[("run", "()V")]),
    class("Ljava/lang/Class;", 1, &[("name", "Ljava/lang/String;")], &[]),
    class("Ljava/lang/Throwable;", 1, &[("detailMessage", "Ljava/lang/String;"), ("cause", OBJECT)], &[]),
    class("Ljava/lang/Enum;", 1, &[("name", "Ljava/lang/String;"), ("ordinal", "I")], &[]),
    class("Lapp/Loop;", 32, &[("value", "Lapp/Loop;")], &[("run", "()V")]),
    class("", 1, &[("", ""), ("ä", "Q"), ("n", "[")], &[("", ""), ("m", "("), ("n", "(L"), ("o", ")V")]),
];
const TREE_FIELDS: &[(&str, &str)] = &[
    ("key", OBJECT),
    ("value", OBJECT),
    ("left", "Ljava/util/TreeMap$Entry;"),
    ("right", "Ljava/util/TreeMap$Entry;"),
    ("parent", "Ljava/util/TreeMap$Entry;"),
];
const MAIN_METHODS: &[(&str, &str)] = &[
    ("main", "([Ljava/lang/String;)V"),
    ("run", "(II)I"),
    ("run", "(JLjava/lang/Object;)J"),
    ("<init>", "()V"),
    ("<clinit>", "()V"),
    ("lambda$main$0", "()V"),
    ("toString", "()Ljava/lang/String;"),
];
/// The most frames that a thread has, unless it has a number at the edge.
const FRAMES: usize = 12;
const THREADS: i64 = 5;
const VARIABLES: [(&str, &str); 6] =
    [("this", "Lapp/Main;"), ("value", OBJECT), ("x", "[I"), ("a", "I"), ("text", "Ljava/lang/String;"), ("d", "D")];

pub struct JavaWorld {
    seed: u64,
}

impl JavaWorld {
    pub fn new(seed: u64) -> JavaWorld {
        JavaWorld { seed }
    }

    /// The data of the reply to a command, by its number and its data.
    pub fn reply(&self, number: (u8, u8), asked: &[u8]) -> Vec<u8> {
        let salt = self.seed ^ u64::from(number.0) << 32 ^ u64::from(number.1) << 40;
        let choices = &Choices::of_bytes(salt, asked);
        let id = read_id(asked, 0);
        let text = PacketText::default();
        match number {
            (1, 1) => text.text("scripted").int(17).int(0).text("17").text("scripted machine"),
            (1, 2) | (1, 20) => list_classes(number.1 == 20, &asked[asked.len().min(4)..]),
            (1, 4) => (1..=THREADS).fold(text.int(THREADS as i32), PacketText::long),
            (1, 11) => text.long(2 + 32 * choices.number().clamp(0, 99)),
            (1, 13) => text.text("/app").int(1).text("/app/classes").int(0),
            (1, 17) => (0..32).fold(text, |text, at| text.byte(u8::from(at != 8 && at != 9))),
            (2, 1) => text.text(class_of(id).signature),
            (2, 3) => text.int(choices.pick(&[1, 0x21, 0x200, 0x4000, -1])),
            (2, 7) => text.text(choices.pick(&["Main.java", "Main.java", "", "ä/../b", "/etc/x"])),
            (2, 10) => text.int(1).long(21),
            (2, 14) => declared(class_of(id).fields, id),
            (2, 15) => declared(class_of(id).methods, id),
            (3, 1) => text.long(class_of(id).superclass as i64),
            (6, 1) => self.line_table(choices),
            (6, 5) => variable_table(choices),
            (9, 1) | (17, 1) => text.byte(kind_of(class_place(id))).long(class_place(id) as i64),
            (2, 6) | (9, 2) => self.field_values(asked, choices),
            (16, 1) => slot_values(asked, choices),
            (3, 3) | (5, 1) | (9, 6) => tagged(value(text, b'L', choices), choices.number() / 7),
            (3, 4) => tagged(tagged(text, object_id(choices)), 0),
            (4, 1) | (11, 9) | (16, 3) => tagged(text, object_id(choices)),
            (10, 1) => text.text(&choices.text()),
            (11, 1) => text.text(choices.pick(&["main", "", "ä", "pool-1-thread-1"])),
            (11, 4) => text.int(choices.pick(&[1, 0, 2, 3, 4, -1])).int(choices.pick(&[1, 0])),
            (11, 6) => self.frames(asked, choices),
            (11, 7) => text.int(frame_count(choices_of_thread(self.seed, id))),
            (11, 8) => tagged(text.int(1), object_id(choices)),
            (11, 12) => text.int(choices.pick(&[1, 0, 2, -1])),
            (13, 1) => text.int(choices.number() as i32),
            (13, 2) => array_region(asked, id, choices),
            (2, 2) | (2, 11) => text.long(object_id(choices)),
            _ => text,
        }
        .bytes
    }

    /// Adds an event to a packet.
    pub fn event(&self, text: PacketText, choices: &Choices, (kind, request): (u8, i32)) -> PacketText {
        let thread = 1 + choices.below(THREADS as usize) as i64;
        let text = text.byte(kind).int(request);
        let place = |text: PacketText| location(text, choices);
        match kind {
            90 | 6 | 7 => text.long(thread),
            99 => text,
            8 => {
                let class = 1 + choices.below(CLASSES.len());
                let text = text.long(thread).byte(kind_of(class)).long(class as i64);
                text.text(CLASSES[class - 1].signature).int(7)
            }
            9 => text.text(&choices.text()),
            43 | 44 => place(tagged(text.long(thread), object_id(choices))),
            45 => place(tagged(text.long(thread), object_id(choices))).long(choices.number()),
            46 => place(tagged(text.long(thread), object_id(choices))).byte(choices.byte()),
            42 => value(place(text.long(thread)), b'L', choices),
            4 => {
                let thrown = tagged(place(text.long(thread)), object_id(choices));
                if choices.is_one_in(2) { place(thrown) } else { thrown.byte(0).long(0).long(0).long(0) }
            }
            20 | 21 => {
                let class = 1 + choices.below(CLASSES.len());
                let text = place(text.long(thread)).byte(1).long(class as i64).long(class as i64 * 16);
                let text = tagged(text, object_id(choices));
                if kind == 21 { value(text, b'I', choices) } else { text }
            }
            _ => place(text.long(thread)),
        }
    }

    fn line_table(&self, choices: &Choices) -> PacketText {
        let count = choices.below(10);
        let text = PacketText::default().long(0).long(choices.number()).int(count as i32);
        (0..count).fold(text, |text, at| match choices.is_one_in(20) {
            true => text.long(choices.number()).int(choices.number() as i32),
            false => text.long(3 * at as i64).int(1 + at as i32),
        })
    }

    fn frames(&self, asked: &[u8], choices: &Choices) -> PacketText {
        let (first, wanted) = (read_int(asked, 8), read_int(asked, 12));
        let left = frame_count(choices_of_thread(self.seed, read_id(asked, 0))).saturating_sub(first).clamp(0, 40);
        let count = if wanted < 0 { left } else { left.min(wanted) };
        let text = PacketText::default().int(count);
        (0..count).fold(text, |text, at| location(text.long(i64::from(first) + i64::from(at) + 1000), choices))
    }

    /// As many as were asked for, each of the type of its field.
    fn field_values(&self, asked: &[u8], choices: &Choices) -> PacketText {
        let count = read_int(asked, 8).clamp(0, 1000);
        (0..count).fold(PacketText::default().int(count), |text, at| {
            let field = read_id(asked, 12 + 8 * at as usize);
            let fields = class_of(field / 16).fields;
            let signature = fields.get((field % 16) as usize).map_or(OBJECT, |(_, signature)| signature);
            value(text, signature.bytes().next().unwrap_or(b'L'), choices)
        })
    }
}

/// How many frames a thread has is the same for each request.
fn choices_of_thread(seed: u64, thread: i64) -> Choices {
    Choices::of_bytes(seed, &thread.to_be_bytes())
}

fn frame_count(choices: Choices) -> i32 {
    match choices.below(10) {
        9 => choices.pick(&[-1, 0, i32::MAX, i32::MIN]),
        _ => choices.below(FRAMES) as i32,
    }
}

/// Those with that signature, or all.
fn list_classes(all: bool, signature: &[u8]) -> PacketText {
    let is_meant = |class: &&ScriptedClass| all || class.signature.as_bytes() == signature;
    let count = CLASSES.iter().filter(is_meant).count();
    let places = (1..).zip(&CLASSES).filter(|(_, class)| is_meant(class));
    places.fold(PacketText::default().int(count as i32), |text, (place, class)| {
        let text = text.byte(kind_of(place)).long(place as i64);
        if all { text.text(class.signature).text("").int(7) } else { text.int(7) }
    })
}

/// Fields or methods: the id, the name, the signature, no generic signature, the modifiers.
fn declared(members: &[(&str, &str)], class: i64) -> PacketText {
    let text = PacketText::default().int(members.len() as i32);
    (0..).zip(members).fold(text, |text, (at, (name, signature))| {
        let is_static = matches!(*name, "main" | "run" | "count" | "<clinit>" | "valueOf");
        text.long(class.wrapping_mul(16).wrapping_add(at)).text(name).text(signature).text("").int(if is_static {
            9
        } else {
            1
        })
    })
}

fn variable_table(choices: &Choices) -> PacketText {
    let text = PacketText::default().int(choices.pick(&[1, 0, 2, -1])).int(VARIABLES.len() as i32);
    (0..).zip(VARIABLES).fold(text, |text, (slot, (name, signature))| {
        let (from, length) = if choices.is_one_in(8) { (choices.number(), -1) } else { (0, 1000) };
        text.long(from).text(name).text(signature).text("").int(length).int(slot)
    })
}

fn slot_values(asked: &[u8], choices: &Choices) -> PacketText {
    let count = read_int(asked, 16).clamp(0, 1000);
    (0..count).fold(PacketText::default().int(count), |text, at| {
        let tag = asked.get(20 + 5 * at as usize + 4).copied().unwrap_or(b'I');
        value(text, tag, choices)
    })
}

fn array_region(asked: &[u8], array: i64, choices: &Choices) -> PacketText {
    let count = read_int(asked, 12).clamp(0, 2000);
    let tag = class_of(array).signature.as_bytes().get(1).copied().unwrap_or(b'I');
    let text = PacketText::default().byte(tag).int(count);
    (0..count).fold(text, |text, _| match tag {
        b'L' | b'[' => value(text, tag, choices),
        _ => primitive(text, tag, choices),
    })
}

/// A value with its tag.
fn value(text: PacketText, tag: u8, choices: &Choices) -> PacketText {
    match tag {
        b'Z' | b'B' | b'C' | b'S' | b'I' | b'J' | b'F' | b'D' => primitive(text.byte(tag), tag, choices),
        _ => tagged(text, object_id(choices)),
    }
}

fn primitive(text: PacketText, tag: u8, choices: &Choices) -> PacketText {
    let number = choices.number();
    match tag {
        b'Z' | b'B' => text.byte(number as u8),
        b'C' | b'S' => text.byte((number >> 8) as u8).byte(number as u8),
        b'J' | b'D' => text.long(number),
        _ => text.int(number as i32),
    }
}

/// An object with the tag of its class.
fn tagged(text: PacketText, id: i64) -> PacketText {
    let tag = match class_of(id).signature {
        "Ljava/lang/String;" => b's',
        "Ljava/lang/Thread;" => b't',
        "Ljava/lang/Class;" => b'c',
        signature if signature.starts_with('[') => b'[',
        _ => b'L',
    };
    text.byte(tag).long(id)
}

/// Often an `Optional`, whose value is one again.
fn object_id(choices: &Choices) -> i64 {
    match choices.below(8) {
        0 => 0,
        1 | 2 => 3,
        _ => 1 + choices.below(64) as i64,
    }
}

fn location(text: PacketText, choices: &Choices) -> PacketText {
    let class = if choices.is_one_in(3) { 1 + choices.below(CLASSES.len()) as i64 } else { 4 };
    let method = class * 16 + choices.below(8) as i64;
    let index = if choices.is_one_in(16) { choices.number() } else { choices.below(20) as i64 };
    text.byte(1).long(class).long(method).long(index)
}

fn class_place(object: i64) -> usize {
    (object.unsigned_abs() as usize).wrapping_sub(1) % CLASSES.len() + 1
}

fn class_of(id: i64) -> &'static ScriptedClass {
    &CLASSES[class_place(id) - 1]
}

fn kind_of(place: usize) -> u8 {
    match CLASSES[(place - 1) % CLASSES.len()].signature {
        signature if signature.starts_with('[') => 3,
        _ => 1,
    }
}

fn read_id(asked: &[u8], at: usize) -> i64 {
    asked.get(at..at + 8).map_or(0, |bytes| i64::from_be_bytes(bytes.try_into().unwrap()))
}

fn read_int(asked: &[u8], at: usize) -> i32 {
    asked.get(at..at + 4).map_or(0, |bytes| i32::from_be_bytes(bytes.try_into().unwrap()))
}
