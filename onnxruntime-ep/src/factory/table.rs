//! The functions of a factory that ONNX Runtime calls.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use ort_sys::{
    OrtAllocator, OrtEpDevice, OrtHardwareDevice, OrtKeyValuePairs, OrtLogger, OrtMemoryInfo,
    OrtSessionOptions, OrtStatusPtr,
};

use super::{AMD, Factory, NVIDIA};
use crate::context::{Verdict, judge};
use crate::memory::{Allocator, Transfer};
use crate::ort::interface::{OrtDataTransferImpl, OrtEp, OrtEpFactory, OrtMemoryDevice, OrtSyncStreamImpl};
use crate::ort::{Logger, copy, guard, guard_or};
use crate::provider::Provider;

const VENDOR: &std::ffi::CStr = c"rukh";

pub(super) fn table(version: u32) -> OrtEpFactory {
    OrtEpFactory {
        ort_version_supported: version,
        GetName: get_name,
        GetVendor: get_vendor,
        GetSupportedDevices: get_supported_devices,
        CreateEp: create_ep,
        ReleaseEp: release_ep,
        GetVendorId: get_vendor_id,
        GetVersion: get_version,
        ValidateCompiledModelCompatibilityInfo: validate_compiled_model,
        CreateAllocator: create_allocator,
        ReleaseAllocator: release_allocator,
        CreateDataTransfer: create_data_transfer,
        IsStreamAware: is_stream_aware,
        CreateSyncStreamForDevice: create_sync_stream,
        GetHardwareDeviceIncompatibilityDetails: null(),
        CreateExternalResourceImporterForDevice: create_importer,
        GetNumCustomOpDomains: null(),
        GetCustomOpDomains: null(),
        InitGraphicsInterop: null(),
        DeinitGraphicsInterop: null(),
        SelectBestModelCandidate: null(),
    }
}

/// # Safety
/// `this` is a table that a `Factory` begins with, which lives for `'a`.
unsafe fn factory<'a>(this: *const OrtEpFactory) -> &'a Factory {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast::<Factory>() }
}

unsafe extern "system" fn get_name(this: *const OrtEpFactory) -> *const c_char {
    guard_or(null(), || {
        // SAFETY: in this file, ONNX Runtime calls functions of the table with the table, until it is released.
        unsafe { factory(this) }.provider_name.as_ptr()
    })
}

unsafe extern "system" fn get_vendor(_this: *const OrtEpFactory) -> *const c_char {
    guard_or(null(), || VENDOR.as_ptr())
}

/// The maker of the devices, which is what ONNX Runtime compares with those of hardware.
unsafe extern "system" fn get_vendor_id(_this: *const OrtEpFactory) -> u32 {
    guard_or(AMD, || AMD)
}

unsafe extern "system" fn get_version(_this: *const OrtEpFactory) -> *const c_char {
    guard_or(null(), || concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast())
}

unsafe extern "system" fn get_supported_devices(
    this: *mut OrtEpFactory,
    devices: *const *const OrtHardwareDevice,
    count: usize,
    offered: *mut *mut OrtEpDevice,
    most: usize,
    offered_count: *mut usize,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let factory = unsafe { factory(this) };
    guard(&factory.ort, || {
        // SAFETY: there are `count` live devices, and room for `most`.
        unsafe {
            offered_count.write(0);
            let devices = if count == 0 { &[] } else { std::slice::from_raw_parts(devices, count) };
            let made = factory.offer(devices, most)?;
            for (index, device) in made.iter().enumerate() {
                offered.add(index).write(*device);
            }
            offered_count.write(made.len());
        }
        Ok(())
    })
}

unsafe extern "system" fn create_ep(
    this: *mut OrtEpFactory,
    _devices: *const *const OrtHardwareDevice,
    facts: *const *const OrtKeyValuePairs,
    count: usize,
    options: *const OrtSessionOptions,
    logger: *const OrtLogger,
    ep: *mut *mut OrtEp,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let factory = unsafe { factory(this) };
    guard(&factory.ort, || {
        // SAFETY: there are `count` pairs for as many devices; the provider is given back to `release_ep`.
        unsafe {
            ep.write(null_mut());
            let runs_on: Vec<String> = (0..count).map(|index| factory.runs_on(*facts.add(index))).collect();
            ep.write(Box::into_raw(factory.provider(&runs_on, options, Logger(logger))?).cast());
        }
        Ok(())
    })
}

