//! The devices of this machine that can run models.

use std::path::Path;

use crate::error::{Result, fail};
use crate::hip::{DeviceInfo, Platform, Runtime, targets};
use crate::providers::hip;

use super::ProviderKind;

/// A device and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) provider: ProviderKind,
    /// Its number among those that its provider reaches; `None` for one of a platform that another one hides.
    pub(crate) id: Option<usize>,
    /// What people call it.
    pub(crate) name: String,
    /// The instruction set it runs: `x86_64`, `gfx942`.
    pub(crate) arch: String,
    /// All its memory, in bytes; 0 when unknown.
    pub(crate) memory: u64,
    /// Further facts by name; which there are depends on the provider.
    pub(crate) properties: Vec<(&'static str, String)>,
}

/// Every device, GPUs first and the CPU last. A GPU's place among those of its platform is its
/// `device_id`.
pub(crate) fn devices() -> Vec<Device> {
    let runtimes = Platform::ALL.iter().filter_map(|&platform| Runtime::get(platform).ok());
    let gpus = runtimes.enumerate().flat_map(|(platform, runtime)| {
        let devices = runtime.devices().iter().enumerate();
        devices.map(move |(id, info)| gpu(runtime, info, (platform == 0).then_some(id)))
    });
    gpus.chain([cpu()]).collect()
}

/// The device of a provider by its number there. For the CPU no runtime of a GPU is loaded: a program that is linked
/// statically could not.
pub(crate) fn device_of(provider: ProviderKind, id: usize) -> Result<Device> {
    match provider {
        ProviderKind::Hip => hip::check_device(id)?,
        ProviderKind::Cpu if id == 0 => return Ok(cpu()),
        ProviderKind::Cpu => fail!(InvalidArgument, "device_id {id} is not there: the CPU is one device, 0"),
    }
    let found = devices().into_iter().find(|device| device.provider == provider && device.id == Some(id));
    match found {
        Some(device) => Ok(device),
        None => fail!(Internal, "device {id} of provider \"{}\" is not among the devices", provider.name()),
    }
}

/// Why a provider has no device; `None` when it has one.
pub(crate) fn missing(provider: ProviderKind) -> Option<String> {
    match provider {
        ProviderKind::Cpu => None,
        ProviderKind::Hip => hip::missing(),
    }
}

fn gpu(runtime: &Runtime, info: &DeviceInfo, id: Option<usize>) -> Device {
    let mut properties = vec![
        ("platform", runtime.platform.name().to_owned()),
        ("target", info.target.clone()),
        ("compute_units", info.compute_units.to_string()),
        ("wave_size", info.wave.to_string()),
        ("lds_bytes", info.lds.to_string()),
        ("pci", info.pci.clone()),
        ("runtime", runtime.path.display().to_string()),
        ("runtime_version", runtime.version()),
    ];
    properties.extend(runtime.driver_version().map(|version| ("driver_version", version)));
    properties.extend(kernel_driver(runtime.platform).map(|version| ("kernel_driver_version", version)));
    properties.extend(pci_id(Path::new("/sys/bus/pci/devices"), &info.pci).map(|id| ("pci_id", id)));
    if let Some((code_name, matrix)) = targets::find(&info.arch) {
        properties.push(("code_name", code_name.to_owned()));
        properties.push(("matrix_unit", matrix.name().to_owned()));
    }
    if let Ok(visible) = std::env::var("HIP_VISIBLE_DEVICES") {
        properties.push(("HIP_VISIBLE_DEVICES", visible));
    }
    Device {
        provider: ProviderKind::Hip,
        id,
        name: info.name.clone(),
        arch: info.arch.clone(),
        memory: info.memory as u64,
        properties,
    }
}

/// The version of the driver in the system's kernel; `None` where it has none of its own.
fn kernel_driver(platform: Platform) -> Option<String> {
    let module = match platform {
        Platform::Amd => "amdgpu",
        Platform::Nvidia => "nvidia",
    };
    let text = std::fs::read_to_string(Path::new("/sys/module").join(module).join("version")).ok()?;
    Some(text.trim().to_owned()).filter(|version| !version.is_empty())
}

