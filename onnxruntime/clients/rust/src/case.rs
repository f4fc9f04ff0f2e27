//! A case as cases.py writes it.

use std::fmt::Debug;
use std::path::Path;

use ort::value::{DynValue, Tensor as OrtTensor};

use super::Result;

pub struct Case {
    /// Where a GPU is asked for, all of the model must run on it.
    pub strict: bool,
    pub inputs: Vec<Named>,
    pub outputs: Vec<Named>,
}

pub struct Named {
    pub name: String,
    tolerance: f64,
    pub tensor: Tensor,
}

pub struct Tensor {
    dims: Vec<i64>,
    data: Data,
}

enum Data {
    Floats(Vec<f32>),
    Integers(Vec<i64>),
    Texts(Vec<String>),
}

impl Case {
    pub fn read(folder: &Path) -> Result<Self> {
        let mut case = Self { strict: false, inputs: Vec::new(), outputs: Vec::new() };
        for line in std::fs::read_to_string(folder.join("tensors.txt"))?.lines() {
            match line.split_once(' ') {
                None if line == "strict" => case.strict = true,
                Some(("input", rest)) => case.inputs.push(Named::read(folder, rest)?),
                Some(("output", rest)) => case.outputs.push(Named::read(folder, rest)?),
                _ => return Err(format!("a line \"{line}\" in tensors.txt").into()),
            }
        }
        if case.outputs.is_empty() { Err("no outputs in tensors.txt".into()) } else { Ok(case) }
    }
}

impl Named {
    fn read(folder: &Path, line: &str) -> Result<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, ty, tolerance, file, dims @ ..] = fields.as_slice() else {
            return Err(format!("\"{line}\" has too few fields").into());
        };
        let bytes = std::fs::read(folder.join(file))?;
        let data = match *ty {
            "float32" => Data::Floats(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
            "int64" => Data::Integers(bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()),
            "string" => {
                Data::Texts(String::from_utf8(bytes)?.split_terminator('\0').map(str::to_owned).collect())
            }
            _ => return Err(format!("a tensor of {ty}, which no case has").into()),
        };
        let dims = dims.iter().map(|dim| dim.parse()).collect::<Result<_, _>>()?;
        Ok(Self { name: (*name).to_owned(), tolerance: tolerance.parse()?, tensor: Tensor { dims, data } })
    }

    pub fn compare(&self, found: &DynValue) -> Result<()> {
        self.compare_with(found).map_err(|error| format!("{}: {error}", self.name).into())
    }

    fn compare_with(&self, found: &DynValue) -> Result<()> {
        match &self.tensor.data {
            Data::Floats(wanted) => {
                let (shape, values) = found.try_extract_tensor::<f32>()?;
                let near = |a: &f32, b: &f32| (f64::from(*a) - f64::from(*b)).abs() <= self.tolerance;
                self.tensor.same(shape, values, wanted, near)
            }
            Data::Integers(wanted) => {
                let (shape, values) = found.try_extract_tensor::<i64>()?;
                self.tensor.same(shape, values, wanted, |a, b| a == b)
            }
            Data::Texts(wanted) => {
                let (shape, values) = found.try_extract_strings()?;
                self.tensor.same(shape, &values, wanted, |a, b| a == b)
            }
        }
    }
}

impl Tensor {
    pub fn value(&self) -> Result<DynValue> {
        let dims = self.dims.clone();
        Ok(match &self.data {
            Data::Floats(data) => OrtTensor::from_array((dims, data.clone()))?.into_dyn(),
            Data::Integers(data) => OrtTensor::from_array((dims, data.clone()))?.into_dyn(),
            Data::Texts(data) => OrtTensor::from_string_array((dims, data.as_slice()))?.into_dyn(),
        })
    }

    fn same<T: Debug>(
        &self,
        shape: &[i64],
        found: &[T],
        wanted: &[T],
        near: impl Fn(&T, &T) -> bool,
    ) -> Result<()> {
        if shape != self.dims || found.len() != wanted.len() {
            let (elements, dims) = (found.len(), &self.dims);
            return Err(format!("its shape is {shape:?} with {elements} elements, expected {dims:?}").into());
        }
        match found.iter().zip(wanted).position(|(found, wanted)| !near(found, wanted)) {
            None => Ok(()),
            Some(at) => Err(format!("element {at} is {:?}, expected {:?}", found[at], wanted[at]).into()),
        }
    }
}
