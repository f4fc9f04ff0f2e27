//! Caches: sets of lines, of which the one that was not used for longest makes room.

/// How large a cache is and how it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub bytes: u64,
    pub line: u64,
    /// Lines of a set.
    pub ways: usize,
}

/// A cache by the numbers of its lines. It keeps no data.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Of each set, the line used last first.
    lines: Vec<Line>,
    ways: usize,
    sets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    number: u64,
    written: bool,
}

/// No line has this number, for addresses have fewer bits.
const EMPTY: Line = Line { number: u64::MAX, written: false };

/// What an access met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub hit: bool,
    /// A written line that had to make room.
    pub written_back: Option<u64>,
}

impl Cache {
    /// `part`: only so much of it is there (one of `part`), at least one set.
    pub fn new(shape: Shape, part: u64) -> Cache {
        let sets = (shape.bytes / shape.line / shape.ways as u64 / part.max(1)).max(1);
        Cache { lines: vec![EMPTY; sets as usize * shape.ways], ways: shape.ways, sets }
    }

    pub fn clear(&mut self) {
        self.lines.fill(EMPTY);
    }

    /// Reads or writes a line; one that is not there is brought in.
    pub fn access(&mut self, number: u64, write: bool) -> Outcome {
        let set = &mut self.lines[(number % self.sets) as usize * self.ways..][..self.ways];
        let at = set.iter().position(|line| line.number == number);
        let last = set[self.ways - 1];
        set[..=at.unwrap_or(self.ways - 1)].rotate_right(1);
        let written = write || at.is_some() && set[0].written;
        set[0] = Line { number, written };
        let written_back = (at.is_none() && last.written).then_some(last.number);
        Outcome { hit: at.is_some(), written_back }
    }

    /// How many lines were written and are still there.
    pub fn written(&self) -> u64 {
        self.lines.iter().filter(|line| line.written).count() as u64
    }
}
