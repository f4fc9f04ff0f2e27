package rukh_test

import (
	"context"
	"path/filepath"
	"testing"

	"rukh"
	"rukh/raw"
)

// A file that ONNX Runtime wrote, for the model "adapted", y = x W + x A B + b: A and B, for which x A B is 2.
const adapterFile = "../../onnxruntime/tests/models/adapted.onnx_adapter"

// What y exceeds x W by, for ones.
func added(t *testing.T, session *rukh.Session, adapters ...*rukh.Adapter) float32 {
	t.Helper()
	x := must(rukh.NewTensor([]float32{1, 1, 1, 1}, 1, 4))
	found := must(session.Run(context.Background(), rukh.Values{"x": x}, &rukh.RunOptions{Adapters: adapters}))
	y := must(rukh.Data[float32](found["y"]))
	if len(y) != 3 || y[1]-22 != y[0]-18 || y[2]-26 != y[0]-18 {
		t.Error(y)
	}
	return y[0] - 18
}

func bias(value float32) *rukh.Adapter {
	b := must(rukh.NewTensor([]float32{value, value, value}, 3))
	defer b.Close()
	return must(rukh.NewAdapter(map[string]*rukh.Tensor{"b": b}))
}

func TestRunsAndSessionsTakeAdapters(t *testing.T) {
	plain := must(rukh.Open(model("adapted"), nil))
	lora := must(rukh.OpenAdapter(adapterFile))
	saved := filepath.Join(t.TempDir(), "saved.onnx_adapter")
	if err := bias(5).Save(saved); err != nil {
		t.Fatal(err)
	}
	five := must(rukh.OpenAdapter(saved))
	for _, c := range []struct {
		adapters []*rukh.Adapter
		wanted   float32
	}{
		{nil, 0},
		{[]*rukh.Adapter{lora}, 2},
		{[]*rukh.Adapter{lora, five}, 7},
		{[]*rukh.Adapter{five, bias(7)}, 7},
		{nil, 0},
	} {
		if found := added(t, plain, c.adapters...); found != c.wanted {
			t.Error(found, c.wanted)
		}
		session := must(rukh.Open(model("adapted"), &rukh.SessionOptions{Adapters: c.adapters}))
		if found := added(t, session); found != c.wanted {
			t.Error(found, c.wanted)
		}
		session.Close()
	}
	// The session keeps what it needs.
	session := must(rukh.Open(model("adapted"), &rukh.SessionOptions{Adapters: []*rukh.Adapter{lora}}))
	lora.Close()
	if found := added(t, session, five); found != 7 {
		t.Error(found)
	}
}

func TestAnAdapterTellsWhatIsInIt(t *testing.T) {
	tensors := must(must(rukh.OpenAdapter(adapterFile)).Tensors())
	a, b := must(tensors["lora_a"].Shape()), must(rukh.Data[float32](tensors["lora_b"]))
	if len(tensors) != 2 || len(a) != 2 || a[0] != 4 || a[1] != 2 || b[0] != 0.25 {
		t.Error(tensors, a, b)
	}
}

func TestFailuresOfAdapters(t *testing.T) {
	lora, session := must(rukh.OpenAdapter(adapterFile)), must(rukh.Open(digits, nil))
	closed := bias(1)
	closed.Close()
	open := func(adapter *rukh.Adapter) error {
		_, err := rukh.Open(digits, &rukh.SessionOptions{Adapters: []*rukh.Adapter{adapter}})
		return err
	}
	run := func(adapter *rukh.Adapter) error {
		options := &rukh.RunOptions{Adapters: []*rukh.Adapter{adapter}}
		_, err := session.Run(context.Background(), rukh.Values{"image": image()}, options)
		return err
	}
	_, none := rukh.OpenAdapter("none.onnx_adapter")
	_, other := rukh.OpenAdapter(digits)
	_, nothing := rukh.NewAdapter(map[string]*rukh.Tensor{"b": nil})
	for _, c := range []struct {
		err    error
		status raw.Status
		text   string
	}{
		{none, raw.ErrorNotFound, `none\.onnx_adapter`},
		{other, raw.ErrorInvalidModel, `digits\.onnx`},
		{nothing, raw.ErrorInvalidInput, "Tensor was given"},
		{open(nil), raw.ErrorInvalidArgument, "adapter 0 is nil"},
		{run(nil), raw.ErrorInvalidArgument, "adapter 0 is nil"},
		{open(closed), raw.ErrorInvalidHandle, "adapter was closed"},
		{run(closed), raw.ErrorInvalidHandle, "adapter was closed"},
		{open(lora), raw.ErrorNotFound, "lora_"},
		{run(lora), raw.ErrorNotFound, "lora_"},
	} {
		fails(t, c.err, c.status, c.text)
	}
}
