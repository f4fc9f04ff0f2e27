// Package rukh runs ONNX models on AMD GPUs, NVIDIA GPUs and CPUs with the library rukh, which it loads at the first
// call: the file that the environment variable RUKH_LIBRARY names, else librukh.so.0.1 as the system finds it.
//
//	session, err := rukh.Open("digits.onnx", nil)
//	image, err := rukh.NewTensor(make([]float32, 64), 1, 1, 8, 8)
//	outputs, err := session.Run(context.Background(), rukh.Values{"image": image}, nil)
//	scores, err := rukh.Data[float32](outputs["scores"])
//
// All functions and methods may be called from several goroutines at once. Sessions, environments and tensors end by
// Close, or when the garbage collector finds that nobody has them; it does not see the library's memory, so that a
// program with large tensors closes them. Package raw has every function of the C API.
package rukh

import "rukh/raw"

// Error is what the library refused or failed at; errors.As finds it.
type Error = raw.Error

// Options of an environment, a session, a provider or a run, by their names.
type Options map[string]string

// LibraryVersion is the version of the library, such as "0.1.0"; "" when it cannot be loaded.
func LibraryVersion() string {
	return raw.VersionString()
}
