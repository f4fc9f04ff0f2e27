//! What a device reports: `hipDeviceProp_t` in its two layouts, and attributes.

use super::Runtime;
use super::call::{Failure, Out, call, null, put};
use super::errors::HipError;
use crate::code_object::device_name;
use crate::isa::{Generation, Target};

/// Work items of a workgroup, at most.
pub const MOST_WORK_ITEMS: i32 = 1024;
/// For sizes that have no limit of their own.
const LARGE: u64 = i32::MAX as u64;

/// What the values are made of.
pub struct Device {
    pub name: String,
    /// `gfx90a:sramecc+:xnack-`
    pub full_name: String,
    pub uuid: String,
    pub memory: u64,
    pub lds: u64,
    pub wave: i32,
    pub major: i32,
    pub minor: i32,
    /// The target's name as a number, where it is one.
    pub number: i32,
    pub compute_units: i32,
    pub bus: i32,
}

enum Value {
    Int(i32),
    Size(u64),
    /// In a field of bytes, ended by a zero.
    Text(String),
}

use Value::{Int, Size, Text};

/// Bytes of the structures.
const SIZE_R0600: usize = 1472;
const SIZE_R0000: usize = 792;

type Row = (&'static str, Option<i32>, Option<usize>, Option<usize>, fn(&Device) -> Value);

/// Field, attribute (hipDeviceAttribute_t), offset in the layout of HIP 6 and later (hipDeviceProp_tR0600), offset in
/// the layout before (hipDeviceProp_tR0000), value. The offsets are those of the C structures in hip_runtime_api.h of
/// HIP 6.0 and 5.2. What is missing is 0.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("name", None, Some(0), Some(0), |it| Text(it.name.clone())),
    ("uuid", None, Some(256), None, |it| Text(it.uuid.clone())),
    ("totalGlobalMem", Some(84), Some(288), Some(256), |it| Size(it.memory)),
    ("sharedMemPerBlock", Some(74), Some(296), Some(264), |it| Size(it.lds)),
    ("regsPerBlock", Some(71), Some(304), Some(272), |_| Int(65536)),
    ("warpSize", Some(87), Some(308), Some(276), |it| Int(it.wave)),
    ("memPitch", Some(58), Some(312), Some(712), |_| Size(LARGE)),
    ("maxThreadsPerBlock", Some(56), Some(320), Some(280), |_| Int(MOST_WORK_ITEMS)),
    ("maxThreadsDim[0]", Some(26), Some(324), Some(284), |_| Int(MOST_WORK_ITEMS)),
    ("maxThreadsDim[1]", Some(27), Some(328), Some(288), |_| Int(MOST_WORK_ITEMS)),
    ("maxThreadsDim[2]", Some(28), Some(332), Some(292), |_| Int(MOST_WORK_ITEMS)),
    ("maxGridSize[0]", Some(29), Some(336), Some(296), |_| Int(i32::MAX)),
    ("maxGridSize[1]", Some(30), Some(340), Some(300), |_| Int(65536)),
    ("maxGridSize[2]", Some(31), Some(344), Some(304), |_| Int(65536)),
    ("clockRate", Some(5), Some(348), Some(308), |_| Int(2_500_000)),
    ("memoryClockRate", Some(60), Some(608), Some(312), |_| Int(1_250_000)),
    ("memoryBusWidth", Some(59), Some(612), Some(316), |_| Int(384)),
    ("totalConstMem", Some(83), Some(352), Some(320), |_| Size(LARGE)),
    ("major", Some(23), Some(360), Some(328), |it| Int(it.major)),
    ("minor", Some(61), Some(364), Some(332), |it| Int(it.minor)),
    ("textureAlignment", Some(81), Some(368), Some(720), |_| Size(256)),
    ("texturePitchAlignment", Some(82), Some(376), Some(728), |_| Size(256)),
    ("multiProcessorCount", Some(63), Some(388), Some(336), |it| Int(it.compute_units)),
    ("PhysicalMultiProcessorCount", Some(10015), None, None, |it| Int(it.compute_units)),
    ("l2CacheSize", Some(19), Some(616), Some(340), |_| Int(6 << 20)),
    ("maxThreadsPerMultiProcessor", Some(57), Some(624), Some(344), |_| Int(2048)),
    ("clockInstructionRate", Some(10000), Some(1424), Some(352), |_| Int(100_000)),
    ("concurrentKernels", Some(8), Some(576), Some(360), |_| Int(1)),
    ("pciBusID", Some(67), Some(584), Some(368), |it| Int(it.bus)),
    ("canMapHostMemory", Some(3), Some(400), Some(388), |_| Int(1)),
    ("cooperativeLaunch", None, Some(688), Some(656), |_| Int(0)),
    ("maxSharedMemoryPerMultiProcessor", Some(10002), Some(1416), Some(376), |it| Size(it.lds)),
    ("sharedMemPerMultiprocessor", Some(76), Some(640), None, |it| Size(it.lds)),
    ("sharedMemPerBlockOptin", Some(75), Some(696), None, |it| Size(it.lds)),
    ("regsPerMultiprocessor", Some(72), Some(648), None, |_| Int(65536)),
    ("unifiedAddressing", Some(85), Some(604), None, |_| Int(1)),
    ("asyncEngineCount", Some(2), Some(600), None, |_| Int(2)),
    ("streamPrioritiesSupported", Some(78), Some(628), None, |_| Int(1)),
    ("memoryPoolsSupported", Some(88), Some(744), None, |_| Int(1)),
    ("hostRegisterSupported", None, Some(728), None, |_| Int(1)),
    ("maxBlocksPerMultiProcessor", Some(25), Some(712), None, |_| Int(32)),
    ("gcnArch", None, None, Some(392), |it| Int(it.number)),
    ("gcnArchName", None, Some(1160), Some(396), |it| Text(it.full_name.clone())),
];

