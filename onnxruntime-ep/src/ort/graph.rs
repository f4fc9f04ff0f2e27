//! Graphs, nodes and values as ONNX Runtime hands them to a provider.

use std::ffi::{CStr, OsStr, c_char};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null;

use ort_sys::{OrtGraph, OrtNode, OrtStatusPtr, OrtValueInfo};

use super::value::Tensor;
use super::{Ort, TypeInfo, copy};
use crate::error::Result;

/// A graph, for as long as the call lasts that ONNX Runtime handed it to.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    ort: Ort,
    pointer: *const OrtGraph,
    life: PhantomData<&'a OrtGraph>,
}

#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(super) ort: Ort,
    pub(crate) pointer: *const OrtNode,
    life: PhantomData<&'a OrtNode>,
}

/// A value of a graph: an input, an initializer, or what a node makes.
#[derive(Clone, Copy)]
pub(crate) struct ValueInfo<'a> {
    ort: Ort,
    pointer: *const OrtValueInfo,
    life: PhantomData<&'a OrtValueInfo>,
}

/// A list that a pair of functions gives: its length, and its elements.
type Count<H> = unsafe extern "system" fn(*const H, *mut usize) -> OrtStatusPtr;
type List<H, T> = unsafe extern "system" fn(*const H, *mut *const T, usize) -> OrtStatusPtr;

impl Ort {
    /// # Safety
    /// `handle` is live, and the functions are about handles of its kind.
    pub(super) unsafe fn list<H, T>(
        &self,
        handle: *const H,
        count: Count<H>,
        list: List<H, T>,
    ) -> Result<Vec<*const T>> {
        let mut length = 0;
        // SAFETY: the caller's promise; there is room for as many elements as were told.
        unsafe {
            self.check(count(handle, &mut length))?;
            let mut elements = vec![null(); length];
            if length > 0 {
                self.check(list(handle, elements.as_mut_ptr(), length))?;
            }
            Ok(elements)
        }
    }

    /// # Safety
    /// `handle` is live, and the function gives a text that lives as long.
    pub(super) unsafe fn text<H>(
        &self,
        handle: *const H,
        function: unsafe extern "system" fn(*const H, *mut *const c_char) -> OrtStatusPtr,
    ) -> Result<String> {
        let mut text = null();
        // SAFETY: the caller's promise; the text is copied.
        unsafe {
            self.check(function(handle, &mut text))?;
            Ok(copy(text))
        }
    }
}

