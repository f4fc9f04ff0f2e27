//! What nodes are made of, as C structures and as work.

use std::ffi::c_void;
use std::sync::Arc;

use crate::runtime::Runtime;
use crate::runtime::arguments::Given;
use crate::runtime::call::{Address, Failure, Handle, null, required};
use crate::runtime::copies::Copy;
use crate::runtime::fills::Fill;
use crate::runtime::launch::{Dim3, Shape};
use crate::runtime::work::{HostFunction, Work};

/// `hipKernelNodeParams`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelParameters {
    pub block: Dim3,
    pub extra: *const *const c_void,
    pub function: Handle,
    pub grid: Dim3,
    pub parameters: *const *const c_void,
    pub dynamic_lds: u32,
}

/// `hipMemsetParams`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FillParameters {
    pub destination: Address,
    pub element_size: u32,
    pub height: usize,
    pub pitch: usize,
    pub value: u32,
    pub width: usize,
}

/// `hipHostNodeParams`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostParameters {
    pub function: Option<HostFunction>,
    pub user_data: *mut c_void,
}

impl Runtime {
    /// The launch of a kernel node, and the kernel's name.
    ///
    /// # Safety
    ///
    /// The arguments are null, or as HIP demands them for this kernel.
    pub unsafe fn kernel_work(
        &self,
        parameters: Option<&KernelParameters>,
    ) -> Result<(Work, String), Failure> {
        let given = required(parameters, "the parameters of the node")?;
        let shape = Shape {
            workgroups: [given.grid.x, given.grid.y, given.grid.z],
            workgroup_size: [given.block.x, given.block.y, given.block.z],
            dynamic_lds: given.dynamic_lds,
        };
        let arguments = Given { parameters: given.parameters, extra: given.extra };
        // SAFETY: by this function's contract.
        let launch = unsafe { self.prepare(given.function, shape, arguments) }?;
        let name = launch.function.kernel.name.clone();
        Ok((Work::Kernel(Arc::new(launch)), name))
    }

    pub fn fill_work(&self, parameters: Option<&FillParameters>) -> Result<Work, Failure> {
        let given = required(parameters, "the parameters of the node")?;
        if !matches!(given.element_size, 1 | 2 | 4) {
            return Err(Failure::invalid(format!(
                "elements of {} bytes, allowed are 1, 2 and 4",
                given.element_size
            )));
        }
        if given.width == 0 {
            return Err(Failure::invalid("a memset node of no elements"));
        }
        let fill = Fill {
            destination: given.destination,
            pitch: given.pitch as u64,
            width: given.width as u64,
            height: given.height.max(1) as u64,
            element_size: given.element_size.into(),
            value: given.value,
        };
        fill.check(&self.memory, true)?;
        Ok(Work::Fill(fill))
    }

    pub fn copy_work(&self, to: Address, from: Address, size: usize, kind: i32) -> Result<Work, Failure> {
        if size == 0 {
            return Err(Failure::invalid("a memcpy node of no bytes"));
        }
        let copy = Copy::line(to, from, size as u64, kind);
        copy.check(&self.memory)?;
        copy.check_places(&self.memory, true)?;
        Ok(Work::Copy(copy))
    }

    pub fn host_work(&self, parameters: Option<&HostParameters>) -> Result<Work, Failure> {
        let given = required(parameters, "the parameters of the node")?;
        let function = given.function.ok_or_else(|| null("the function of the node"))?;
        Ok(Work::Host { function, user_data: given.user_data as u64 })
    }
}
