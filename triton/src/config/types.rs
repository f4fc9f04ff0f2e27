//! Triton's types of elements and those of ONNX.

use rukh_client::Element;

use crate::api::TRITONSERVER_DataType;

/// The types that both have: Triton's number, its name in configurations, ONNX's type.
const TYPES: [(TRITONSERVER_DataType, &str, Element); 14] = [
    (1, "TYPE_BOOL", Element::Bool),
    (2, "TYPE_UINT8", Element::U8),
    (3, "TYPE_UINT16", Element::U16),
    (4, "TYPE_UINT32", Element::U32),
    (5, "TYPE_UINT64", Element::U64),
    (6, "TYPE_INT8", Element::I8),
    (7, "TYPE_INT16", Element::I16),
    (8, "TYPE_INT32", Element::I32),
    (9, "TYPE_INT64", Element::I64),
    (10, "TYPE_FP16", Element::F16),
    (11, "TYPE_FP32", Element::F32),
    (12, "TYPE_FP64", Element::F64),
    (13, "TYPE_STRING", Element::String),
    (14, "TYPE_BF16", Element::Bf16),
];

pub(crate) fn element_of(number: TRITONSERVER_DataType) -> Option<Element> {
    TYPES.iter().find(|(found, ..)| *found == number).map(|(.., element)| *element)
}

pub(crate) fn number_of(element: Element) -> Option<TRITONSERVER_DataType> {
    TYPES.iter().find(|(.., found)| *found == element).map(|(number, ..)| *number)
}

/// The name of a type in configurations of models.
pub(crate) fn name_of(element: Element) -> Option<&'static str> {
    TYPES.iter().find(|(.., found)| *found == element).map(|(_, name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_elements_go_both_ways() {
        for (number, name, element) in TYPES {
            assert_eq!(element_of(number), Some(element));
            assert_eq!(number_of(element), Some(number));
            assert_eq!(name_of(element), Some(name));
        }
        assert_eq!(element_of(0), None);
        assert_eq!(number_of(Element::Complex64), None);
    }
}
