package rukh_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rukh"
	"rukh/raw"
)

const digits = "../../examples/digits/digits.onnx"

func model(name string) string {
	return "../../capi-tests/models/" + name + ".onnx"
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func image() *rukh.Tensor {
	return must(rukh.NewTensor(make([]float32, 64), 1, 1, 8, 8))
}

// Whether an error is the library's, of a kind, with a text.
func fails(t *testing.T, err error, status raw.Status, text string) {
	t.Helper()
	var of *rukh.Error
	if !errors.As(err, &of) {
		t.Errorf("%v is no error of the library; %v was expected", err, status)
	} else if of.Status != status || !regexp.MustCompile(text).MatchString(of.Message) {
		t.Errorf("%v %q; %v %q was expected", of.Status, of.Message, status, text)
	}
}

func TestASessionTellsOfItsInputsAndOutputs(t *testing.T) {
	session := must(rukh.Open(digits, nil))
	defer session.Close()
	inputs := []rukh.Port{{Name: "image", Type: "tensor(float)", Shape: []int64{-1, 1, 8, 8}}}
	outputs := []rukh.Port{{Name: "scores", Type: "tensor(float)", Shape: []int64{-1, 10}}}
	if !reflect.DeepEqual(session.Inputs(), inputs) || !reflect.DeepEqual(session.Outputs(), outputs) {
		t.Error(session.Inputs(), session.Outputs())
	}
}

func TestGoroutinesRunASessionAtOnce(t *testing.T) {
	session := must(rukh.OpenBytes(must(os.ReadFile(model("add"))), nil))
	two := must(rukh.NewTensor([]float32{2, 2, 2}, 3))
	var group sync.WaitGroup
	for i := 0; i < 40; i++ {
		value := float32(i)
		group.Add(1)
		go func() {
			defer group.Done()
			a := must(rukh.NewTensor([]float32{value, value, value}, 3))
			found, err := session.Run(context.Background(), rukh.Values{"a": a, "b": two}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			sum, product := must(rukh.Data[float32](found["sum"])), must(rukh.Data[float32](found["product"]))
			if sum[2] != value+2 || product[0] != value*2 || len(sum) != 3 {
				t.Error(value, sum, product)
			}
		}()
	}
	group.Wait()
}

func TestOutputsAreThoseWantedAndGoIntoTheNextRun(t *testing.T) {
	session := must(rukh.Open(model("add"), nil))
	one := must(rukh.NewTensor([]float32{1, 1}, 2))
	var current rukh.Value = one
	for i := 0; i < 5; i++ {
		options := &rukh.RunOptions{Outputs: []string{"sum"}}
		found := must(session.Run(context.Background(), rukh.Values{"a": current, "b": one}, options))
		if len(found) != 1 {
			t.Fatal(found)
		}
		current = found["sum"]
	}
	if sum := must(rukh.Data[float32](current)); sum[0] != 6 {
		t.Error(sum)
	}
}

func TestSequencesAndStrings(t *testing.T) {
	of := func(value float32) *rukh.Tensor { return must(rukh.NewTensor([]float32{value}, 1)) }
	session := must(rukh.Open(model("sequence"), nil))
	list := rukh.Sequence{of(1), of(2), of(3)}
	at := must(rukh.NewTensor([]int64{2}))
	found := must(session.Run(context.Background(), rukh.Values{"a": of(7), "b": of(8), "list": list, "i": at}, nil))
	pair := found["pair"].(rukh.Sequence)
	if first := must(rukh.Data[float32](pair[0])); len(pair) != 2 || first[0] != 7 {
		t.Error(pair)
	}
	if item := must(rukh.Data[float32](found["item"])); item[0] != 3 {
		t.Error(item)
	}
	words := []string{"", "ü", "a\x00b", strings.Repeat("a long word ", 60)}
	same := must(rukh.Open(model("strings"), nil))
	shape := same.Inputs()[0].Shape
	for axis, size := range shape {
		if size < 0 {
			shape[axis] = map[bool]int64{true: int64(len(words)), false: 1}[axis == 0]
		}
	}
	in := must(rukh.NewTensor(words, shape...))
	out := must(same.Run(context.Background(), rukh.Values{"in": in}, nil))["out"]
	if got := must(rukh.Data[string](out)); !reflect.DeepEqual(got, words) {
		t.Errorf("%q", got)
	}
}

func TestFailuresSayWhatIsWrong(t *testing.T) {
	session := must(rukh.Open(digits, nil))
	run := func(values rukh.Values, options *rukh.RunOptions) error {
		_, err := session.Run(context.Background(), values, options)
		return err
	}
	open := func(path string, options *rukh.SessionOptions) error {
		_, err := rukh.Open(path, options)
		return err
	}
	short := must(rukh.NewTensor(make([]float32, 3), 3))
	_, noModel := rukh.OpenBytes([]byte{1, 2, 3}, nil)
	_, noBytes := rukh.OpenBytes(nil, nil)
	var none *rukh.Tensor
	for _, c := range []struct {
		err    error
		status raw.Status
		text   string
	}{
		{run(nil, nil), raw.ErrorInvalidInput, `"image" is missing`},
		{run(rukh.Values{"image": short}, nil), raw.ErrorInvalidInput, "rank 1.*rank 4"},
		{run(rukh.Values{"image": []float32{1}}, nil), raw.ErrorInvalidInput, `input image: .*tensor\(float\); \[\]float32`},
		{run(rukh.Values{"image": nil}, nil), raw.ErrorInvalidInput, "<nil> was given"},
		{run(rukh.Values{"image": none}, nil), raw.ErrorInvalidInput, "Tensor was given"},
		{run(rukh.Values{"nope": short}, nil), raw.ErrorNotFound, `"nope"`},
		{run(rukh.Values{"image\x00": image()}, nil), raw.ErrorInvalidArgument, "NUL inside"},
		{run(rukh.Values{"image": image()}, &rukh.RunOptions{Outputs: []string{"nope"}}), raw.ErrorNotFound, `"nope"`},
		{run(nil, &rukh.RunOptions{Options: rukh.Options{"nope": "1"}}), raw.ErrorInvalidArgument, `"nope"`},
		{open("nope.onnx", nil), raw.ErrorNotFound, `nope\.onnx`},
		{open(digits, &rukh.SessionOptions{Options: rukh.Options{"nope": "1"}}), raw.ErrorInvalidArgument, `"nope"`},
		{open(digits, &rukh.SessionOptions{Providers: []rukh.Provider{{Name: "nope"}}}), raw.ErrorInvalidArgument, `"nope"`},
		{noModel, raw.ErrorInvalidModel, "no ONNX model"},
		{noBytes, raw.ErrorInvalidModel, ""},
	} {
		fails(t, c.err, c.status, c.text)
	}
}

func TestARunIsEndedByItsContextAndByItsTimeOut(t *testing.T) {
	session := must(rukh.Open(model("count"), nil))
	shape := session.Inputs()[0].Shape
	forever := rukh.Values{"times": must(rukh.NewTensor([]int64{1 << 40}, shape...))}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := session.Run(ctx, forever, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := session.Run(ctx, forever, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	limit := &rukh.RunOptions{Options: rukh.Options{"timeout_ms": "50"}}
	_, err := session.Run(context.Background(), forever, limit)
	fails(t, err, raw.ErrorCancelled, "50")
	alive, end := context.WithCancel(context.Background())
	defer end()
	few := rukh.Values{"times": must(rukh.NewTensor([]int64{3}, shape...))}
	if _, err := session.Run(alive, few, nil); err != nil {
		t.Error(err)
	}
}

func TestWhatIsClosedSaysSo(t *testing.T) {
	session, tensor := must(rukh.Open(digits, nil)), image()
	found := must(session.Run(context.Background(), rukh.Values{"image": tensor}, nil))
	for i := 0; i < 2; i++ {
		session.Close()
		tensor.Close()
	}
	if scores := must(rukh.Data[float32](found["scores"])); len(scores) != 10 {
		t.Error(scores)
	}
	_, err := session.Run(context.Background(), rukh.Values{"image": image()}, nil)
	fails(t, err, raw.ErrorInvalidHandle, "session was closed")
	_, err = tensor.Shape()
	fails(t, err, raw.ErrorInvalidHandle, "tensor was closed")
}

func TestClosingDuringARunServesItToItsEnd(t *testing.T) {
	session := must(rukh.Open(model("count"), nil))
	times := must(rukh.NewTensor([]int64{1 << 40}, session.Inputs()[0].Shape...))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := session.Run(ctx, rukh.Values{"times": times}, nil)
		done <- err
	}()
	time.Sleep(30 * time.Millisecond)
	session.Close()
	times.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAnEnvironmentHasThreadsDevicesAndALog(t *testing.T) {
	var mutex sync.Mutex
	var messages []string
	environment := must(rukh.NewEnvironment(&rukh.EnvironmentOptions{
		Options:  rukh.Options{"threads": "2"},
		LogLevel: raw.LogInfo,
		Log: func(level raw.LogLevel, message string) {
			mutex.Lock()
			defer mutex.Unlock()
			messages = append(messages, level.String()+" "+message)
		},
	}))
	if count := must(environment.ThreadCount()); count != 2 {
		t.Error(count)
	}
	devices, reason := must(environment.Devices()), must(environment.ProviderReason("hip"))
	if last := devices[len(devices)-1]; last.Provider != "cpu" || last.Name == "" || last.Architecture == "" {
		t.Error(last)
	}
	if (len(devices) > 1) != (reason == "") {
		t.Error(devices, reason)
	}
	session := must(rukh.Open(digits, &rukh.SessionOptions{Environment: environment}))
	environment.Close()
	must(session.Run(context.Background(), rukh.Values{"image": image()}, nil))
	session.Close()
	mutex.Lock()
	defer mutex.Unlock()
	if all := strings.Join(messages, "\n"); !strings.Contains(all, "info opened model") {
		t.Error(all)
	}
	_, err := rukh.NewEnvironment(&rukh.EnvironmentOptions{Log: func(raw.LogLevel, string) {}, LogLevel: 9})
	fails(t, err, raw.ErrorInvalidArgument, "9")
	_, err = rukh.NewEnvironment(&rukh.EnvironmentOptions{Options: rukh.Options{"nope": "1"}})
	fails(t, err, raw.ErrorInvalidArgument, `"nope"`)
}
