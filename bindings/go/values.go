package rukh

import (
	"fmt"
	"regexp"
	"strings"
	"unsafe"

	"rukh/raw"
)

// Value is what goes into a model and comes out: a *Tensor, a Sequence, a Map or an Optional.
type Value interface{}

// Values are values by the names of inputs or outputs.
type Values map[string]Value

// Sequence has values of one type.
type Sequence []Value

// Map has keys, a tensor of integers or strings with one dimension, and as many values in the same order.
type Map struct {
	Keys   *Tensor
	Values []Value
}

// Optional holds a value, or nil.
type Optional struct {
	Value Value
}

// What is made and held for the inputs of a run, until it has ended.
type inputs struct {
	ends []func()
}

func (i *inputs) end() {
	for _, end := range i.ends {
		end()
	}
}

var (
	outer  = regexp.MustCompile(`(?s)^(\w+)\((.*)\)$`)
	tensor = regexp.MustCompile(`tensor\((\w+)\)`)
)

// The address of a value for an input of a type such as "seq(tensor(float))".
func (i *inputs) address(value Value, kind string) (unsafe.Pointer, error) {
	inside := kind
	if parts := outer.FindStringSubmatch(kind); parts != nil {
		inside = parts[2]
	}
	switch value := value.(type) {
	case *Tensor:
		if value == nil {
			break
		}
		address, err := value.hold()
		if err == nil {
			i.ends = append(i.ends, value.release)
		}
		return address, err
	case Sequence:
		return i.sequence(value, kind, inside)
	case Map:
		return i.mapping(value, kind, inside)
	case Optional:
		return i.optional(value, kind, inside)
	}
	return nil, &Error{Status: raw.ErrorInvalidInput, Message: fmt.Sprintf("its type is %s; %T was given", kind, value)}
}

func (i *inputs) all(values []Value, kind string) ([]unsafe.Pointer, error) {
	addresses := make([]unsafe.Pointer, len(values))
	for index, value := range values {
		address, err := i.address(value, kind)
		if err != nil {
			return nil, err
		}
		addresses[index] = address
	}
	return addresses, nil
}

func (i *inputs) sequence(value Sequence, kind, inside string) (unsafe.Pointer, error) {
	items, err := i.all(value, inside)
	if err != nil {
		return nil, err
	}
	return i.made(func(out *unsafe.Pointer) error {
		return raw.ValueCreateSequence(firstOf(items), uint(len(items)), innermost(kind), out)
	})
}

func (i *inputs) mapping(value Map, kind, inside string) (unsafe.Pointer, error) {
	_, item, _ := strings.Cut(inside, ",")
	keys, err := i.address(value.Keys, "tensor")
	if err != nil {
		return nil, err
	}
	items, err := i.all(value.Values, strings.TrimSpace(item))
	if err != nil {
		return nil, err
	}
	return i.made(func(out *unsafe.Pointer) error {
		return raw.ValueCreateMap(keys, firstOf(items), uint(len(items)), innermost(kind), out)
	})
}

func (i *inputs) optional(value Optional, kind, inside string) (unsafe.Pointer, error) {
	var held unsafe.Pointer
	if value.Value != nil {
		var err error
		if held, err = i.address(value.Value, inside); err != nil {
			return nil, err
		}
	}
	return i.made(func(out *unsafe.Pointer) error { return raw.ValueCreateOptional(held, innermost(kind), out) })
}

func (i *inputs) made(create func(out *unsafe.Pointer) error) (unsafe.Pointer, error) {
	var out unsafe.Pointer
	if err := create(&out); err != nil {
		return nil, err
	}
	i.ends = append(i.ends, func() { raw.ValueDestroy(out) })
	return out, nil
}

// The type of the elements of the tensors inside a type.
func innermost(kind string) raw.ElementType {
	if found := tensor.FindStringSubmatch(kind); found != nil {
		return raw.ElementTypeNamed(found[1])
	}
	return raw.ElementUndefined
}

// The value of an address, which it takes over.
func takeValue(address unsafe.Pointer) (Value, error) {
	var kind raw.Kind
	if err := raw.ValueKind(address, &kind); err != nil {
		raw.ValueDestroy(address)
		return nil, err
	}
	if kind == raw.KindTensor {
		return adopt(address), nil
	}
	defer raw.ValueDestroy(address)
	items, err := itemsOf(address)
	if err != nil {
		return nil, err
	}
	switch kind {
	case raw.KindMap:
		var keys unsafe.Pointer
		if err := raw.ValueMapKeys(address, &keys); err != nil {
			return nil, err
		}
		return Map{adopt(keys), items}, nil
	case raw.KindOptional:
		if len(items) == 0 {
			return Optional{}, nil
		}
		return Optional{items[0]}, nil
	}
	return Sequence(items), nil
}

func itemsOf(address unsafe.Pointer) ([]Value, error) {
	var count uint
	if err := raw.ValueItemCount(address, &count); err != nil {
		return nil, err
	}
	items := make([]Value, count)
	for index := range items {
		var item unsafe.Pointer
		if err := raw.ValueItem(address, uint(index), &item); err != nil {
			return nil, err
		}
		var err error
		if items[index], err = takeValue(item); err != nil {
			return nil, err
		}
	}
	return items, nil
}
