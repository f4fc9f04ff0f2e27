//! The devices of this machine.

use std::ffi::c_char;
use std::ptr::null;

use rukh_sys::*;

use crate::call::{call, copy, get, lent, owner};
use crate::{Environment, Result};

/// A device that can run models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The provider that runs nodes there: "cpu" or "hip".
    pub provider: String,
    /// The provider's option `device_id`; 0 for the CPU.
    pub id: usize,
    pub name: String,
    pub arch: String,
    /// Facts by name, such as "pci" and "platform".
    pub properties: Vec<(String, String)>,
}

owner!(
    /// A device's handle, for as long as it is read.
    Handle,
    rukh_device,
    rukh_device_destroy
);

impl Device {
    /// The value of a property; "" where the device does not have it.
    pub fn property(&self, key: &str) -> &str {
        self.properties.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }
}

impl Environment {
    /// All devices, in the order in which librukh counts them.
    pub fn devices(&self) -> Result<Vec<Device>> {
        // SAFETY: the environment is live or one that librukh checks; the place is a local.
        let count: usize =
            get(|out, error| unsafe { rukh_environment_device_count(self.handle(), out, error) })?;
        let device = |index| {
            // SAFETY: as above.
            let handle = Handle::made(|out, error| unsafe {
                rukh_environment_device(self.handle(), index, out, error)
            })?;
            read(&handle)
        };
        (0..count).map(device).collect()
    }

    /// The GPUs, in the order of their numbers.
    pub fn gpus(&self) -> Result<Vec<Device>> {
        let mut devices = self.devices()?;
        devices.retain(|device| device.provider == "hip");
        Ok(devices)
    }
}

type ErrorOut = *mut *mut rukh_error;

fn read(device: &Handle) -> Result<Device> {
    let text =
        |function: unsafe extern "C" fn(*const rukh_device, *mut *const c_char, ErrorOut) -> rukh_status| {
            // SAFETY: the device is live, and its texts with it.
            unsafe { lent(|out, error| function(device.handle(), out, error)) }
        };
    // SAFETY: in this function, the device is live and the places written to are locals.
    let count: usize = get(|out, error| unsafe { rukh_device_property_count(device.handle(), out, error) })?;
    let property = |index| {
        let (mut key, mut value) = (null(), null());
        // SAFETY: as above; the texts live as long as the device.
        unsafe {
            call(|error| rukh_device_property(device.handle(), index, &mut key, &mut value, error))?;
            Ok((copy(key), copy(value)))
        }
    };
    Ok(Device {
        provider: text(rukh_device_provider)?,
        // SAFETY: as above.
        id: get(|out, error| unsafe { rukh_device_id(device.handle(), out, error) })?,
        name: text(rukh_device_name)?,
        arch: text(rukh_device_arch)?,
        properties: (0..count).map(property).collect::<Result<_>>()?,
    })
}
