//! The definitions around a line of a source text, by their indentation.
//!
//! Does not depend on a language.

/// What stands around the lines that are visited, the outermost first.
#[derive(Debug)]
pub struct Nesting<T> {
    around: Vec<(usize, T)>,
}

impl<T> Nesting<T> {
    /// Of the first line.
    pub fn new() -> Nesting<T> {
        Nesting { around: Vec::new() }
    }

    /// Leaves what a line is not in, by its indentation.
    pub fn visit(&mut self, line: &str) {
        let depth = indentation(line);
        self.around.retain(|(outer, _)| *outer < depth);
    }

    /// Enters a definition that begins in the visited line.
    pub fn enter(&mut self, line: &str, definition: T) {
        self.around.push((indentation(line), definition));
    }

    /// The definitions around the visited line, and that which begins in it.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.around.iter().map(|(_, definition)| definition)
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
