//! Plans of Fourier transforms: how a length is factored, and the tables that kernels read. They are kept for each device,
//! the ones that were not used for longest going first, as PyTorch keeps those of cuFFT and rocFFT.

use std::collections::HashMap;
use std::f64::consts::TAU;
use std::sync::{Arc, Mutex, PoisonError};

use rukh_deps::fft::Fft;

use crate::error::Result;
use crate::tensor::{Buffer, C128};

/// Plans that are kept when nothing else was said, as many as PyTorch keeps.
const MOST_PLANS: usize = 4096;

/// Exponents below this are in the table `fine`, multiples of it in `coarse` (`fft.h`).
const FINE: usize = 2048;

/// The kernels count points in 31 bits.
const MOST_POINTS: usize = 1 << 31;

/// What a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) length: usize,
    pub(super) inverse: bool,
    /// Whether it is computed in f64, and not in f32.
    pub(super) double: bool,
}

/// A transform of smooth length: one pass over lines that a workgroup holds, or two, or one for each stage.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Smooth {
    One(Pass),
    /// Columns of a matrix, and then its rows.
    Two {
        columns: Pass,
        rows: Pass,
        fine: u64,
        coarse: u64,
    },
    /// Stages of these radices, one after the other.
    Many {
        length: usize,
        radices: Vec<u8>,
        fine: u64,
        coarse: u64,
    },
}

/// The transform of lines of a length, with the address of its roots of unity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pass {
    pub(super) length: usize,
    pub(super) radices: Vec<u8>,
    pub(super) roots: u64,
}

/// How a transform is computed.
#[derive(Debug)]
pub(super) enum Way {
    Smooth(Smooth),
    /// By Bluestein's algorithm, as a cyclic convolution with a chirp: "A linear filtering approach to the computation of
    /// discrete Fourier transform", IEEE Transactions on Audio and Electroacoustics 18 (1970).
    Chirp {
        /// The length of the convolution, a power of two, and its transforms there and back.
        length: usize,
        there: Smooth,
        back: Smooth,
        /// Addresses of the chirp, and of the spectrum of its conjugate.
        chirp: u64,
        spectrum: u64,
    },
}

/// A plan with its tables, which lie on the device as long as somebody uses it.
pub(super) struct FourierPlan {
    pub(super) way: Way,
    _tables: Buffer,
}

/// The plans of a device.
pub(crate) struct FourierPlans(Mutex<Kept>);

struct Kept {
    plans: HashMap<Key, (Arc<FourierPlan>, u64)>,
    most: usize,
    uses: u64,
}

impl Default for FourierPlans {
    fn default() -> Self {
        FourierPlans(Mutex::new(Kept { plans: HashMap::new(), most: MOST_PLANS, uses: 0 }))
    }
}

impl FourierPlans {
    /// How many plans are kept.
    pub(crate) fn count(&self) -> usize {
        self.kept().plans.len()
    }

    /// How many may be kept.
    pub(crate) fn limit(&self) -> usize {
        self.kept().most
    }

    /// Sets how many may be kept; those that were not used for longest go.
    pub(crate) fn set_limit(&self, most: usize) {
        let mut kept = self.kept();
        kept.most = most;
        kept.shrink();
    }

    /// Lets all go that no session needs.
    pub(crate) fn clear(&self) {
        self.kept().plans.clear();
    }

    /// The plan of a transform, which is made where it is not kept; `None` where the length is out of the kernels' reach.
    /// `upload` copies tables to the device.
    pub(super) fn get(
        &self,
        key: Key,
        upload: impl FnOnce(&[u8]) -> Result<Buffer>,
    ) -> Result<Option<Arc<FourierPlan>>> {
        let mut kept = self.kept();
        kept.uses += 1;
        let now = kept.uses;
        if let Some((plan, last)) = kept.plans.get_mut(&key) {
            *last = now;
            return Ok(Some(plan.clone()));
        }
        let Some(plan) = FourierPlan::new(key, upload)? else { return Ok(None) };
        let plan = Arc::new(plan);
        kept.plans.insert(key, (plan.clone(), now));
        kept.shrink();
        Ok(Some(plan))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn shrink(&mut self) {
        while self.plans.len() > self.most {
            let Some(oldest) = self.plans.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key)
            else {
                return;
            };
            self.plans.remove(&oldest);
        }
    }
}

impl FourierPlan {
    fn new(key: Key, upload: impl FnOnce(&[u8]) -> Result<Buffer>) -> Result<Option<Self>> {
        let most = points(key.double);
        let mut tables = Tables { double: key.double, bytes: Vec::new() };
        let way = if let Some(smooth) = Smooth::new(key.length, key.inverse, most, &mut tables) {
            Way::Smooth(smooth)
        } else {
            let Some(length) = (key.length < MOST_POINTS).then(|| (2 * key.length - 1).next_power_of_two())
            else {
                return Ok(None);
            };
            let (Some(there), Some(back)) =
                (Smooth::new(length, false, most, &mut tables), Smooth::new(length, true, most, &mut tables))
            else {
                return Ok(None);
            };
            let chirp = chirp(key.length, key.inverse);
            let spectrum = spectrum(&chirp, length);
            Way::Chirp { length, there, back, chirp: tables.add(&chirp), spectrum: tables.add(&spectrum) }
        };
        let memory = upload(&tables.bytes)?;
        Ok(Some(FourierPlan { way: way.placed(memory.as_ptr() as u64), _tables: memory }))
    }
}

/// Points that a workgroup holds, as `MOST` of `fft.h`.
pub(super) fn points(double: bool) -> usize {
    16384 / if double { 16 } else { 8 }
}