/// Attributes that are known, with the value 0 if they have no row.
const ATTRIBUTES: [std::ops::Range<i32>; 2] = [0..128, 10000..10032];

/// LDS of a workgroup, in bytes.
pub fn lds_limit(target: Target) -> u64 {
    if target.name == "gfx950" { 160 << 10 } else { 64 << 10 }
}

/// Major and minor version of the target: 9 and 0 of gfx90a, 11 and 5 of gfx1151.
pub fn version(target: Target) -> (i32, i32) {
    let digits = target.name.trim_start_matches("gfx");
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    let minor = rest.chars().next().and_then(|it| it.to_digit(16)).unwrap_or(0);
    (major.parse().unwrap_or(0), minor as i32)
}

impl Runtime {
    /// A device by its number.
    pub fn device(&self, device: i32) -> Result<Device, Failure> {
        let options = &self.options;
        if !(0..options.devices).contains(&device) {
            let text = format!("device {device}, there are {}", options.devices);
            return Err(Failure::new(HipError::INVALID_DEVICE, text));
        }
        let target = options.target;
        let (major, minor) = version(target);
        let usual = if target.generation < Generation::Gfx10 { 104 } else { 48 };
        let name = format!("AMD {} (emulated)", target.name);
        Ok(Device {
            name: if options.name.is_empty() { name } else { options.name.clone() },
            full_name: device_name(target),
            uuid: format!("GPU-emu-{device}"),
            memory: self.memory.usage().1,
            lds: lds_limit(target),
            wave: target.wave as i32,
            major,
            minor,
            number: target.name.trim_start_matches("gfx").parse().unwrap_or(0),
            compute_units: if options.compute_units > 0 { options.compute_units } else { usual },
            bus: 3 + device,
        })
    }
}

/// Fills in a structure of bytes. Texts take at most their field: 256 bytes, 16 for the uuid.
fn write(bytes: &mut [u8], device: &Device, offset: fn(&Row) -> Option<usize>) {
    for row in ROWS {
        let Some(at) = offset(row) else { continue };
        match (row.4)(device) {
            Int(value) => bytes[at..at + 4].copy_from_slice(&value.to_le_bytes()),
            Size(value) => bytes[at..at + 8].copy_from_slice(&value.to_le_bytes()),
            Text(text) => {
                let room = if row.0 == "uuid" { 16 } else { 255 };
                let text = &text.as_bytes()[..text.len().min(room)];
                bytes[at..at + text.len()].copy_from_slice(text);
            }
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDevicePropertiesR0600(
    properties: Out<'_, [u8; SIZE_R0600]>,
    device: i32,
) -> HipError {
    call("hipGetDevicePropertiesR0600", format_args!("{device}"), |runtime| {
        let mut bytes = [0; SIZE_R0600];
        write(&mut bytes, &runtime.device(device)?, |row| row.2);
        put(properties, bytes, "properties")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDevicePropertiesR0000(
    properties: Out<'_, [u8; SIZE_R0000]>,
    device: i32,
) -> HipError {
    before_hip_6("hipGetDevicePropertiesR0000", properties, device)
}

/// Programs that were built for HIP 6 call `hipGetDevicePropertiesR0600` in its place.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetDeviceProperties(properties: Out<'_, [u8; SIZE_R0000]>, device: i32) -> HipError {
    before_hip_6("hipGetDeviceProperties", properties, device)
}

fn before_hip_6(name: &str, properties: Out<'_, [u8; SIZE_R0000]>, device: i32) -> HipError {
    call(name, format_args!("{device}"), |runtime| {
        let mut bytes = [0; SIZE_R0000];
        write(&mut bytes, &runtime.device(device)?, |row| row.3);
        put(properties, bytes, "properties")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetAttribute(value: Out<'_, i32>, attribute: i32, device: i32) -> HipError {
    call("hipDeviceGetAttribute", format_args!("{attribute}, {device}"), |runtime| {
        if value.is_none() {
            return Err(null("value"));
        }
        let device = runtime.device(device)?;
        let row = ROWS.iter().find(|row| row.1 == Some(attribute));
        let number = match row.map(|row| (row.4)(&device)) {
            Some(Int(number)) => number,
            Some(Size(size)) => size.min(LARGE) as i32,
            Some(Text(_)) => 0,
            None if ATTRIBUTES.iter().any(|known| known.contains(&attribute)) => 0,
            None => return Err(Failure::invalid(format!("attribute {attribute} is unknown"))),
        };
        put(value, number, "value")
    })
}