impl<'a> Graph<'a> {
    /// # Safety
    /// `pointer` is a graph that lives for `'a`.
    pub(crate) unsafe fn new(ort: Ort, pointer: *const OrtGraph) -> Graph<'a> {
        Graph { ort, pointer, life: PhantomData }
    }

    fn values(
        &self,
        count: Count<OrtGraph>,
        list: List<OrtGraph, OrtValueInfo>,
    ) -> Result<Vec<ValueInfo<'a>>> {
        // SAFETY: the graph is live; what it lists lives as long.
        let values = unsafe { self.ort.list(self.pointer, count, list) }?;
        Ok(values
            .into_iter()
            .map(|pointer| ValueInfo { ort: self.ort, pointer, life: PhantomData })
            .collect())
    }

    pub(crate) fn inputs(&self) -> Result<Vec<ValueInfo<'a>>> {
        self.values(self.ort.api.Graph_GetNumInputs, self.ort.api.Graph_GetInputs)
    }

    pub(crate) fn outputs(&self) -> Result<Vec<ValueInfo<'a>>> {
        self.values(self.ort.api.Graph_GetNumOutputs, self.ort.api.Graph_GetOutputs)
    }

    pub(crate) fn initializers(&self) -> Result<Vec<ValueInfo<'a>>> {
        self.values(self.ort.api.Graph_GetNumInitializers, self.ort.api.Graph_GetInitializers)
    }

    /// The nodes, each after those that it needs.
    pub(crate) fn nodes(&self) -> Result<Vec<Node<'a>>> {
        // SAFETY: as in `values`.
        let nodes = unsafe {
            self.ort.list(self.pointer, self.ort.api.Graph_GetNumNodes, self.ort.api.Graph_GetNodes)
        }?;
        Ok(nodes.into_iter().map(|pointer| Node { ort: self.ort, pointer, life: PhantomData }).collect())
    }

    /// The node whose body this graph is, if it is one.
    pub(crate) fn parent(&self) -> Result<Option<Node<'a>>> {
        let mut pointer = null();
        // SAFETY: the graph is live; the place is a local.
        self.ort.check(unsafe { (self.ort.api.Graph_GetParentNode)(self.pointer, &mut pointer) })?;
        Ok((!pointer.is_null()).then_some(Node { ort: self.ort, pointer, life: PhantomData }))
    }

    pub(crate) fn name(&self) -> Result<String> {
        // SAFETY: the graph is live.
        unsafe { self.ort.text(self.pointer, self.ort.api.Graph_GetName) }
    }

    /// The file of the model that the graph is of; none for a model that came from memory.
    pub(crate) fn model_file(&self) -> Result<Option<PathBuf>> {
        let mut path = null();
        // SAFETY: the graph is live; the place is a local; the text lives as long as the graph and is copied.
        unsafe {
            self.ort.check((self.ort.api.Graph_GetModelPath)(self.pointer, &mut path))?;
            if path.is_null() {
                return Ok(None);
            }
            let bytes = CStr::from_ptr(path).to_bytes();
            Ok((!bytes.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(bytes))))
        }
    }

    pub(crate) fn ir_version(&self) -> Result<i64> {
        let mut version = 0;
        // SAFETY: the graph is live; the place is a local.
        self.ort.check(unsafe { (self.ort.api.Graph_GetOnnxIRVersion)(self.pointer, &mut version) })?;
        Ok(version)
    }

    /// Domains with their versions.
    pub(crate) fn operator_sets(&self) -> Result<Vec<(String, i64)>> {
        let mut count = 0;
        // SAFETY: the graph is live; there is room for as many elements as were told; texts are copied.
        unsafe {
            self.ort.check((self.ort.api.Graph_GetNumOperatorSets)(self.pointer, &mut count))?;
            let (mut domains, mut versions) = (vec![null(); count], vec![0; count]);
            if count > 0 {
                self.ort.check((self.ort.api.Graph_GetOperatorSets)(
                    self.pointer,
                    domains.as_mut_ptr(),
                    versions.as_mut_ptr(),
                    count,
                ))?;
            }
            Ok(domains.into_iter().map(|domain| copy(domain)).zip(versions).collect())
        }
    }
}

