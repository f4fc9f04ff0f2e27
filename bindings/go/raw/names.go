package raw

import "strconv"

// ElementTypeNamed is the element type that ONNX calls so, such as "float"; ElementUndefined when there is none.
func ElementTypeNamed(name string) ElementType {
	for element, known := range elementTypeNames {
		if known == name {
			return element
		}
	}
	return ElementUndefined
}

// The name of a constant. A later library may have some that this package does not know.
func nameOf[T ~int32](names map[T]string, value T) string {
	if name, ok := names[value]; ok {
		return name
	}
	return strconv.Itoa(int(value))
}
