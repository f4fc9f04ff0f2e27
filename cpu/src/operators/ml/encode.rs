//! Encoding categories.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ops::OpError;
use crate::ops::ml::Labels;
use crate::ops::ml::encode::{DictVectorizer, Encode, OneHotEncoder, ZipMap};
use crate::tensor::{ElementType, MapKeys, Tensor, Value, ValueRef, ValueType};

use super::{DOMAIN, numbers};
use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::{Item, dispatch_item, items, shape_of, type_of};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("CategoryMapper", encode).domain(DOMAIN),
    Entry::new("LabelEncoder", encode).domain(DOMAIN),
    Entry::new("OneHotEncoder", |node| {
        Ok(CpuKernel::Value(Box::new(OneHot::new(node.op::<OneHotEncoder>()))))
    })
    .domain(DOMAIN),
    Entry::new("DictVectorizer", |node| {
        Ok(CpuKernel::Value(Box::new(Vectorize(node.op::<DictVectorizer>().vocabulary.clone()))))
    })
    .domain(DOMAIN),
    Entry::new("ZipMap", |node| Ok(CpuKernel::Value(Box::new(Zip(node.op::<ZipMap>().labels.clone())))))
        .domain(DOMAIN),
];

/// Something that a table is searched for: a number by its bits (a NaN finds NaN, −0 finds 0) or a
/// string.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Bits(u64),
    Text(String),
}

/// The elements of a tensor as keys.
fn keys(value: ValueRef<'_>) -> Result<Vec<Key>, OpError> {
    if let Some(strings) = value.strings() {
        return Ok(strings.iter().cloned().map(Key::Text).collect());
    }
    let view = value.view().ok_or_else(|| OpError::Data("the input is no tensor".to_owned()))?;
    let float = |x: f64| Key::Bits(if x.is_nan() { f64::NAN.to_bits() } else { (x + 0.0).to_bits() });
    Ok(match view.ty() {
        ElementType::F32 => view.slice::<f32>().iter().map(|&x| float(x as f64)).collect(),
        ElementType::F64 => view.slice::<f64>().iter().map(|&x| float(x)).collect(),
        ElementType::I64 => view.slice::<i64>().iter().map(|&x| Key::Bits(x as u64)).collect(),
        ElementType::I32 => view.slice::<i32>().iter().map(|&x| Key::Bits(x as i64 as u64)).collect(),
        ElementType::I16 => view.slice::<i16>().iter().map(|&x| Key::Bits(x as i64 as u64)).collect(),
        ty => return Err(OpError::Unsupported(format!("categories of type {ty}"))),
    })
}

/// Where each key is first.
fn places(keys: Vec<Key>) -> HashMap<Key, usize> {
    let mut places = HashMap::with_capacity(keys.len());
    for (i, key) in keys.into_iter().enumerate() {
        places.entry(key).or_insert(i);
    }
    places
}

fn encode(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Encode>();
    let backwards = op.back.is_some() && node.input(0) == Some(op.values.ty());
    let (from, to, default) = match &op.back {
        Some(back) if backwards => (&op.values, &op.keys, back),
        _ => (&op.keys, &op.values, &op.default),
    };
    let places = places(keys(ValueRef::Value(&Value::Tensor((**from).clone())))?);
    Ok(CpuKernel::Value(Box::new(Table { places, values: to.clone(), default: default.clone() })))
}

struct Table {
    places: HashMap<Key, usize>,
    values: Arc<Tensor>,
    default: Arc<Tensor>,
}

impl ValueKernel for Table {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let input = inputs.first().copied().flatten();
        let found = keys(input.ok_or_else(|| OpError::Data("input 0 is missing".to_owned()))?)?;
        let ty = self.values.ty();
        let table = [Value::Tensor((*self.values).clone()), Value::Tensor((*self.default).clone())];
        let table: Vec<Option<ValueRef<'_>>> = table.iter().map(|v| Some(ValueRef::Value(v))).collect();
        let shape = shape_of(inputs, 0)?;
        let result = dispatch_item!(ty, T => T::tensor(ty, shape, self.pick::<T>(&found, &table)?)?);
        Ok(vec![Value::Tensor(result)])
    }
}

