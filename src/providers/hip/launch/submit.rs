//! Gives planned launches to a stream, and changes those that were recorded.

use std::ops::Range;

use crate::hip::blas::GemmAddresses;
use crate::hip::{Device, Graph, HipError, Launch, Node, Stream, TENSOR_MAP_BYTES};
use crate::ops::OpError;
use crate::threads::Pool;

use super::super::DeviceBuffer;
use super::{
    Addresses, LIBRARY_OPERANDS, LaunchPlan, MapPatch, Operand, PlannedLaunch, TENSOR_MAP_ALIGNMENT,
    WORKSPACE_ALIGNMENT, Work, params_word,
};

impl LaunchPlan {
    fn address(&self, operand: Operand, addresses: &Addresses<'_>) -> u64 {
        match operand {
            Operand::Input(i) => addresses.inputs[i],
            Operand::Output(i) => addresses.outputs[i],
            Operand::Scratch(at) => addresses.scratch + at as u64,
            Operand::Table(at) => self.table.as_ref().map_or(0, DeviceBuffer::address) + at as u64,
            Operand::Errors => addresses.errors,
            Operand::Counters => addresses.counters,
            Operand::Kept(address) => address,
        }
    }

    /// Whether the work may be recorded, and given again as it was.
    pub(crate) fn can_be_recorded(&self) -> bool {
        self.work_of_caller.as_ref().is_none_or(|work| work.can_be_recorded())
    }

    /// Whether recorded work can be given other addresses: where the launches are the library's own.
    pub(crate) fn can_be_changed(&self) -> bool {
        self.work_of_caller.is_none()
    }

    /// Has the caller of the library give its part of the work to a stream, behind the launches.
    pub(crate) fn submit_work_of_caller(
        &self,
        pool: &Pool,
        stream: &Stream,
        addresses: &Addresses<'_>,
    ) -> Result<(), OpError> {
        match &self.work_of_caller {
            Some(work) => work.submit(pool, stream, addresses),
            None => Ok(()),
        }
    }

    /// Gives the launches to a stream. `given` hears of each, with its number; of a product by the platform's
    /// library without one.
    ///
    /// # Safety
    /// The addresses must be those of memory on the stream's device that is as large as the plan's
    /// shapes say, until the stream has come past the launches.
    pub(crate) unsafe fn submit(
        &self,
        stream: &Stream,
        addresses: &Addresses<'_>,
        params: &mut Vec<u8>,
        mut given: impl FnMut(Option<usize>),
    ) -> Result<(), HipError> {
        self.fill_in(stream.device(), addresses, params)?;
        let mut at = 0;
        // Where to go on when the launches of a library's product are done.
        let mut jump = None;
        while let Some(launch) = self.launches.get(at) {
            at += 1;
            debug_assert!(launch.patches.end <= self.patches.len());
            let params = &mut params[launch.params.clone()];
            match &launch.work {
                &Work::Kernel { name, function, grid, block, lds } => {
                    let launch = Launch { function, grid, block, lds, params };
                    // SAFETY: the parameters are the kernel's own structure, made by its planner; the
                    // addresses are the caller's promise.
                    let launched = unsafe { stream.launch(std::iter::once(launch)) };
                    self.wait_for(launched, stream, || {
                        let [x, y, z] = grid;
                        format!("kernel {} of {x}x{y}x{z} workgroups", name.to_string_lossy())
                    })?;
                    given(Some(at - 1));
                }
                &Work::Choice { alignment, pairs, fitting, otherwise } => match fit(params, alignment, pairs)
                {
                    true => jump = Some((at + fitting, at + fitting + otherwise)),
                    false => at += fitting,
                },
                Work::Library(library) => {
                    let mut operands = [0u64; LIBRARY_OPERANDS];
                    bytemuck::bytes_of_mut(&mut operands).copy_from_slice(params);
                    let [a, b, c, d, bias, workspace] = operands;
                    let aligned = |address: &u64| address.is_multiple_of(library.alignment);
                    if library.otherwise == 0 || operands.iter().all(aligned) {
                        let workspace = workspace.next_multiple_of(WORKSPACE_ALIGNMENT);
                        let operands = GemmAddresses { a, b, c, d, bias, workspace };
                        // SAFETY: the addresses are those of the operands that the product was described
                        // with, as the caller promises.
                        let launched = unsafe { library.algorithm.multiply(&operands, stream) };
                        self.wait_for(launched, stream, || format!("product {}", library.algorithm.name()))?;
                        given(None);
                        if library.otherwise > 0 {
                            jump = Some((at + library.rest, at + library.rest + library.otherwise));
                        }
                    } else {
                        at += library.rest;
                    }
                }
            }
            if let Some((_, to)) = jump.take_if(|(from, _)| *from == at) {
                at = to;
            }
        }
        Ok(())
    }

