package rukh

import (
	"fmt"
	"unsafe"

	"rukh/raw"
)

// Adapter has tensors that take the place of a model's, such as those of LoRA. Sessions and runs that were given one keep
// what they need of it.
type Adapter struct {
	*handle
}

// OpenAdapter opens a file of an adapter, as ONNX Runtime writes it (.onnx_adapter).
func OpenAdapter(path string) (*Adapter, error) {
	var address unsafe.Pointer
	if err := raw.AdapterOpen(path, &address); err != nil {
		return nil, err
	}
	return newAdapter(address), nil
}

// NewAdapter makes an adapter of tensors, which it shares.
func NewAdapter(tensors map[string]*Tensor) (*Adapter, error) {
	var names []string
	var addresses []unsafe.Pointer
	var used inputs
	defer used.end()
	for name, tensor := range tensors {
		address, err := used.address(tensor, "that of the model")
		if err != nil {
			return nil, err
		}
		names, addresses = append(names, name), append(addresses, address)
	}
	var address unsafe.Pointer
	if err := raw.AdapterCreate(names, firstOf(addresses), uint(len(names)), 0, 0, &address); err != nil {
		return nil, err
	}
	return newAdapter(address), nil
}

func newAdapter(address unsafe.Pointer) *Adapter {
	return &Adapter{newHandle("adapter", address, raw.AdapterDestroy)}
}

// Save writes the adapter to a file that ONNX Runtime reads as well.
func (a *Adapter) Save(path string) error {
	return a.with(func(address unsafe.Pointer) error { return raw.AdapterSave(address, path) })
}

// Tensors are what is in the adapter.
func (a *Adapter) Tensors() (map[string]*Tensor, error) {
	found := map[string]*Tensor{}
	err := a.with(func(address unsafe.Pointer) error {
		var count uint
		if err := raw.AdapterParameterCount(address, &count); err != nil {
			return err
		}
		for index := uint(0); index < count; index++ {
			name, err := textOf(func(buf *byte, size uint, needed *uint) error {
				return raw.AdapterParameterName(address, index, buf, size, needed)
			})
			if err != nil {
				return err
			}
			var value unsafe.Pointer
			if err := raw.AdapterParameterValue(address, index, &value); err != nil {
				return err
			}
			found[name] = adopt(value)
		}
		return nil
	})
	return found, err
}

// Adds adapters to options of sessions or of runs.
func addAdapters(options unsafe.Pointer, adapters []*Adapter, add func(options, adapter unsafe.Pointer) error) error {
	for index, adapter := range adapters {
		if adapter == nil {
			return &Error{Status: raw.ErrorInvalidArgument, Message: fmt.Sprintf("adapter %d is nil; OpenAdapter makes one", index)}
		}
		err := adapter.with(func(address unsafe.Pointer) error { return add(options, address) })
		if err != nil {
			return err
		}
	}
	return nil
}
