//! Adapter ids that carry their target.
//!
//! Ids of threads, frames, variables and sources are an adapter's own, and valid for one connection only. Outside of this
//! module they are numbers that carry their target; those of the first target, the only one of most sessions, are
//! unchanged.

/// An adapter's id of a thread, frame, variable or source, with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopedId {
    /// The target's index in the session.
    pub target: usize,
    /// The adapter's own id.
    pub id: i64,
}

impl ScopedId {
    /// Bits of the adapter's id: LLDB numbers some of its values from 2^32 on.
    const BITS: u32 = 40;

    /// The number in the API: below 2^53, which JSON parsers read without loss, for up to eight thousand targets.
    pub fn to_external(self) -> i64 {
        ((self.target as i64) << ScopedId::BITS) | self.id
    }

    /// The id of a number in the API.
    pub fn from_external(external: i64) -> ScopedId {
        let target = usize::try_from(external >> ScopedId::BITS).unwrap_or_default();
        ScopedId { target, id: external.wrapping_sub((target as i64) << ScopedId::BITS) }
    }

    /// Another id of the same target.
    pub fn with_id(self, id: i64) -> ScopedId {
        ScopedId { target: self.target, id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_their_target_and_those_of_the_first_target_are_unchanged() {
        for (target, id) in [(0, 0), (0, 7), (0, (1 << 32) + 5), (1, 7), (3, 2_147_483_647)] {
            let at = ScopedId { target, id };
            assert_eq!(ScopedId::from_external(at.to_external()), at);
        }
        assert_eq!(ScopedId { target: 0, id: 7 }.to_external(), 7);
        assert!(ScopedId { target: 8_000, id: i64::from(i32::MAX) }.to_external() < 1 << 53);
    }
}
