//! Chance that can be repeated.

/// Numbers that look random (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// From `AMDEMU_TEST_SEED`, or of today's choice; the seed is printed.
    pub fn new() -> Random {
        let given = std::env::var("AMDEMU_TEST_SEED").ok().map(|text| text.parse().expect("a number"));
        let now = || {
            let time = std::time::UNIX_EPOCH.elapsed().expect("a time after 1970");
            time.as_nanos() as u64
        };
        let seed = given.unwrap_or_else(now);
        println!("AMDEMU_TEST_SEED={seed} repeats this");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
