//! Devices and providers.

use std::ffi::{CString, c_char};

use super::args::{self, c_text};
use super::guard::{call, call_on, create_on, destroy};
use super::handles::{Handle, Kind};
use super::types::*;
use crate::error::{Result, fail};
use crate::session::{Device, ProviderKind, device_of, devices, missing_device};

pub(super) struct DeviceObject {
    kind: ProviderKind,
    /// `None`: its provider does not reach it.
    id: Option<usize>,
    provider: CString,
    name: CString,
    arch: CString,
    memory: u64,
    properties: Vec<(CString, CString)>,
}

impl DeviceObject {
    fn new(device: &Device) -> Self {
        DeviceObject {
            kind: device.provider,
            id: device.id,
            provider: c_text(device.provider.name()),
            name: c_text(&device.name),
            arch: c_text(&device.arch),
            memory: device.memory,
            properties: device.properties.iter().map(|(k, v)| (c_text(k), c_text(v))).collect(),
        }
    }

    /// The device of a provider by its number there.
    pub(super) fn of(provider: ProviderKind, id: usize) -> Result<Self> {
        Ok(Self::new(&device_of(provider, id)?))
    }

    pub(super) fn kind(&self) -> ProviderKind {
        self.kind
    }

    pub(super) fn id(&self) -> Result<usize> {
        match self.id {
            Some(id) => Ok(id),
            None => fail!(
                Device,
                "device \"{}\" belongs to a platform whose GPUs are not used, as another platform has some",
                self.name.to_string_lossy()
            ),
        }
    }
}

impl Handle for rukh_device {
    type Object = DeviceObject;
    const KIND: Kind = Kind::Device;
    const NAME: &'static str = "rukh_device";
}

const PROVIDERS: [ProviderKind; 2] = [ProviderKind::Hip, ProviderKind::Cpu];

/// The number of devices of this machine that can run models. The CPU is one, and the last.
///
/// `environment`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_device_count(
    environment: *const rukh_environment,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |_| args::put(count, "count", devices().len()))
}

/// A description of the device at `index`.
///
/// `environment`: not NULL. `index`: from 0. `out`: not NULL; receives a handle that the caller
/// destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_device(
    environment: *const rukh_environment,
    index: usize,
    out: *mut *mut rukh_device,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(environment, out, error, |_| {
        let all = devices();
        Ok(DeviceObject::new(args::item(&all, index, "device")?))
    })
}

/// The device of a provider by its number there, which is what options and functions call `device_id`.
///
/// `environment`: not NULL. `provider`: not NULL; any name of a provider, such as "cpu" or "hip". `device_id`: from 0;
/// 0 for the CPU. `out`: not NULL; receives a handle that the caller destroys; NULL on failure. `error`: may be NULL.
/// Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown provider or a number that is
/// not there, `RUKH_ERROR_DEVICE` for a provider without a device, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_find_device(
    environment: *const rukh_environment,
    provider: *const c_char,
    device_id: usize,
    out: *mut *mut rukh_device,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(environment, out, error, |_| {
        DeviceObject::of(ProviderKind::parse(args::text(provider, "provider")?)?, device_id)
    })
}

/// Destroys a device description. NULL, and a pointer that is no live handle of this kind, is left
/// alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_destroy(device: *mut rukh_device) {
    destroy(device);
}

/// The name of the provider that runs nodes on the device: "cpu" or "hip".
///
/// `device`, `provider`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads:
/// any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_provider(
    device: *const rukh_device,
    provider: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| args::put(provider, "provider", device.provider.as_ptr()))
}

/// The device's number among those of its provider, which is what options and functions call `device_id`.
///
/// `device`, `device_id`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_DEVICE` for a GPU of a platform that is not used, as another one has GPUs too;
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_id(
    device: *const rukh_device,
    device_id: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| args::put(device_id, "device_id", device.id()?))
}

/// The device's name as its maker gives it.
///
/// `device`, `name`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads: any,
/// at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_name(
    device: *const rukh_device,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| args::put(name, "name", device.name.as_ptr()))
}

/// The architecture whose machine code the device runs, such as "x86_64" or "gfx942".
///
/// `device`, `arch`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads: any,
/// at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_arch(
    device: *const rukh_device,
    arch: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| args::put(arch, "arch", device.arch.as_ptr()))
}

/// All the memory of the device in bytes, used or not; 0 when it is not known.
///
/// `device`, `bytes`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_memory(
    device: *const rukh_device,
    bytes: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| args::put(bytes, "bytes", device.memory))
}

/// The number of further facts about the device, each a key and a value of text.
///
/// A CPU has "threads" (that the process may use) and "vector_extensions". A GPU has "platform" ("amd" or
/// "nvidia"), "target" (its architecture with features, such as "gfx90a:sramecc+:xnack-"), "compute_units",
/// "wave_size" (lanes), "lds_bytes" (for each workgroup), "pci" (its address on the bus), "runtime" (the file that was
/// opened) and "runtime_version"; where they are known "driver_version" (the newest runtime that the driver serves),
/// "kernel_driver_version" (of the driver in the system's kernel), "pci_id" (maker and model, such as "1002:740c"),
/// "code_name" and "matrix_unit"; and "HIP_VISIBLE_DEVICES" when that variable is set. Later versions may add keys.
///
/// `device`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_property_count(
    device: *const rukh_device,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| args::put(count, "count", device.properties.len()))
}

/// The fact at `index`; see `rukh_device_property_count`.
///
/// `device`, `key`, `value`: not NULL; the texts are borrowed from the device. `index`: from 0. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that
/// is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_property(
    device: *const rukh_device,
    index: usize,
    key: *mut *const c_char,
    value: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| {
        let (k, v) = args::item(&device.properties, index, "property")?;
        args::put(key, "key", k.as_ptr())?;
        args::put(value, "value", v.as_ptr())
    })
}

/// The fact of this name; see `rukh_device_property_count`.
///
/// `device`, `key`: not NULL. `value`: not NULL; the text is borrowed from the device; NULL when the device has no such
/// fact, which is no error. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL or a key that is no UTF-8, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_device_find_property(
    device: *const rukh_device,
    key: *const c_char,
    value: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(device, error, |device| {
        let key = args::text(key, "key")?;
        let found = device.properties.iter().find(|(known, _)| known.as_bytes() == key.as_bytes());
        args::put(value, "value", found.map_or(std::ptr::null(), |(_, value)| value.as_ptr()))
    })
}

/// The number of providers this version knows, with or without a device.
///
/// `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_provider_count(count: *mut usize, error: *mut *mut rukh_error) -> rukh_status {
    call(error, || args::put(count, "count", PROVIDERS.len()))
}

/// The name of the provider at `index`: "hip" or "cpu".
///
/// `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL.
/// Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there
/// or a buffer that is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_provider_name(
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call(error, || args::put_text(args::item(&PROVIDERS, index, "provider")?.name(), buf, cap, needed))
}

/// Why a provider has no device on this machine, for people; "" when it has one.
///
/// `environment`: not NULL. `provider`: not NULL; any name of a provider, such as "hip" or
/// "ROCMExecutionProvider". `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may
/// be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
/// provider or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_provider_reason(
    environment: *const rukh_environment,
    provider: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |_| {
        let kind = ProviderKind::parse(args::text(provider, "provider")?)?;
        args::put_text(&missing_device(kind).unwrap_or_default(), buf, cap, needed)
    })
}
