//! Devices: how many, which one is current, versions, and what hardly matters here.

use std::ffi::c_char;

use super::call::{Failure, Out, call, null, put, put_optional, put_text, text};
use super::errors::HipError;
use super::properties::version;
use super::thread;

/// What `hipRuntimeGetVersion` gives for HIP 5, 6 and 7.
const VERSIONS: &[(i32, i32)] = &[(5, 50_221_153), (6, 60_342_133), (7, 70_051_831)];

#[unsafe(no_mangle)]
pub extern "C" fn hipInit(flags: u32) -> HipError {
    call("hipInit", format_args!("{flags}"), |runtime| {
        if flags != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed is 0")));
        }
        if runtime.options.devices == 0 { Err(HipError::NO_DEVICE.into()) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDeviceCount(count: Out<'_, i32>) -> HipError {
    call("hipGetDeviceCount", format_args!(""), |runtime| {
        let devices = runtime.options.devices;
        put(count, devices, "count")?;
        if devices == 0 { Err(HipError::NO_DEVICE.into()) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipSetDevice(device: i32) -> HipError {
    call("hipSetDevice", format_args!("{device}"), |runtime| {
        runtime.device(device)?;
        thread::set_device(device);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDevice(device: Out<'_, i32>) -> HipError {
    call("hipGetDevice", format_args!(""), |_| put(device, thread::device(), "device"))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGet(device: Out<'_, i32>, ordinal: i32) -> HipError {
    call("hipDeviceGet", format_args!("{ordinal}"), |runtime| {
        runtime.device(ordinal)?;
        put(device, ordinal, "device")
    })
}

/// Waits for all work. What was allocated stays.
#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceReset() -> HipError {
    call("hipDeviceReset", format_args!(""), |runtime| {
        runtime.drain_all();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceSynchronize() -> HipError {
    call("hipDeviceSynchronize", format_args!(""), |runtime| {
        runtime.forbidden_while_capturing(HipError::STREAM_CAPTURE_UNSUPPORTED)?;
        runtime.drain_all();
        runtime.fault()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDriverGetVersion(number: Out<'_, i32>) -> HipError {
    call("hipDriverGetVersion", format_args!(""), |runtime| {
        put(number, hip_version(runtime.options.hip_major), "version")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipRuntimeGetVersion(number: Out<'_, i32>) -> HipError {
    call("hipRuntimeGetVersion", format_args!(""), |runtime| {
        put(number, hip_version(runtime.options.hip_major), "version")
    })
}

fn hip_version(major: i32) -> i32 {
    VERSIONS.iter().find(|row| row.0 == major).map_or(0, |row| row.1)
}

/// # Safety
///
/// `name` is null or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetName(name: *mut c_char, length: i32, device: i32) -> HipError {
    call("hipDeviceGetName", format_args!("{length}, {device}"), |runtime| {
        let text = runtime.device(device)?.name;
        // SAFETY: by this function's contract.
        unsafe { put_text(name, length, &text) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceTotalMem(bytes: Out<'_, usize>, device: i32) -> HipError {
    call("hipDeviceTotalMem", format_args!("{device}"), |runtime| {
        put(bytes, runtime.device(device)?.memory as usize, "bytes")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceComputeCapability(
    major: Out<'_, i32>,
    minor: Out<'_, i32>,
    device: i32,
) -> HipError {
    call("hipDeviceComputeCapability", format_args!("{device}"), |runtime| {
        runtime.device(device)?;
        let numbers = version(runtime.options.target);
        put(major, numbers.0, "major")?;
        put(minor, numbers.1, "minor")
    })
}

/// # Safety
///
/// `id` is null or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetPCIBusId(id: *mut c_char, length: i32, device: i32) -> HipError {
    call("hipDeviceGetPCIBusId", format_args!("{length}, {device}"), |runtime| {
        let text = bus_id(runtime.device(device)?.bus);
        // SAFETY: by this function's contract.
        unsafe { put_text(id, length, &text) }
    })
}

/// # Safety
///
/// `id` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetByPCIBusId(device: Out<'_, i32>, id: *const c_char) -> HipError {
    // SAFETY: by this function's contract.
    let wanted = unsafe { text(id, "pciBusId") };
    call("hipDeviceGetByPCIBusId", format_args!("{wanted:?}"), |runtime| {
        let wanted = wanted.clone()?;
        for number in 0..runtime.options.devices {
            if bus_id(runtime.device(number)?.bus).eq_ignore_ascii_case(&wanted) {
                return put(device, number, "device");
            }
        }
        Err(Failure::invalid(format!("no device has the bus id {wanted}")))
    })
}

fn bus_id(bus: i32) -> String {
    format!("0000:{bus:02x}:00.0")
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetUuid(uuid: Out<'_, [u8; 16]>, device: i32) -> HipError {
    call("hipDeviceGetUuid", format_args!("{device}"), |runtime| {
        let text = runtime.device(device)?.uuid;
        let mut bytes = [0; 16];
        let length = text.len().min(16);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        put(uuid, bytes, "uuid")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetLimit(value: Out<'_, usize>, limit: i32) -> HipError {
    call("hipDeviceGetLimit", format_args!("{limit}"), |_| put(value, 0, "value"))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDeviceFlags(flags: Out<'_, u32>) -> HipError {
    call("hipGetDeviceFlags", format_args!(""), |_| put(flags, 0, "flags"))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipSetDeviceFlags(flags: u32) -> HipError {
    call("hipSetDeviceFlags", format_args!("{flags:#x}"), |_| Ok(()))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceSetCacheConfig(config: i32) -> HipError {
    call("hipDeviceSetCacheConfig", format_args!("{config}"), |_| Ok(()))
}

/// No device reaches the memory of another one.
#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceCanAccessPeer(can: Out<'_, i32>, device: i32, peer: i32) -> HipError {
    call("hipDeviceCanAccessPeer", format_args!("{device}, {peer}"), |runtime| {
        runtime.device(device)?;
        runtime.device(peer)?;
        put(can, 0, "canAccessPeer")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceEnablePeerAccess(peer: i32, flags: u32) -> HipError {
    call(
        "hipDeviceEnablePeerAccess",
        format_args!("{peer}, {flags}"),
        |_| Err(HipError::NOT_SUPPORTED.into()),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceDisablePeerAccess(peer: i32) -> HipError {
    call("hipDeviceDisablePeerAccess", format_args!("{peer}"), |_| Err(HipError::NOT_SUPPORTED.into()))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipIpcGetMemHandle(handle: Out<'_, [u8; 64]>, memory: u64) -> HipError {
    call("hipIpcGetMemHandle", format_args!("{memory:#x}"), |_| {
        if handle.is_none() {
            return Err(null("handle"));
        }
        Err(HipError::NOT_SUPPORTED.into())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemGetInfo(free: Out<'_, usize>, total: Out<'_, usize>) -> HipError {
    call("hipMemGetInfo", format_args!(""), |runtime| {
        let (used, limit) = runtime.memory.usage();
        put_optional(free, (limit - used) as usize);
        put_optional(total, limit as usize);
        Ok(())
    })
}
