//! What a pointer is.

use super::call::{Address, Failure, Out, call, null, put};
use super::errors::HipError;
use super::thread;
use crate::memory::{Kind, State};

/// `hipPointerAttribute_t`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerAttributes {
    /// `hipMemoryType`
    pub memory_type: i32,
    pub device: i32,
    pub device_pointer: Address,
    pub host_pointer: Address,
    pub is_managed: i32,
    pub flags: u32,
}

/// `hipMemoryType`: the kind, its number before HIP 6, and since then.
const MEMORY_TYPES: &[(Kind, i32, i32)] = &[
    (Kind::Device, 1, 2),
    (Kind::Code, 1, 2),
    (Kind::Launch, 1, 2),
    (Kind::Host, 0, 1),
    (Kind::Registered, 0, 1),
    (Kind::Managed, 3, 3),
];

/// `hipMemoryTypeUnregistered`, since HIP 6.
const UNREGISTERED: i32 = 0;

#[unsafe(no_mangle)]
pub extern "C" fn hipPointerGetAttributes(
    attributes: Out<'_, PointerAttributes>,
    pointer: Address,
) -> HipError {
    call("hipPointerGetAttributes", format_args!("{pointer:#x}"), |runtime| {
        if pointer == 0 {
            return Err(null("pointer"));
        }
        let since_hip_6 = runtime.options.hip_major >= 6;
        let Some(found) = runtime.memory.lookup(pointer).filter(|it| it.state == State::Live) else {
            if since_hip_6 && !runtime.memory.is_device_address(pointer) {
                let unknown = PointerAttributes {
                    memory_type: UNREGISTERED,
                    device: -1,
                    host_pointer: pointer,
                    ..PointerAttributes::default()
                };
                return put(attributes, unknown, "attributes");
            }
            return Err(Failure::invalid(format!("{pointer:#x} is in no allocation")));
        };
        let row = MEMORY_TYPES.iter().find(|row| row.0 == found.kind);
        let memory_type = row.map_or(0, |row| if since_hip_6 { row.2 } else { row.1 });
        let on_host = found.host == found.start;
        let known = PointerAttributes {
            memory_type,
            device: thread::device(),
            device_pointer: pointer,
            host_pointer: if on_host { pointer } else { 0 },
            is_managed: i32::from(found.kind == Kind::Managed),
            flags: found.flags,
        };
        put(attributes, known, "attributes")
    })
}
