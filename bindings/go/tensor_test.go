package rukh

import (
	"bytes"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"rukh/raw"
)

func roundTrip[T Element](t *testing.T, element raw.ElementType, data ...T) {
	t.Helper()
	tensor, err := NewTensor(data, int64(len(data)), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Data[T](tensor)
	shape, _ := tensor.Shape()
	kind, _ := tensor.Type()
	if err != nil || !reflect.DeepEqual(got, append([]T{}, data...)) || kind != element || !reflect.DeepEqual(shape, []int64{int64(len(data)), 1}) {
		t.Error(kind, shape, got, err)
	}
}

func TestElementsComeBackAsTheyWent(t *testing.T) {
	roundTrip(t, raw.ElementFloat, float32(1.5), -2)
	roundTrip(t, raw.ElementDouble, float64(1.5), -2)
	roundTrip(t, raw.ElementInt8, int8(1), -2)
	roundTrip(t, raw.ElementInt16, int16(1), -2)
	roundTrip(t, raw.ElementInt32, int32(1), -2)
	roundTrip(t, raw.ElementInt64, int64(1), -1<<62)
	roundTrip(t, raw.ElementUint8, uint8(1), 255)
	roundTrip(t, raw.ElementUint16, uint16(1), 65535)
	roundTrip(t, raw.ElementUint32, uint32(1), 1<<32-1)
	roundTrip(t, raw.ElementUint64, uint64(1), 1<<64-1)
	roundTrip(t, raw.ElementBool, true, false, true)
	roundTrip(t, raw.ElementComplex64, complex64(1+2i))
	roundTrip(t, raw.ElementComplex128, 1+2i)
	roundTrip(t, raw.ElementString, "a", "", "ü\x00")
	roundTrip[float32](t, raw.ElementFloat)
	roundTrip[string](t, raw.ElementString)
}

func TestScalarsBytesAndManyDimensions(t *testing.T) {
	scalar, err := NewTensor([]float32{7})
	if shape, _ := scalar.Shape(); err != nil || len(shape) != 0 {
		t.Error(shape, err)
	}
	half, err := NewTensorFromBytes(raw.ElementFloat16, []byte{0, 0x3c}, 1)
	if got, _ := half.Bytes(); err != nil || !bytes.Equal(got, []byte{0, 0x3c}) {
		t.Error(got, err)
	}
	odd, err := NewTensorFromBytes(raw.ElementBool, []byte{0, 2}, 2)
	if got, _ := Data[bool](odd); err != nil || !reflect.DeepEqual(got, []bool{false, true}) {
		t.Error(got, err)
	}
	deep, err := NewTensor([]int8{1}, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	if shape, _ := deep.Shape(); err != nil || len(shape) != 12 {
		t.Error(shape, err)
	}
}

func TestWrongDataAreRefused(t *testing.T) {
	ints, _ := NewTensor([]int32{1}, 1)
	_, short := NewTensor([]float32{1}, 2)
	_, negative := NewTensor([]float32{1}, -1)
	_, few := NewTensor([]string{"a"}, 2)
	_, other := Data[float32](ints)
	_, none := Data[float32](Sequence{})
	for text, err := range map[string]error{
		"4": short, "-1": negative, "2": few, "the elements are int32; float32 is float": other, "rukh.Sequence": none,
	} {
		if of, ok := err.(*Error); !ok || of.Status != raw.ErrorInvalidArgument || !strings.Contains(of.Message, text) {
			t.Errorf("%v has no %q", err, text)
		}
	}
}

// A value that goes into the library and comes back.
func through(t *testing.T, value Value, kind string) Value {
	t.Helper()
	var used inputs
	defer used.end()
	address, err := used.address(value, kind)
	if err != nil {
		t.Fatal(err)
	}
	var again unsafe.Pointer
	if err := raw.ValueClone(address, &again); err != nil {
		t.Fatal(err)
	}
	got, err := takeValue(again)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestMapsOptionalsAndSequencesComeBackAsTheyWent(t *testing.T) {
	one, _ := NewTensor([]float32{1}, 1)
	two, _ := NewTensor([]float32{2}, 1)
	keys, _ := NewTensor([]string{"a", "b"}, 2)
	words := through(t, Map{keys, []Value{one, two}}, "map(string,tensor(float))").(Map)
	got, _ := Data[string](words.Keys)
	second, _ := Data[float32](words.Values[1])
	if !reflect.DeepEqual(got, []string{"a", "b"}) || second[0] != 2 {
		t.Error(got, second)
	}
	if empty := through(t, Optional{}, "optional(tensor(float))").(Optional); empty.Value != nil {
		t.Error(empty)
	}
	full := through(t, Optional{two}, "optional(tensor(float))").(Optional)
	if data, err := Data[float32](full.Value); err != nil || data[0] != 2 {
		t.Error(data, err)
	}
	for _, element := range []string{"int64", "float8e5m2", "string"} {
		if empty := through(t, Sequence{}, "seq(tensor("+element+"))").(Sequence); len(empty) != 0 {
			t.Error(empty)
		}
	}
	number, _ := NewTensor([]int64{7}, 1)
	maps := through(t, Sequence{Map{number, []Value{one}}}, "seq(map(int64,tensor(float)))").(Sequence)
	if key, _ := Data[int64](maps[0].(Map).Keys); key[0] != 7 {
		t.Error(key)
	}
}

func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize()
}

func TestMemoryGoesBackWhenNobodyHasTheTensors(t *testing.T) {
	data := bytes.Repeat([]byte{1}, 16<<20)
	before := resident(t)
	for i := 0; i < 100; i++ {
		if _, err := NewTensor(data, int64(len(data))); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
	}
	if grown := resident(t) - before; grown > 25*len(data) {
		t.Errorf("100 tensors of %d bytes left %d bytes", len(data), grown)
	}
}