impl<'a> Node<'a> {
    /// # Safety
    /// `pointer` is a node that lives for `'a`.
    pub(crate) unsafe fn new(ort: Ort, pointer: *const OrtNode) -> Node<'a> {
        Node { ort, pointer, life: PhantomData }
    }

    /// None stands for an input or output that the node leaves out.
    fn values(
        &self,
        count: Count<OrtNode>,
        list: List<OrtNode, OrtValueInfo>,
    ) -> Result<Vec<Option<ValueInfo<'a>>>> {
        // SAFETY: the node is live; what it lists lives as long.
        let values = unsafe { self.ort.list(self.pointer, count, list) }?;
        let value = |pointer: *const OrtValueInfo| {
            (!pointer.is_null()).then_some(ValueInfo { ort: self.ort, pointer, life: PhantomData })
        };
        Ok(values.into_iter().map(value).collect())
    }

    pub(crate) fn inputs(&self) -> Result<Vec<Option<ValueInfo<'a>>>> {
        self.values(self.ort.api.Node_GetNumInputs, self.ort.api.Node_GetInputs)
    }

    pub(crate) fn outputs(&self) -> Result<Vec<Option<ValueInfo<'a>>>> {
        self.values(self.ort.api.Node_GetNumOutputs, self.ort.api.Node_GetOutputs)
    }

    /// The names of the inputs, "" for one that the node leaves out.
    pub(crate) fn input_names(&self) -> Result<Vec<String>> {
        names(self.inputs()?)
    }

    /// The names of the outputs, "" for one that the node leaves out.
    pub(crate) fn output_names(&self) -> Result<Vec<String>> {
        names(self.outputs()?)
    }

    /// Values of outer graphs that the node's bodies use.
    pub(crate) fn implicit_inputs(&self) -> Result<Vec<ValueInfo<'a>>> {
        let values =
            self.values(self.ort.api.Node_GetNumImplicitInputs, self.ort.api.Node_GetImplicitInputs)?;
        Ok(values.into_iter().flatten().collect())
    }

    pub(crate) fn name(&self) -> Result<String> {
        // SAFETY: the node is live.
        unsafe { self.ort.text(self.pointer, self.ort.api.Node_GetName) }
    }

    pub(crate) fn operator(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { self.ort.text(self.pointer, self.ort.api.Node_GetOperatorType) }
    }

    /// The provider that has taken the node, "" for none.
    pub(crate) fn provider(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { self.ort.text(self.pointer, self.ort.api.Node_GetEpName) }
    }

    pub(crate) fn domain(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { self.ort.text(self.pointer, self.ort.api.Node_GetDomain) }
    }

    /// The node's bodies by the names of their attributes.
    pub(crate) fn subgraphs(&self) -> Result<Vec<(String, Graph<'a>)>> {
        let mut count = 0;
        // SAFETY: the node is live; there is room for as many elements as were told; names are copied.
        unsafe {
            self.ort.check((self.ort.api.Node_GetNumSubgraphs)(self.pointer, &mut count))?;
            let (mut graphs, mut names) = (vec![null(); count], vec![null(); count]);
            if count > 0 {
                let (graphs, names) = (graphs.as_mut_ptr(), names.as_mut_ptr());
                self.ort.check((self.ort.api.Node_GetSubgraphs)(self.pointer, graphs, count, names))?;
            }
            let graph = |pointer| Graph { ort: self.ort, pointer, life: PhantomData };
            Ok(names.into_iter().map(|name| copy(name)).zip(graphs.into_iter().map(graph)).collect())
        }
    }
}

fn names(values: Vec<Option<ValueInfo<'_>>>) -> Result<Vec<String>> {
    values.into_iter().map(|value| value.map_or(Ok(String::new()), |value| value.name())).collect()
}

impl<'a> ValueInfo<'a> {
    pub(crate) fn name(&self) -> Result<String> {
        // SAFETY: the value is live.
        unsafe { self.ort.text(self.pointer, self.ort.api.GetValueInfoName) }
    }

    pub(crate) fn ty(&self) -> Result<TypeInfo> {
        let mut info = null();
        // SAFETY: the value is live; its type lives as long.
        unsafe {
            self.ort.check((self.ort.api.GetValueInfoTypeInfo)(self.pointer, &mut info))?;
            self.ort.type_info(info)
        }
    }

    /// The tensor of an initializer.
    pub(crate) fn initializer(&self) -> Result<Option<Tensor<'a>>> {
        let mut value = null();
        // SAFETY: the value is live; the place is a local; the tensor lives as long as the graph.
        unsafe {
            self.ort.check((self.ort.api.ValueInfo_GetInitializerValue)(self.pointer, &mut value))?;
            Ok((!value.is_null()).then_some(Tensor::new(self.ort, value)))
        }
    }

    fn flag(
        &self,
        function: unsafe extern "system" fn(*const OrtValueInfo, *mut bool) -> OrtStatusPtr,
    ) -> Result<bool> {
        let mut flag = false;
        // SAFETY: the value is live; the place is a local.
        self.ort.check(unsafe { function(self.pointer, &mut flag) })?;
        Ok(flag)
    }

    pub(crate) fn is_constant(&self) -> Result<bool> {
        self.flag(self.ort.api.ValueInfo_IsConstantInitializer)
    }
}
