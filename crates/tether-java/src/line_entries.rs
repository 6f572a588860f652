//! Where a line begins: of all its parts in a method, those at which control comes from another line. A breakpoint there stops
//! once for each pass.
//!
//! | the parts of a line | kept |
//! |---|---|
//! | the head of a `for` over several lines: before the loop, and at each turn | both |
//! | copies of a `finally`, one for each way out | all |
//! | a call whose arguments are on further lines | its beginning, not the call after them |
//! | a `case` with a guard or a record pattern | its beginning |
//! | what javac gives the line of the last `case`, but does for another one | none |
//!
//! Does not depend on a virtual machine.

use std::collections::{BTreeMap, BTreeSet};

use tether_jdwp::commands::reference_types::LineEntry;

use super::bytecode::{GOTO, INVOKE_DYNAMIC, Instruction, LOOKUP_SWITCH, NEW, TABLE_SWITCH, decode_instructions};
use super::class_file::ConstantPool;

/// What javac throws where the accessor of a record pattern fails.
const MATCH_EXCEPTION: &str = "java/lang/MatchException";

/// The code of a method with its lines.
pub(crate) struct MethodCode<'a> {
    instructions: BTreeMap<u64, Instruction>,
    /// The instructions that may go on with each.
    before: BTreeMap<u64, Vec<u64>>,
    /// How much lies on the operand stack before each. Where an exception is caught, nothing.
    depths: BTreeMap<u64, i64>,
    lines: &'a [LineEntry],
    pool: ConstantPool<'a>,
}

impl<'a> MethodCode<'a> {
    /// `lines` are in the order of the code. `None`: the code cannot be read.
    pub(crate) fn read(code: &[u8], pool: ConstantPool<'a>, lines: &'a [LineEntry]) -> Option<MethodCode<'a>> {
        let instructions = decode_instructions(code, &pool)?;
        let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (at, instruction) in &instructions {
            for next in &instruction.next {
                before.entry(*next).or_default().push(*at);
            }
        }
        let depths = stack_depths(&instructions);
        Some(MethodCode { instructions, before, depths, lines, pool })
    }

    /// The places in the code where a line begins, in order; never empty where the line has code.
    pub(crate) fn line_entries(&self, line: i32) -> Vec<u64> {
        let of_line = || self.lines.iter().filter(|entry| entry.line == line).map(|entry| entry.index);
        let own: Vec<u64> = of_line().filter(|index| !self.is_for_another_case(*index)).collect();
        let mut entries: Vec<u64> = own.iter().copied().filter(|index| self.comes_from_elsewhere(*index)).collect();
        if entries.iter().any(|index| self.depth(*index) == 0) {
            entries.retain(|index| self.depth(*index) == 0);
        }
        match (entries.is_empty(), own.first().copied().or_else(|| of_line().next())) {
            (true, first) => first.into_iter().collect(),
            (false, _) => entries,
        }
    }

    fn depth(&self, index: u64) -> i64 {
        self.depths.get(&index).copied().unwrap_or(0)
    }

    fn line_at(&self, index: u64) -> i32 {
        super::java_vm::line_of(self.lines, index)
    }

    /// The instructions of the part of a line that begins there.
    fn part(&self, start: u64) -> impl Iterator<Item = (u64, &Instruction)> {
        let end = self.lines.iter().map(|entry| entry.index).find(|index| *index > start).unwrap_or(u64::MAX);
        self.instructions.range(start..end).map(|(at, instruction)| (*at, instruction))
    }

    /// The beginning of the part in which an instruction is.
    fn part_start(&self, index: u64) -> u64 {
        self.lines.iter().map(|entry| entry.index).take_while(|start| *start <= index).last().unwrap_or(0)
    }

    /// Whether control can come to a part from code of another line, or from nowhere: the method begins there, or an exception
    /// is caught.
    fn comes_from_elsewhere(&self, start: u64) -> bool {
        let line = self.line_at(start);
        let from = self.lines_before(start);
        from.is_empty() || from.iter().any(|before| *before != line)
    }

    /// The lines from which control comes to an instruction, through what javac made for other cases.
    fn lines_before(&self, start: u64) -> BTreeSet<i32> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut left: Vec<u64> = self.before.get(&start).cloned().unwrap_or_default();
        while let Some(before) = left.pop() {
            let part = self.part_start(before);
            if !(self.is_dispatch_or_restart(part) || self.is_receiver_of_accessor(part)) {
                found.insert(self.line_at(before));
            } else if seen.insert(part) {
                let into = self.part(part).filter_map(|(at, _)| self.before.get(&at)).flatten();
                left.extend(into.filter(|from| self.part_start(**from) != part));
            }
        }
        found
    }

    /// Whether a part has the line of a `case` that it is not for.
    fn is_for_another_case(&self, start: u64) -> bool {
        self.is_dispatch_or_restart(start) || self.is_receiver_of_accessor(start) || self.throws_match_exception(start)
    }

    /// Whether a part chooses among the record patterns of one `case`, or goes on with the next one.
    fn is_dispatch_or_restart(&self, start: u64) -> bool {
        let line = self.line_at(start);
        let part: Vec<(u64, &Instruction)> = self.part(start).collect();
        let targets = part
            .array_windows()
            .find_map(|[one, other]| self.is_pattern_switch(one.1, other.1).then_some(&other.1.next));
        if let Some(targets) = targets {
            // The line of the switch itself is before those of its cases.
            return targets.iter().any(|target| self.line_at(*target) < line);
        }
        let [number, store, goto] = part.as_slice() else { return false };
        let is_restart = matches!(number.1.opcode, 2..=8 | 16 | 17)
            && matches!(store.1.opcode, 54 | 59..=62)
            && goto.1.opcode == GOTO;
        is_restart && goto.1.next.first().is_some_and(|to| *to < start && self.is_switch_at(*to))
    }

    /// Whether the two loads of a pattern switch and the switch are there.
    fn is_switch_at(&self, at: u64) -> bool {
        let next: Vec<&Instruction> =
            self.instructions.range(at..).take(5).map(|(_, instruction)| instruction).collect();
        next.array_windows().any(|[one, other]| self.is_pattern_switch(one, other))
    }

    fn is_pattern_switch(&self, one: &Instruction, other: &Instruction) -> bool {
        one.opcode == INVOKE_DYNAMIC && matches!(other.opcode, TABLE_SWITCH | LOOKUP_SWITCH)
    }

    /// Whether a part only loads the record whose accessor is called on the line from which control comes.
    fn is_receiver_of_accessor(&self, start: u64) -> bool {
        let part: Vec<(u64, &Instruction)> = self.part(start).collect();
        let [(_, load)] = part.as_slice() else { return false };
        let Some(next) = load.next.first().filter(|_| matches!(load.opcode, 25 | 42..=45)) else { return false };
        let line = self.line_at(*next);
        let mut before = self.before.get(&start).into_iter().flatten().map(|before| self.line_at(*before)).peekable();
        line != self.line_at(start) && before.peek().is_some() && before.all(|before| before == line)
    }

    fn throws_match_exception(&self, start: u64) -> bool {
        let is_made =
            |it: &Instruction| it.opcode == NEW && self.pool.class_name(it.operand).as_deref() == Some(MATCH_EXCEPTION);
        !self.before.contains_key(&start) && start > 0 && self.part(start).any(|(_, it)| is_made(it))
    }
}