    /// What became of a launch: as the runtime told, and with `launch_blocking` what it tells when the launch is done.
    /// The error then says which launch it was.
    fn wait_for(
        &self,
        launched: Result<(), HipError>,
        stream: &Stream,
        what: impl Fn() -> String,
    ) -> Result<(), HipError> {
        if !self.blocking {
            return launched;
        }
        // A stream that is being captured does nothing yet.
        let done = launched.and_then(|()| if stream.is_capturing() { Ok(()) } else { stream.synchronize() });
        done.map_err(|e| HipError { text: format!("{}, in {}", e.text, what()), ..e })
    }

    /// Gives recorded launches, by their numbers, these addresses. `false`: the runtime refuses, and the graph holds a
    /// mixture.
    ///
    /// # Safety
    /// The nodes must be those of these launches. The addresses as for `submit`, for each launch of the graph that
    /// comes.
    pub(crate) unsafe fn change(
        &self,
        graph: &Graph,
        nodes: &[(usize, Node)],
        addresses: &Addresses<'_>,
        params: &mut Vec<u8>,
    ) -> Result<bool, HipError> {
        self.fill_in(graph.device(), addresses, params)?;
        if !self.chose_alike(nodes, params) {
            return Ok(false);
        }
        for &(at, node) in nodes {
            let PlannedLaunch {
                work: Work::Kernel { function, grid, block, lds, .. }, params: range, ..
            } = &self.launches[at]
            else {
                return Ok(false);
            };
            let params = &mut params[range.clone()];
            let launch = Launch { function: *function, grid: *grid, block: *block, lds: *lds, params };
            // SAFETY: the node was recorded for this launch, whose kernel stays; the caller's promise.
            if !unsafe { graph.change(node, launch)? } {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether recorded launches are those that these parameters choose.
    fn chose_alike(&self, nodes: &[(usize, Node)], params: &[u8]) -> bool {
        self.launches.iter().enumerate().all(|(at, launch)| match launch.work {
            Work::Choice { alignment, pairs, fitting, otherwise } => {
                let first = at + 1;
                let chosen = match fit(&params[launch.params.clone()], alignment, pairs) {
                    true => first..first + fitting,
                    false => first + fitting..first + fitting + otherwise,
                };
                // One that is among launches which were not chosen has no nodes.
                let there = |launches: Range<usize>| nodes.iter().any(|(node, _)| launches.contains(node));
                there(chosen) || !there(first..first + fitting + otherwise)
            }
            _ => true,
        })
    }

    /// The parameters of all launches, with the addresses and tensor maps in them.
    fn fill_in(
        &self,
        device: &Device,
        addresses: &Addresses<'_>,
        params: &mut Vec<u8>,
    ) -> Result<(), HipError> {
        params.clear();
        params.extend_from_slice(&self.params);
        for patch in &self.patches {
            let address = self.address(patch.operand, addresses) + patch.offset;
            params[patch.at..patch.at + 8].copy_from_slice(&address.to_ne_bytes());
        }
        for MapPatch { at, operand, offset, map } in &self.maps {
            let address = self.address(*operand, addresses) + offset;
            // What is not aligned is not used: a launch for other operands takes its place.
            if address.is_multiple_of(TENSOR_MAP_ALIGNMENT) {
                let map = device.tensor_map(map, address)?;
                params[*at..at + TENSOR_MAP_BYTES].copy_from_slice(&map);
            }
        }
        Ok(())
    }
}

/// Whether all addresses of a choice's parameters are multiples of a number, and those of its first pairs equal.
fn fit(params: &[u8], alignment: u64, pairs: usize) -> bool {
    let mut words = params.chunks_exact(size_of::<u64>()).map(params_word);
    let same = params.chunks_exact(2 * size_of::<u64>()).take(pairs);
    words.all(|address| address.is_multiple_of(alignment))
        && same.into_iter().all(|pair| params_word(pair) == params_word(&pair[size_of::<u64>()..]))
}