impl Way {
    /// With addresses in the place of offsets.
    fn placed(self, base: u64) -> Self {
        match self {
            Way::Smooth(smooth) => Way::Smooth(smooth.placed(base)),
            Way::Chirp { length, there, back, chirp, spectrum } => Way::Chirp {
                length,
                there: there.placed(base),
                back: back.placed(base),
                chirp: chirp + base,
                spectrum: spectrum + base,
            },
        }
    }
}

impl Smooth {
    /// `None` where the length has other factors than the kernel's, or too many points.
    fn new(length: usize, inverse: bool, most: usize, tables: &mut Tables) -> Option<Self> {
        let factors = radices(length).filter(|_| length < MOST_POINTS)?;
        let mut pass = |length: usize| {
            let radices = radices(length)?;
            Some(Pass { length, radices, roots: tables.add(&roots(length, length, 1, inverse)) })
        };
        if length <= most {
            return pass(length).map(Smooth::One);
        }
        let least = length.div_ceil(most);
        let columns = (least..=length.isqrt()).rev().find(|n| length.is_multiple_of(*n));
        let two = match columns {
            Some(columns) => Some((pass(columns)?, pass(length / columns)?)),
            None => None,
        };
        let fine = tables.add(&roots(length, FINE.min(length), 1, inverse));
        let coarse = tables.add(&roots(length, length.div_ceil(FINE), FINE, inverse));
        Some(match two {
            Some((columns, rows)) => Smooth::Two { columns, rows, fine, coarse },
            None => Smooth::Many { length, radices: factors, fine, coarse },
        })
    }

    fn placed(self, base: u64) -> Self {
        let at = |pass: Pass| Pass { roots: pass.roots + base, ..pass };
        match self {
            Smooth::One(pass) => Smooth::One(at(pass)),
            Smooth::Two { columns, rows, fine, coarse } => {
                Smooth::Two { columns: at(columns), rows: at(rows), fine: fine + base, coarse: coarse + base }
            }
            Smooth::Many { length, radices, fine, coarse } => {
                Smooth::Many { length, radices, fine: fine + base, coarse: coarse + base }
            }
        }
    }
}

/// The length as a product of the kernel's radices.
fn radices(mut length: usize) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    for radix in [4, 2, 3, 5, 7] {
        while length.is_multiple_of(radix) && length > 1 {
            found.push(radix as u8);
            length /= radix;
        }
    }
    (length == 1).then_some(found)
}

/// `count` powers of the root of unity of an order, `step` apart.
fn roots(order: usize, count: usize, step: usize, inverse: bool) -> Vec<C128> {
    let sign = if inverse { 1.0 } else { -1.0 };
    (0..count).map(|k| unit(sign * TAU * ((k * step) % order) as f64 / order as f64)).collect()
}

fn unit(angle: f64) -> C128 {
    C128::new(angle.cos(), angle.sin())
}

/// e^(∓πi·k²/n) for each point.
fn chirp(length: usize, inverse: bool) -> Vec<C128> {
    let sign = if inverse { 1.0 } else { -1.0 };
    // k² modulo 2n: the angle stays small, and exact.
    let square = |k: usize| (k as u128 * k as u128 % (2 * length as u128)) as f64;
    (0..length).map(|k| unit(sign * TAU / 2.0 * square(k) / length as f64)).collect()
}

/// The transform of the chirp's conjugate, laid around the circle of the convolution.
fn spectrum(chirp: &[C128], length: usize) -> Vec<C128> {
    let mut circle = vec![C128::new(0.0, 0.0); length];
    for (k, x) in chirp.iter().enumerate() {
        circle[k] = x.conj();
        circle[(length - k) % length] = x.conj();
    }
    let fft = Fft::new(length, false);
    let mut scratch = vec![C128::new(0.0, 0.0); fft.scratch_len()];
    fft.run(&mut circle, &mut scratch);
    circle
}

/// Tables of complex numbers, one behind the other, as the kernel reads them.
struct Tables {
    double: bool,
    bytes: Vec<u8>,
}

impl Tables {
    /// Where it begins.
    fn add(&mut self, numbers: &[C128]) -> u64 {
        let at = self.bytes.len().next_multiple_of(16);
        self.bytes.resize(at, 0);
        for part in numbers.iter().flat_map(|x| [x.re, x.im]) {
            match self.double {
                true => self.bytes.extend_from_slice(&part.to_ne_bytes()),
                false => self.bytes.extend_from_slice(&(part as f32).to_ne_bytes()),
            }
        }
        at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_factored() {
        for (length, expected) in [
            (1, Some(vec![])),
            (8, Some(vec![4, 2])),
            (210, Some(vec![2, 3, 5, 7])),
            (11, None),
            (2048, Some(vec![4, 4, 4, 4, 4, 2])),
        ] {
            assert_eq!(radices(length), expected, "{length}");
        }
        let two = |length, most| {
            let mut tables = Tables { double: false, bytes: Vec::new() };
            match Smooth::new(length, false, most, &mut tables)? {
                Smooth::One(pass) => Some((1, pass.length)),
                Smooth::Two { columns, rows, .. } => Some((columns.length, rows.length)),
                Smooth::Many { radices, length, .. } => Some((radices.len(), length)),
            }
        };
        for (length, expected) in [
            (2048, Some((1, 2048))),
            (4096, Some((64, 64))),
            (5000, Some((50, 100))),
            (1 << 22, Some((2048, 2048))),
            (1 << 23, Some((12, 1 << 23))),
            (3 * 7_usize.pow(7), Some((8, 2_470_629))),
            (2048 * 11, None),
        ] {
            assert_eq!(two(length, 2048), expected, "{length}");
        }
    }
}