/// What lies on the operand stack before each instruction, by following the code from its beginning and from where exceptions
/// are caught.
fn stack_depths(instructions: &BTreeMap<u64, Instruction>) -> BTreeMap<u64, i64> {
    let mut depths = BTreeMap::new();
    for start in instructions.keys() {
        let mut left = vec![(*start, 0i64)];
        while let Some((at, depth)) = left.pop() {
            let Some(instruction) = instructions.get(&at).filter(|_| !depths.contains_key(&at)) else { continue };
            depths.insert(at, depth);
            // The caught exception is on the stack, too.
            let caught = i64::from(at == *start && at > 0);
            let after = depth.saturating_add(caught).saturating_add(instruction.stack_change);
            left.extend(instruction.next.iter().map(|next| (*next, after)));
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries_of(code: &[u8], lines: &[(u64, i32)], line: i32) -> Vec<u64> {
        let lines: Vec<LineEntry> =
            lines.iter().map(|(index, line)| LineEntry { index: *index, line: *line }).collect();
        let pool = ConstantPool::of_bytes(1, &[]).unwrap();
        MethodCode::read(code, pool, &lines).unwrap().line_entries(line)
    }

    #[test]
    fn a_line_begins_where_control_comes_from_another_line() {
        // `iconst_0; istore_1; iload_1; ifne end; nop; iinc; goto iload_1; return`: the head of a loop, its body, its head.
        let looped = [3, 60, 27, 154, 0, 10, 0, 132, 1, 1, 167, 0xff, 0xf8, 177];
        let lines = [(0, 1), (6, 2), (7, 1), (13, 3)];
        assert_eq!(entries_of(&looped, &lines, 1), [0, 7]);
        assert_eq!(entries_of(&looped, &[(0, 1), (7, 1), (13, 3)], 1), [0], "it goes on within the line");
        // `iconst_0; iconst_1; iadd; ireturn`: the addition is in the middle of an expression.
        assert_eq!(entries_of(&[3, 4, 96, 172], &[(0, 1), (1, 2), (2, 1)], 1), [0]);
        assert_eq!(entries_of(&[3, 4, 96, 172], &[(0, 1), (1, 2), (2, 1)], 2), [1], "it has no other beginning");
    }

    proptest! {
        #[test]
        fn any_code_is_read_without_a_panic(
            code in prop::collection::vec(any::<u8>(), 0..200),
            lines in prop::collection::vec((0..200u64, 0..4i32), 0..20),
            constants in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut lines: Vec<LineEntry> = lines.into_iter().map(|(index, line)| LineEntry { index, line }).collect();
            lines.sort_by_key(|entry| entry.index);
            let Some(pool) = ConstantPool::of_bytes(constants.len() % 8, &constants) else { return Ok(()) };
            if let Some(read) = MethodCode::read(&code, pool, &lines) {
                for line in 0..4 {
                    let has_code = lines.iter().any(|entry| entry.line == line);
                    prop_assert_eq!(read.line_entries(line).is_empty(), !has_code);
                }
            }
        }
    }
}
