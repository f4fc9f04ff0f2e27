//! The error of an allocator that has no memory to give.

use crate::error::{Error, Status};

/// Who refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuser {
    Limit,
    Device,
    /// The process would hold more of the device than its share.
    Share {
        share: u64,
        held: u64,
    },
    /// The user's allocation function.
    User,
}

/// The state of an allocator that refuses a request. All in bytes.
pub(super) struct Exhausted<'a> {
    pub(super) name: &'a str,
    pub(super) refuser: Refuser,
    pub(super) requested: u64,
    /// `u64::MAX`: none.
    pub(super) limit: u64,
    pub(super) allocated: u64,
    pub(super) reserved: u64,
    pub(super) largest_free: u64,
}

impl Exhausted<'_> {
    /// An error that says how memory stands and what can be done.
    pub(super) fn error(&self) -> Error {
        let limit = match self.limit {
            u64::MAX => "none".to_string(),
            limit => bytes(limit),
        };
        let message = format!(
            "{}: {} could not be allocated. Limit: {limit}; allocated: {}; reserved: {} (free inside the arena: {}, \
             largest free block: {}). {}",
            self.name,
            bytes(self.requested),
            bytes(self.allocated),
            bytes(self.reserved),
            bytes(self.reserved.saturating_sub(self.allocated)),
            bytes(self.largest_free),
            self.advice()
        );
        Error::new(Status::OutOfMemory, message)
    }

    fn advice(&self) -> String {
        if let Refuser::Share { share, held } = self.refuser {
            let (requested, share, held) = (bytes(self.requested), bytes(share), bytes(held));
            return format!(
                "gpu_mem_fraction allows this process {share} of the device's memory; it holds {held}, and with \
                 {requested} more it would be over that. Raise gpu_mem_fraction, or use smaller batches or fewer \
                 sessions"
            );
        }
        let free = self.reserved.saturating_sub(self.allocated);
        let advice = match self.refuser {
            Refuser::User => "gpu_external_alloc returned no memory",
            Refuser::Limit if self.requested > self.limit => {
                "The request alone exceeds the limit: raise gpu_mem_limit, or max_mem in default_memory_arena_cfg"
            }
            _ if free >= self.requested => {
                "The free memory is in pieces that are too small: set arena_extend_strategy=kSameAsRequested, or run \
                 fewer shapes at once"
            }
            Refuser::Limit => {
                "Raise gpu_mem_limit (max_mem in default_memory_arena_cfg), or use smaller batches or fewer sessions"
            }
            Refuser::Device => {
                "The device has no more memory: end other programs that use it, use smaller batches or \
                 precision=f16, or set arena_extend_strategy=kSameAsRequested"
            }
            Refuser::Share { .. } => "",
        };
        advice.to_owned()
    }
}

/// A number of bytes, for people and exactly.
fn bytes(n: u64) -> String {
    let (unit, name) = match n {
        0..1024 => return format!("{n} bytes"),
        1024..1_048_576 => (1u64 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{:.1} {name} ({n} bytes)", n as f64 / unit as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        const MIB: u64 = 1 << 20;
        for (refuser, requested, limit, allocated, reserved, expected) in [
            (
                Refuser::Limit,
                5 * MIB,
                4 * MIB,
                0,
                0,
                "The request alone exceeds the limit: raise gpu_mem_limit",
            ),
            (Refuser::Limit, 2 * MIB, 4 * MIB, 3 * MIB, 4 * MIB, "Raise gpu_mem_limit"),
            (Refuser::Limit, MIB, 4 * MIB, 3 * MIB, 4 * MIB, "in pieces that are too small"),
            (Refuser::Device, 2 * MIB, u64::MAX, 3 * MIB, 4 * MIB, "The device has no more memory"),
            (
                Refuser::Share { share: 4 * MIB, held: 3 * MIB },
                2 * MIB,
                u64::MAX,
                3 * MIB,
                3 * MIB,
                "gpu_mem_fraction allows this process 4.0 MiB (4194304 bytes) of the device's memory; it holds 3.0 MiB \
                 (3145728 bytes), and with 2.0 MiB (2097152 bytes) more",
            ),
            (Refuser::User, 2 * MIB, u64::MAX, 0, 0, "gpu_external_alloc returned no memory"),
        ] {
            let e = Exhausted {
                name: "hip:0",
                refuser,
                requested,
                limit,
                allocated,
                reserved,
                largest_free: 512,
            };
            let error = e.error();
            assert_eq!(error.status, Status::OutOfMemory);
            assert!(error.message.contains(expected), "{}", error.message);
        }
        let e = Exhausted {
            name: "hip:0",
            refuser: Refuser::Limit,
            requested: 3 * MIB / 2,
            limit: 3 << 30,
            allocated: 100,
            reserved: 2048,
            largest_free: 0,
        };
        let expected = "hip:0: 1.5 MiB (1572864 bytes) could not be allocated. Limit: 3.0 GiB (3221225472 bytes); \
                        allocated: 100 bytes; reserved: 2.0 KiB (2048 bytes) (free inside the arena: 1.9 KiB \
                        (1948 bytes), largest free block: 0 bytes). Raise";
        assert!(e.error().message.starts_with(expected), "{}", e.error().message);
    }
}
