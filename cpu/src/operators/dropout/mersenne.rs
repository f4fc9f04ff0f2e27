//! The Mersenne twister MT19937 (Matsumoto and Nishimura, 1998), seeded by one integer. It gives the
//! random numbers that the standard's reference data were made with.

const SIZE: usize = 624;

pub(super) struct Mersenne {
    state: [u32; SIZE],
    next: usize,
}

impl Mersenne {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [seed; SIZE];
        for i in 1..SIZE {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Mersenne { state, next: SIZE }
    }

    /// A number in [0, 1) with 53 random bits.
    pub(super) fn uniform(&mut self) -> f64 {
        let (high, low) = ((self.bits() >> 5) as f64, (self.bits() >> 6) as f64);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    fn bits(&mut self) -> u32 {
        if self.next == SIZE {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..SIZE {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % SIZE] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % SIZE] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Mersenne;

    /// Against numpy.random.RandomState(seed).random_sample().
    #[test]
    fn numbers_are_numpys() {
        for (seed, want) in [
            (0, [0.548_813_503_927_324_8, 0.715_189_366_372_419_5]),
            (42, [0.374_540_118_847_362_5, 0.950_714_306_409_916_2]),
        ] {
            let mut random = Mersenne::new(seed);
            assert_eq!([random.uniform(), random.uniform()], want);
        }
    }
}