impl Table {
    /// What each key stands for; the table is values and default.
    fn pick<T: Item>(&self, found: &[Key], table: &[Option<ValueRef<'_>>]) -> Result<Vec<T>, OpError> {
        let (values, default) = (items::<T>(table, 0)?, &items::<T>(table, 1)?[0]);
        let pick = |key: &Key| self.places.get(key).map_or(default, |&i| &values[i]).clone();
        Ok(found.iter().map(pick).collect())
    }
}

struct OneHot {
    places: HashMap<Key, usize>,
    width: usize,
    zeros: bool,
}

impl OneHot {
    fn new(op: &OneHotEncoder) -> Self {
        let keys = match &op.categories {
            Labels::Ints(v) => v.iter().map(|&x| Key::Bits(x as u64)).collect(),
            Labels::Strings(v) => v.iter().cloned().map(Key::Text).collect(),
        };
        OneHot { places: places(keys), width: op.categories.len(), zeros: op.zeros }
    }
}

impl ValueKernel for OneHot {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let found = match type_of(inputs, 0)? {
            // Floats are categories by their whole part.
            ElementType::F32 | ElementType::F64 => {
                numbers(inputs, 0)?.into_iter().map(|x| Key::Bits(x as i64 as u64)).collect()
            }
            _ => keys(inputs[0].ok_or_else(|| OpError::Data("input 0 is missing".to_owned()))?)?,
        };
        let mut result = vec![0f32; found.len() * self.width];
        for (i, key) in found.iter().enumerate() {
            match self.places.get(key) {
                Some(&place) => result[i * self.width + place] = 1.0,
                None if self.zeros => {}
                None => {
                    return Err(OpError::Data(format!(
                        "element {i} is of no known category, and zeros is 0"
                    )));
                }
            }
        }
        let shape = [shape_of(inputs, 0)?, &[self.width]].concat();
        Ok(vec![Value::Tensor(Tensor::from_slice(&shape, &result)?)])
    }
}

struct Vectorize(Labels);

impl ValueKernel for Vectorize {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let Some(Some(ValueRef::Value(Value::Map { keys, value, values }))) = inputs.first() else {
            return Err(OpError::Data("input 0 is no map".to_owned()));
        };
        let place = |i: usize| match (keys, &self.0) {
            (MapKeys::Ints(_, keys), Labels::Ints(v)) => keys.iter().position(|k| *k == v[i]),
            (MapKeys::Strings(keys), Labels::Strings(v)) => keys.iter().position(|k| *k == v[i]),
            _ => None,
        };
        let wrong = || OpError::Data("the values of the map must be numbers or strings".to_owned());
        let ty = value.element().ok_or_else(wrong)?;
        let values: Vec<Option<ValueRef<'_>>> = values.iter().map(|v| Some(ValueRef::Value(v))).collect();
        let places: Vec<Option<usize>> = (0..self.0.len()).map(place).collect();
        let result = dispatch_item!(ty, T => T::tensor(ty, &[1, places.len()], row::<T>(&places, &values)?)?);
        Ok(vec![Value::Tensor(result)])
    }
}

/// The value at each place, and zero where there is none.
fn row<T: Item>(places: &[Option<usize>], values: &[Option<ValueRef<'_>>]) -> Result<Vec<T>, OpError> {
    let value = |at: usize| {
        let first = items::<T>(values, at)?.first();
        first.cloned().ok_or_else(|| OpError::Data("a value of the map is empty".to_owned()))
    };
    places.iter().map(|place| place.map_or(Ok(T::default()), value)).collect()
}

struct Zip(Labels);

impl ValueKernel for Zip {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let scores = numbers(inputs, 0)?;
        let (_, columns) = super::matrix(inputs)?;
        if columns != self.0.len() {
            return Err(OpError::Data(format!("there are {columns} scores for {} labels", self.0.len())));
        }
        let keys = match &self.0 {
            Labels::Ints(v) => MapKeys::Ints(ElementType::I64, v.clone()),
            Labels::Strings(v) => MapKeys::Strings(v.clone()),
        };
        let value = ValueType::Tensor(ElementType::F32);
        let mut items = Vec::with_capacity(scores.len() / columns);
        for row in scores.chunks_exact(columns) {
            let values: Vec<Value> = row
                .iter()
                .map(|&s| Ok(Value::Tensor(Tensor::from_slice(&[], &[s as f32])?)))
                .collect::<Result<_, OpError>>()?;
            items.push(Value::Map { keys: keys.clone(), value: value.clone(), values });
        }
        let element = ValueType::Map(self.0.element_type(), Box::new(value));
        Ok(vec![Value::Sequence { element, items }])
    }
}
