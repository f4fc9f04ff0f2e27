use crate::isa::{Dpp, Generation};
pub struct DppPlan {
    pub source: [u8; 64],
    pub zero: u64,
    pub written: u64,
}
pub fn plan(_: Dpp, _: usize, _: u64, _: Generation) -> DppPlan {
    unimplemented!()
}
