// Runs cases with the package onnxruntime_go: client LIBRARY CASES [PROVIDER]
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	ort "github.com/yalue/onnxruntime_go"
)

const turns = 3

type number interface{ float32 | int64 }

func numbers[T number](given tensor) (ort.Value, error) {
	data, err := list[T](given)
	if err != nil {
		return nil, err
	}
	return ort.NewTensor(ort.NewShape(given.dims...), data)
}

func value(given tensor) (ort.Value, error) {
	switch given.kind {
	case "float32":
		return numbers[float32](given)
	case "int64":
		return numbers[int64](given)
	case "string":
		made, err := ort.NewStringTensor(ort.NewShape(given.dims...))
		if err != nil {
			return nil, err
		}
		return made, made.SetContents(texts(given))
	}
	return nil, fmt.Errorf("a tensor of %s, which no case has", given.kind)
}

func equal[T comparable](found, wanted []T, near func(a, b T) bool) error {
	if len(found) != len(wanted) {
		return fmt.Errorf("it has %d elements, expected %d", len(found), len(wanted))
	}
	for i := range wanted {
		if !near(found[i], wanted[i]) {
			return fmt.Errorf("element %d is %v, expected %v", i, found[i], wanted[i])
		}
	}
	return nil
}

func equalNumbers[T number](found *ort.Tensor[T], wanted tensor) error {
	data, err := list[T](wanted)
	if err != nil {
		return err
	}
	return equal(found.GetData(), data, func(a, b T) bool {
		return a == b || math.Abs(float64(a)-float64(b)) <= wanted.tolerance
	})
}

func compare(found ort.Value, wanted tensor) error {
	if shape := ort.NewShape(wanted.dims...); !found.GetShape().Equals(shape) {
		return fmt.Errorf("its shape is %v, expected %v", found.GetShape(), shape)
	}
	switch found := found.(type) {
	case *ort.Tensor[float32]:
		if wanted.kind == "float32" {
			return equalNumbers(found, wanted)
		}
	case *ort.Tensor[int64]:
		if wanted.kind == "int64" {
			return equalNumbers(found, wanted)
		}
	case *ort.StringTensor:
		contents, err := found.GetContents()
		if err != nil {
			return err
		}
		if wanted.kind == "string" {
			return equal(contents, texts(wanted), func(a, b string) bool { return a == b })
		}
	}
	return fmt.Errorf("it is %T, expected %s", found, wanted.kind)
}

func options(provider string, strict bool) (*ort.SessionOptions, error) {
	made, err := ort.NewSessionOptions()
	if err != nil || provider == "cpu" {
		return made, err
	}
	if strict {
		if err := made.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"); err != nil {
			return nil, err
		}
	}
	if provider == "cuda" {
		cuda, err := ort.NewCUDAProviderOptions()
		if err != nil {
			return nil, err
		}
		defer cuda.Destroy()
		if err := cuda.Update(map[string]string{"device_id": "0"}); err != nil {
			return nil, err
		}
		return made, made.AppendExecutionProviderCUDA(cuda)
	}
	return made, made.AppendExecutionProvider(provider, map[string]string{"device_id": "0"})
}

func runTurns(session *ort.DynamicAdvancedSession, inputs []ort.Value, names []string, wanted map[string]tensor) error {
	for turn := 0; turn < turns; turn++ {
		outputs := make([]ort.Value, len(names))
		if err := session.Run(inputs, outputs); err != nil {
			return err
		}
		for i, name := range names {
			if err := compare(outputs[i], wanted[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			outputs[i].Destroy()
		}
	}
	return nil
}

// Opens the case's model from a path and from memory, and runs each.
func run(folder, provider string) error {
	given, err := readCase(folder)
	if err != nil {
		return err
	}
	var inputNames, outputNames []string
	var inputs []ort.Value
	for name, input := range given.inputs {
		made, err := value(input)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer made.Destroy()
		inputNames, inputs = append(inputNames, name), append(inputs, made)
	}
	for name := range given.outputs {
		outputNames = append(outputNames, name)
	}
	path := filepath.Join(folder, "model.onnx")
	bytes, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	made, err := options(provider, given.strict)
	if err != nil {
		return err
	}
	defer made.Destroy()
	fromPath := func() (*ort.DynamicAdvancedSession, error) {
		return ort.NewDynamicAdvancedSession(path, inputNames, outputNames, made)
	}
	fromMemory := func() (*ort.DynamicAdvancedSession, error) {
		return ort.NewDynamicAdvancedSessionWithONNXData(bytes, inputNames, outputNames, made)
	}
	for _, open := range []func() (*ort.DynamicAdvancedSession, error){fromPath, fromMemory} {
		session, err := open()
		if err != nil {
			return err
		}
		err = runTurns(session, inputs, outputNames, given.outputs)
		session.Destroy()
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: client LIBRARY CASES [PROVIDER]")
		os.Exit(2)
	}
	provider := "cpu"
	if len(os.Args) > 3 {
		provider = os.Args[3]
	}
	ort.SetSharedLibraryPath(os.Args[1])
	if err := ort.InitializeEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer ort.DestroyEnvironment()
	folders, _ := filepath.Glob(filepath.Join(os.Args[2], "*"))
	failed := 0
	for _, folder := range folders {
		if err := run(folder, provider); err != nil {
			failed++
			fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(folder), err)
		}
	}
	// A wrong model is an error, which does not end the program.
	if _, err := ort.NewDynamicAdvancedSessionWithONNXData([]byte("no model"), []string{"x"}, []string{"y"}, nil); err == nil {
		failed++
		fmt.Fprintln(os.Stderr, "bytes that are no model open")
	}
	fmt.Printf("onnxruntime_go, API of onnxruntime %s, %s: %d passed, %d failed\n", ort.GetVersion(), provider, len(folders)-failed, failed)
	if failed > 0 || len(folders) == 0 {
		os.Exit(1)
	}
}
