//! The instructions of a method (JVMS 6): where each goes on, and what it does to the operand stack.
//!
//! Everything is checked against the bytes that there are. Does not depend on lines.

use std::collections::BTreeMap;

use super::class_file::ConstantPool;

/// By opcode: the change of the operand stack, from `0` for -4. Those that depend on a type or a number are counted as 0 here.
const STACK_CHANGES: &[u8; 202] = b"\
    4555555556655566555565656555556666555566665555343433333232333332222333322223333101011113255566643232\
    3232323232323232444433333332323245453344553434441331133333322222222454334444444444444445444344334433\
    44";
/// By opcode: how many bytes an instruction has. Switches and `wide` have their own.
const LENGTHS: &[u8; 202] = b"\
    1111111111111111232332222211111111111111111111111111112222211111111111111111111111111111111111111111\
    1111111111111111111111111111111131111111111111111111133333333333333332111111113333333553231133111433\
    55";

pub(crate) const GOTO: u8 = 167;
pub(crate) const TABLE_SWITCH: u8 = 170;
pub(crate) const LOOKUP_SWITCH: u8 = 171;
pub(crate) const INVOKE_DYNAMIC: u8 = 186;
pub(crate) const NEW: u8 = 187;
const GOTO_WIDE: u8 = 200;
/// The most targets of one switch that are read.
const MAX_TARGETS: i32 = 100_000;

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub opcode: u8,
    /// The constant that it refers to, or its number.
    pub operand: u32,
    /// The instructions that may follow it.
    pub next: Vec<u64>,
    /// The change of the operand stack, in slots.
    pub stack_change: i64,
}

/// The instructions of a method by their places; `None`: they cannot be read.
pub(crate) fn decode_instructions(code: &[u8], pool: &ConstantPool<'_>) -> Option<BTreeMap<u64, Instruction>> {
    let (mut found, mut at) = (BTreeMap::new(), 0usize);
    while at < code.len() {
        let (instruction, length) = decode_instruction(code, at, pool)?;
        found.insert(u64::try_from(at).ok()?, instruction);
        at = at.checked_add(length)?;
    }
    Some(found)
}

fn decode_instruction(code: &[u8], at: usize, pool: &ConstantPool<'_>) -> Option<(Instruction, usize)> {
    let opcode = *code.get(at)?;
    if opcode == TABLE_SWITCH || opcode == LOOKUP_SWITCH {
        return decode_switch(code, at, opcode);
    }
    // `wide` doubles the number of a variable, and of `iinc` the other one, too.
    let (opcode, length) = match opcode {
        196 => (*code.get(at.checked_add(1)?)?, if code.get(at.checked_add(1)?) == Some(&132) { 6 } else { 4 }),
        opcode => (opcode, usize::from(LENGTHS.get(usize::from(opcode))?.checked_sub(b'0')?)),
    };
    let operand = match length {
        1 => 0,
        2 => u32::from(*code.get(at.checked_add(1)?)?),
        _ => u32::from(u16::from_be_bytes(bytes_at(code, at.checked_add(1)?)?)),
    };
    let base = i64::from(*STACK_CHANGES.get(usize::from(opcode))?).checked_sub(i64::from(b'4'))?;
    let of_type = match opcode {
        178..=186 => type_change(opcode, pool.descriptor(operand)?)?,
        // Each dimension is taken from the stack.
        197 => 1i64.checked_sub(i64::from(*code.get(at.checked_add(3)?)?))?,
        _ => 0,
    };
    let after = i64::try_from(at.checked_add(length)?).ok()?;
    let jump = match opcode {
        153..=168 | 198 | 199 => Some(i64::from(i16::from_be_bytes(bytes_at(code, at.checked_add(1)?)?))),
        GOTO_WIDE | 201 => Some(i64::from(i32::from_be_bytes(bytes_at(code, at.checked_add(1)?)?))),
        _ => None,
    };
    let jump = jump.map(|offset| i64::try_from(at).ok()?.checked_add(offset));
    let goes_on = !matches!(opcode, GOTO | GOTO_WIDE | 169 | 172..=177 | 191);
    let mut next = Vec::new();
    for place in goes_on.then_some(Some(after)).into_iter().chain(jump) {
        next.push(u64::try_from(place?).ok()?);
    }
    Some((Instruction { opcode, operand, next, stack_change: base.checked_add(of_type)? }, length))
}

fn decode_switch(code: &[u8], at: usize, opcode: u8) -> Option<(Instruction, usize)> {
    // Its numbers begin at a multiple of four.
    let start = at.checked_add(4)? & !3;
    let number = |index: usize| Some(i32::from_be_bytes(bytes_at(code, start.checked_add(index.checked_mul(4)?)?)?));
    // The offsets: the one of the default, and after `first` numbers every `step`th.
    let (count, first, step) = match opcode {
        TABLE_SWITCH => (number(2)?.checked_sub(number(1)?)?.checked_add(1)?, 3usize, 1usize),
        _ => (number(1)?, 3, 2),
    };
    let count = usize::try_from(count).ok().filter(|_| count <= MAX_TARGETS)?;
    let offsets = std::iter::once(0).chain((0..count).map(|it| it.saturating_mul(step).saturating_add(first)));
    let mut next = Vec::new();
    for index in offsets {
        next.push(u64::try_from(i64::try_from(at).ok()?.checked_add(i64::from(number(index)?))?).ok()?);
    }
    let head: usize = if opcode == TABLE_SWITCH { 3 } else { 2 };
    let end = start.checked_add(head.saturating_add(count.saturating_mul(step)).saturating_mul(4))?;
    Some((Instruction { opcode, operand: 0, next, stack_change: -1 }, end.checked_sub(at)?))
}

/// What a field or a call does to the operand stack.
fn type_change(opcode: u8, descriptor: &str) -> Option<i64> {
    let slots = |kind: &str| match kind.as_bytes().first() {
        Some(b'V') => 0i64,
        Some(b'J' | b'D') => 2,
        _ => 1,
    };
    Some(match opcode {
        178 => slots(descriptor),
        179 => slots(descriptor).checked_neg()?,
        180 => slots(descriptor).checked_sub(1)?,
        181 => slots(descriptor).checked_add(1)?.checked_neg()?,
        _ => {
            let (arguments, returned) = super::signatures::method_types(descriptor);
            let receiver = i64::from(!matches!(opcode, 184 | INVOKE_DYNAMIC));
            let taken = arguments.iter().map(|it| slots(it)).sum::<i64>().checked_add(receiver)?;
            slots(returned).checked_sub(taken)?
        }
    })
}

fn bytes_at<const SIZE: usize>(code: &[u8], at: usize) -> Option<[u8; SIZE]> {
    code.get(at..at.checked_add(SIZE)?)?.try_into().ok()
}
