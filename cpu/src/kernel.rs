//! The contract between a plan and a CPU kernel.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::ops::OpError;
use crate::tensor::{ALIGNMENT, TensorView, TensorViewMut, Value, ValueRef};
use crate::threads::Pool;

pub(crate) use crate::provider::{Argument, NodeContext};

/// One operator that the CPU provider runs.
pub(crate) struct Entry {
    pub(super) domain: &'static str,
    pub(super) name: &'static str,
    pub(super) build: fn(&NodeContext<'_>) -> Result<CpuKernel, OpError>,
}

impl Entry {
    pub(super) const fn new(
        name: &'static str,
        build: fn(&NodeContext<'_>) -> Result<CpuKernel, OpError>,
    ) -> Self {
        Entry { domain: "", name, build }
    }

    pub(super) const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }
}

/// A kernel, made once for a node and used by any number of runs at a time.
pub enum CpuKernel {
    /// Writes into outputs whose shapes inference told; for everything without strings.
    Tensor(Box<dyn Kernel>),
    /// Returns values of its own: data-dependent shapes, strings, sequences, maps, optionals.
    Value(Box<dyn ValueKernel>),
}

/// A kernel over planned memory. It must not allocate in `run`; what it needs for given shapes it
/// makes in `prepare`, and temporary memory it asks for with `Prepared::scratch`.
pub trait Kernel: Send + Sync {
    /// Computes the outputs, each of which has the type and shape that inference told. Every element
    /// must be written. Outputs that the node does not want are `None`, as are omitted inputs.
    ///
    /// Shapes were checked by inference; *values* (indices, divisors) must be checked here.
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError>;

    /// What depends on shapes alone, made once for each signature of shapes. `inputs` have their
    /// values where the plan knows them (constants and shape arithmetic), else only their shapes.
    fn prepare(
        &self,
        _inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        Ok(Prepared::default())
    }

    /// Inputs whose memory output 0 may take when nobody needs the input afterwards. If the plan does
    /// so, `inputs[i]` is `None` in `run` and output 0 holds that input's elements. Only where type
    /// and element count are equal, which the plan checks.
    fn in_place(&self) -> &[usize] {
        &[]
    }

    /// Further outputs, each with the input whose memory it may take when the caller bound both to the same memory
    /// (caches that grow in place). If a run does so, `inputs[i]` is `None` and the output holds that input's elements.
    fn in_place_further(&self) -> &[(usize, usize)] {
        &[]
    }

    /// Whether output 0 is input 0 under another shape (Reshape): a plan may then let both share their
    /// memory and not run the kernel at all.
    fn reshapes(&self) -> bool {
        false
    }

    /// The algorithm that was chosen for the node, for people; "" where there is no choice.
    fn algorithm(&self) -> &'static str {
        ""
    }

    /// The kernel as one that allocates what it returns, where it can do both: for a run in which inference does not
    /// tell the outputs' shapes.
    fn values(&self) -> Option<&dyn ValueKernel> {
        None
    }

    /// Whether the kernel made a copy of this constant input (packed weights) and does not read it in
    /// `run`, where it is `None` then.
    fn consumes(&self, _input: usize) -> bool {
        false
    }
}

/// What a kernel keeps for one signature of shapes.
#[derive(Default)]
pub struct Prepared {
    /// Handed back as [`KernelContext::state`].
    pub state: Option<Box<dyn Any + Send + Sync>>,
    /// Bytes of temporary memory for `run`, aligned to 64; its content is unspecified.
    pub scratch: usize,
}

/// A kernel over values.
pub trait ValueKernel: Send + Sync {
    /// Computes the outputs, one for each output of the node, wanted or not. Everything, shapes
    /// included, must be checked here.
    fn run(&self, cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError>;
}

/// What a run lends its kernels.
pub struct KernelContext<'a> {
    pub pool: &'a Pool,
    pub state: Option<&'a (dyn Any + Send + Sync)>,
    /// Null once it is taken.
    scratch: AtomicPtr<u8>,
    scratch_len: usize,
    cancel: Option<&'a AtomicBool>,
}

impl<'a> KernelContext<'a> {
    /// A context without prepared state or scratch.
    pub fn new(pool: &'a Pool, cancel: Option<&'a AtomicBool>) -> Self {
        KernelContext { pool, state: None, scratch: AtomicPtr::default(), scratch_len: 0, cancel }
    }

    /// This context with what `Kernel::prepare` asked for.
    ///
    /// # Safety
    /// `scratch` must be valid for `len` bytes, aligned to 64 and used by nothing else, during `'b`.
    pub unsafe fn prepared<'b>(
        &self,
        state: Option<&'b (dyn Any + Send + Sync)>,
        scratch: *mut u8,
        len: usize,
    ) -> KernelContext<'b>
    where
        'a: 'b,
    {
        KernelContext {
            pool: self.pool,
            state,
            scratch: AtomicPtr::new(scratch),
            scratch_len: len,
            cancel: self.cancel,
        }
    }

    /// The state that `prepare` made; its absence is a defect of the library and panics.
    pub fn state<T: 'static>(&self) -> &'a T {
        self.state.and_then(|s| s.downcast_ref()).expect("the state this kernel prepared")
    }

    /// The temporary memory as elements, empty where `prepare` asked for none. A run takes it once; to take it again is a
    /// defect of the library and panics.
    pub fn scratch<T: crate::tensor::Element>(&self) -> &'a mut [T] {
        if self.scratch_len == 0 {
            // Aligned as other scratch is, so that it can be cast.
            let empty = std::ptr::without_provenance_mut(ALIGNMENT);
            // SAFETY: a slice without elements may be anywhere that is aligned.
            return unsafe { std::slice::from_raw_parts_mut(empty, 0) };
        }
        let scratch = self.scratch.swap(std::ptr::null_mut(), Ordering::Relaxed);
        assert!(!scratch.is_null(), "the scratch memory of a run is taken twice");
        // SAFETY: by the contract of `prepared` the memory is valid, aligned and used by nothing else; nobody else can
        // take it from here, as the pointer is gone. Every bit pattern of an Element is valid.
        unsafe { std::slice::from_raw_parts_mut(scratch.cast(), self.scratch_len / size_of::<T>()) }
    }

    /// Whether the caller wants the run to end; long kernels ask now and then.
    pub fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// The shape of input 0, which is always there when a run is planned.
pub(super) fn data_shape<'a>(inputs: &[Option<Argument<'a>>]) -> Result<&'a [usize], OpError> {
    let first = inputs.first().copied().flatten();
    Ok(first.ok_or_else(|| OpError::Data("input 0 is missing".to_owned()))?.shape)
}
