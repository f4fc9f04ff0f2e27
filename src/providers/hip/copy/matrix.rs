//! Constant matrices that lie transposed in the device's memory.

use crate::ops::OpError;

use super::super::launch::Operand;
use super::super::{Addresses, DeviceBuffer, Given, PlanBuilder, Provider};
use super::StridedCopy;

/// A copy of a matrix of the host's, of elements of `size` bytes, on the device with its columns contiguous; there when
/// the call returns. Meanwhile the device holds the matrix twice.
pub(crate) fn upload_transposed(
    provider: &Provider,
    bytes: &[u8],
    [rows, columns]: [usize; 2],
    size: usize,
) -> Result<DeviceBuffer, OpError> {
    let matrix = provider.upload(bytes)?;
    let transposed = provider.reserve(bytes.len())?;
    let mut plan = PlanBuilder::new(provider, Given::None);
    let copy = StridedCopy::dense(&[columns, rows], &[1, columns as i64], 0, size);
    copy.plan(&mut plan, Operand::Output(0), Operand::Input(0))?;
    let launches = plan.finish()?;
    let stream = provider.uploads();
    let scratch = provider.allocate(launches.scratch, stream)?;
    let addresses = Addresses {
        inputs: &[matrix.address()],
        outputs: &[transposed.address()],
        scratch: scratch.address(),
        errors: 0,
        counters: 0,
    };
    let mut params = Vec::new();
    // SAFETY: both buffers hold a matrix of this size, the launches only copy, and all of it stays until the stream was
    // waited for, right below.
    unsafe { launches.submit(stream, &addresses, &mut params, |_| ()) }.map_err(crate::error::Error::from)?;
    stream.synchronize().map_err(crate::error::Error::from)?;
    Ok(transposed)
}
