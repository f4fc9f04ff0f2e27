//! A source of random numbers (xorshift64).

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The seed is the variable AMDEMU_TEST_SEED, or the time.
    pub fn seed() -> u64 {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let given = std::env::var("AMDEMU_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        given.unwrap_or_else(|| time.map_or(1, |time| time.as_nanos() as u64))
    }

    /// Below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as u32) % end
    }

    pub fn bits(&mut self, count: u32) -> u32 {
        self.below(1 << count)
    }

    /// Once in `times`.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }
}