unsafe extern "system" fn release_ep(_this: *mut OrtEpFactory, ep: *mut OrtEp) {
    guard_or((), || {
        if !ep.is_null() {
            // SAFETY: it is what `create_ep` made of a box, and is given back once.
            drop(unsafe { Box::from_raw(ep.cast::<Provider>()) });
        }
    })
}

unsafe extern "system" fn validate_compiled_model(
    this: *mut OrtEpFactory,
    devices: *const *const OrtHardwareDevice,
    count: usize,
    info: *const c_char,
    verdict: *mut c_int,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let factory = unsafe { factory(this) };
    guard(&factory.ort, || {
        // SAFETY: there are `count` live devices; the text is NUL-terminated; ONNX Runtime gives a place.
        unsafe {
            verdict.write(Verdict::NotApplicable as c_int);
            let text = copy(info);
            let mut worst = Verdict::NotApplicable;
            for index in 0..count {
                if let Some(here) = factory.here(*devices.add(index)) {
                    worst = worst.max(judge(&text, &here)?);
                }
            }
            verdict.write(worst as c_int);
        }
        Ok(())
    })
}

unsafe extern "system" fn create_allocator(
    this: *mut OrtEpFactory,
    info: *const OrtMemoryInfo,
    _options: *const OrtKeyValuePairs,
    allocator: *mut *mut OrtAllocator,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let factory = unsafe { factory(this) };
    guard(&factory.ort, || {
        // SAFETY: the description is live; the allocator is given back to `release_allocator`.
        unsafe {
            allocator.write(null_mut());
            allocator.write(factory.allocator(info)?);
        }
        Ok(())
    })
}

unsafe extern "system" fn release_allocator(_this: *mut OrtEpFactory, allocator: *mut OrtAllocator) {
    guard_or((), || {
        if !allocator.is_null() {
            // SAFETY: it is what `create_allocator` made of a box, and is given back once.
            drop(unsafe { Box::from_raw(allocator.cast::<Allocator>()) });
        }
    })
}

unsafe extern "system" fn create_data_transfer(
    this: *mut OrtEpFactory,
    transfer: *mut *mut OrtDataTransferImpl,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let factory = unsafe { factory(this) };
    guard(&factory.ort, || {
        let vendors = vec![AMD, NVIDIA];
        let made = match factory.name.is_cpu() {
            true => null_mut(),
            false => {
                Transfer::make(factory.ort, factory.environment.clone(), factory.streams.clone(), vendors)
            }
        };
        // SAFETY: ONNX Runtime gives a place, and releases the transfer.
        unsafe { transfer.write(made) };
        Ok(())
    })
}

/// Whether what ONNX Runtime gives to a GPU goes into streams of ours.
unsafe extern "system" fn is_stream_aware(this: *const OrtEpFactory) -> bool {
    guard_or(false, || {
        // SAFETY: as above.
        unsafe { factory(this) }.has_streams()
    })
}

unsafe extern "system" fn create_sync_stream(
    this: *mut OrtEpFactory,
    device: *const OrtMemoryDevice,
    _options: *const OrtKeyValuePairs,
    stream: *mut *mut OrtSyncStreamImpl,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let factory = unsafe { factory(this) };
    guard(&factory.ort, || {
        // SAFETY: ONNX Runtime gives a place, which is NULL after an error; the device is NULL or live.
        unsafe {
            stream.write(null_mut());
            stream.write(factory.sync_stream(device)?);
        }
        Ok(())
    })
}

/// Memory of other interfaces is not imported.
unsafe extern "system" fn create_importer(
    _this: *mut OrtEpFactory,
    _device: *const OrtEpDevice,
    importer: *mut *mut c_void,
) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), || {
        // SAFETY: as above.
        unsafe { importer.write(null_mut()) };
        OrtStatusPtr::default()
    })
}
