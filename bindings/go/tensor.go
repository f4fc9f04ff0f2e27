package rukh

import (
	"fmt"
	"unsafe"

	"rukh/raw"
)

// Element is a type of Go's whose values are elements of tensors.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		bool | complex64 | complex128 | string
}

// Tensor is a tensor in the library's memory. It cannot be changed.
type Tensor struct {
	*handle
}

// NewTensor copies elements in row-major order. The shape has the size of each dimension; a tensor without one has one
// element.
func NewTensor[T Element](data []T, shape ...int64) (*Tensor, error) {
	if strings, ok := any(data).([]string); ok {
		return newStrings(strings, shape)
	}
	var size T
	return newTensor(elementOf[T](), unsafe.Pointer(firstOf(data)), len(data)*int(unsafe.Sizeof(size)), shape)
}

// NewTensorFromBytes copies elements of types that Go does not have, such as raw.ElementFloat16, as they lie in memory.
// Those narrower than a byte take a byte each.
func NewTensorFromBytes(element raw.ElementType, data []byte, shape ...int64) (*Tensor, error) {
	return newTensor(element, unsafe.Pointer(firstOf(data)), len(data), shape)
}

func newTensor(element raw.ElementType, data unsafe.Pointer, bytes int, shape []int64) (*Tensor, error) {
	var out unsafe.Pointer
	err := raw.ValueCreateTensorCopy(element, firstOf(shape), uint(len(shape)), data, uint(bytes), &out)
	if err != nil {
		return nil, err
	}
	return adopt(out), nil
}

func newStrings(data []string, shape []int64) (*Tensor, error) {
	lengths := make([]uint, len(data))
	for index, one := range data {
		lengths[index] = uint(len(one))
	}
	var out unsafe.Pointer
	count := uint(len(data))
	err := raw.ValueCreateStrings(firstOf(shape), uint(len(shape)), data, firstOf(lengths), count, &out)
	if err != nil {
		return nil, err
	}
	return adopt(out), nil
}

// The tensor of an address that the caller owns.
func adopt(address unsafe.Pointer) *Tensor {
	return &Tensor{newHandle("tensor", address, raw.ValueDestroy)}
}

func elementOf[T Element]() raw.ElementType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return raw.ElementFloat
	case float64:
		return raw.ElementDouble
	case int8:
		return raw.ElementInt8
	case int16:
		return raw.ElementInt16
	case int32:
		return raw.ElementInt32
	case int64:
		return raw.ElementInt64
	case uint8:
		return raw.ElementUint8
	case uint16:
		return raw.ElementUint16
	case uint32:
		return raw.ElementUint32
	case uint64:
		return raw.ElementUint64
	case bool:
		return raw.ElementBool
	case complex64:
		return raw.ElementComplex64
	case complex128:
		return raw.ElementComplex128
	}
	return raw.ElementString
}

// Type is the type of the elements.
func (t *Tensor) Type() (raw.ElementType, error) {
	var element raw.ElementType
	err := t.with(func(address unsafe.Pointer) error { return raw.ValueElementType(address, &element) })
	return element, err
}

// Shape has the size of each dimension.
func (t *Tensor) Shape() ([]int64, error) {
	var dims []int64
	err := t.with(func(address unsafe.Pointer) error {
		var err error
		dims, err = shapeOf(address)
		return err
	})
	return dims, err
}

func shapeOf(address unsafe.Pointer) ([]int64, error) {
	dims := make([]int64, 8)
	for {
		var rank uint
		err := raw.ValueShape(address, &dims[0], uint(len(dims)), &rank)
		if err == nil {
			return dims[:rank], nil
		}
		if rank <= uint(len(dims)) {
			return nil, err
		}
		dims = make([]int64, rank)
	}
}

// Bytes copies the elements as they lie in memory. A tensor of strings has none.
func (t *Tensor) Bytes() ([]byte, error) {
	var copied []byte
	err := t.withHost(func(data unsafe.Pointer, size uint) {
		copied = append([]byte{}, unsafe.Slice((*byte)(data), size)...)
	})
	return copied, err
}

// Data copies the elements of a tensor in row-major order. It fails for another type of elements than the tensor's.
func Data[T Element](value Value) ([]T, error) {
	tensor, ok := value.(*Tensor)
	if !ok {
		return nil, &Error{Status: raw.ErrorInvalidArgument, Message: fmt.Sprintf("a tensor is wanted; %T was given", value)}
	}
	element, err := tensor.Type()
	if err != nil {
		return nil, err
	}
	if wanted := elementOf[T](); element != wanted {
		var zero T
		said := fmt.Sprintf("the elements are %s; %T is %s", element, zero, wanted)
		return nil, &Error{Status: raw.ErrorInvalidArgument, Message: said}
	}
	copied := []T{}
	if element == raw.ElementString {
		strings, err := tensor.strings()
		if err == nil {
			copied = any(strings).([]T)
		}
		return copied, err
	}
	err = tensor.withHost(func(data unsafe.Pointer, size uint) {
		var zero T
		copied = make([]T, size/uint(unsafe.Sizeof(zero)))
		if truths, ok := any(copied).([]bool); ok {
			// Any byte but 0 is true to the library.
			for index, one := range unsafe.Slice((*byte)(data), size) {
				truths[index] = one != 0
			}
			return
		}
		copy(copied, unsafe.Slice((*T)(data), len(copied)))
	})
	return copied, err
}

func (t *Tensor) strings() ([]string, error) {
	var found []string
	err := t.with(func(address unsafe.Pointer) error {
		var count uint
		if err := raw.ValueElementCount(address, &count); err != nil {
			return err
		}
		found = make([]string, count)
		for index := range found {
			var err error
			found[index], err = textOf(func(buf *byte, size uint, needed *uint) error {
				return raw.ValueString(address, uint(index), buf, size, needed)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// Calls use with the elements on the host; those on a device are copied there for it.
func (t *Tensor) withHost(use func(data unsafe.Pointer, size uint)) error {
	return t.with(func(address unsafe.Pointer) error {
		var onDevice int32
		if err := raw.ValueDevice(address, &onDevice, nil, nil); err != nil {
			return err
		}
		if onDevice != 0 {
			copied, err := hostCopy(address)
			if err != nil {
				return err
			}
			defer raw.ValueDestroy(copied)
			address = copied
		}
		var data unsafe.Pointer
		var size uint
		if err := raw.ValueData(address, &data, &size); err != nil {
			return err
		}
		use(data, size)
		return nil
	})
}

func hostCopy(address unsafe.Pointer) (unsafe.Pointer, error) {
	var element raw.ElementType
	if err := raw.ValueElementType(address, &element); err != nil {
		return nil, err
	}
	shape, err := shapeOf(address)
	if err != nil {
		return nil, err
	}
	var out unsafe.Pointer
	if err := raw.ValueCreateTensor(element, firstOf(shape), uint(len(shape)), &out); err != nil {
		return nil, err
	}
	if err := raw.ValueCopy(address, out); err != nil {
		raw.ValueDestroy(out)
		return nil, err
	}
	return out, nil
}