/// Maker and model of the card at an address of the bus, as `lspci -n` has them: `1002:740c`.
fn pci_id(devices: &Path, address: &str) -> Option<String> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(devices.join(address.to_lowercase()).join(name)).ok()?;
        text.trim().strip_prefix("0x").map(str::to_owned)
    };
    Some(format!("{}:{}", read("vendor")?, read("device")?))
}

fn cpu() -> Device {
    let arch = std::env::consts::ARCH;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Device {
        provider: ProviderKind::Cpu,
        id: Some(0),
        name: cpu_name().unwrap_or_else(|| arch.to_owned()),
        arch: arch.to_owned(),
        memory: physical_memory(),
        properties: vec![("threads", threads.to_string()), ("vector_extensions", vector_extensions())],
    }
}

/// The first processor's model, where the system tells it.
#[cfg(not(windows))]
fn cpu_name() -> Option<String> {
    model_name(&std::fs::read_to_string("/proc/cpuinfo").ok()?).map(str::to_owned)
}

/// The first processor's model, which the system writes into its registry.
#[cfg(windows)]
fn cpu_name() -> Option<String> {
    use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
    let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<u16>>();
    let key = wide("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0");
    let value = wide("ProcessorNameString");
    let mut text = [0u16; 128];
    let mut bytes = size_of_val(&text) as u32;
    // SAFETY: the names end in NUL; the buffer is as long as told, and the text in it will end in NUL.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &mut bytes,
        )
    };
    let end = text.iter().position(|&unit| unit == 0)?;
    let name = String::from_utf16_lossy(&text[..end]).trim().to_owned();
    (status == 0 && !name.is_empty()).then_some(name)
}

/// The first processor's model in the text of `/proc/cpuinfo`.
#[cfg(any(test, not(windows)))]
fn model_name(cpuinfo: &str) -> Option<&str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim())
    })
}

#[cfg(windows)]
fn physical_memory() -> u64 {
    use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: the struct tells its own size and is written to.
    if unsafe { GlobalMemoryStatusEx(&mut status) } == 0 { 0 } else { status.ullTotalPhys }
}

#[cfg(not(windows))]
fn physical_memory() -> u64 {
    // SAFETY: sysconf only reads; an unknown name gives -1.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0))
}

/// The vector instructions that speed up the CPU's kernels, widest last.
fn vector_extensions() -> String {
    #[cfg(target_arch = "x86_64")]
    let found: &[(&str, bool)] = &[
        ("sse4.1", is_x86_feature_detected!("sse4.1")),
        ("avx", is_x86_feature_detected!("avx")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ];
    #[cfg(target_arch = "aarch64")]
    let found: &[(&str, bool)] = &[("neon", true)];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let found: &[(&str, bool)] = &[];
    let names: Vec<&str> = found.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_the_system() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9354 32-Core Processor\nprocessor\t: 1\n";
        assert_eq!(model_name(text), Some("AMD EPYC 9354 32-Core Processor"));
        assert_eq!(model_name("Processor : ARMv7"), None);
        let folder = std::env::temp_dir().join(format!("rukh-pci-{}", std::process::id()));
        let card = folder.join("0000:c1:00.0");
        std::fs::create_dir_all(&card).unwrap();
        std::fs::write(card.join("vendor"), "0x1002\n").unwrap();
        assert_eq!(pci_id(&folder, "0000:C1:00.0"), None);
        std::fs::write(card.join("device"), "0x740c\n").unwrap();
        assert_eq!(pci_id(&folder, "0000:C1:00.0").as_deref(), Some("1002:740c"));
        std::fs::remove_dir_all(&folder).unwrap();
        let all = devices();
        assert!(all.iter().all(|d| !d.name.is_empty() && !d.arch.is_empty() && d.memory > 0));
    }
}
