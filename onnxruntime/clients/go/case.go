package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type tensor struct {
	kind      string
	tolerance float64
	dims      []int64
	data      []byte
}

// A case as cases.py writes it.
type testCase struct {
	// Where a GPU is asked for, all of the model must run on it.
	strict          bool
	inputs, outputs map[string]tensor
}

func readCase(folder string) (testCase, error) {
	found := testCase{inputs: map[string]tensor{}, outputs: map[string]tensor{}}
	text, err := os.ReadFile(filepath.Join(folder, "tensors.txt"))
	if err != nil {
		return found, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Split(line, " ")
		roles := map[string]map[string]tensor{"input": found.inputs, "output": found.outputs}
		if line == "strict" {
			found.strict = true
		} else if role := roles[fields[0]]; role == nil || len(fields) < 5 {
			return found, fmt.Errorf("a line %q in tensors.txt", line)
		} else if role[fields[1]], err = readTensor(folder, fields[2:]); err != nil {
			return found, fmt.Errorf("%s: %w", fields[1], err)
		}
	}
	if len(found.outputs) == 0 {
		return found, fmt.Errorf("no outputs in tensors.txt")
	}
	return found, nil
}

func readTensor(folder string, fields []string) (tensor, error) {
	made := tensor{kind: fields[0]}
	var err error
	if made.tolerance, err = strconv.ParseFloat(fields[1], 64); err != nil {
		return made, err
	}
	for _, field := range fields[3:] {
		dim, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return made, err
		}
		made.dims = append(made.dims, dim)
	}
	made.data, err = os.ReadFile(filepath.Join(folder, fields[2]))
	return made, err
}

// The elements of a tensor of numbers.
func list[T any](given tensor) ([]T, error) {
	count := int64(1)
	for _, dim := range given.dims {
		count *= dim
	}
	data := make([]T, count)
	reader := bytes.NewReader(given.data)
	if err := binary.Read(reader, binary.LittleEndian, data); err != nil {
		return nil, err
	}
	if reader.Len() > 0 {
		return nil, fmt.Errorf("%d bytes are left after %d elements", reader.Len(), count)
	}
	return data, nil
}

// The elements of a tensor of strings, each of which ends with a NUL.
func texts(given tensor) []string {
	parts := strings.Split(string(given.data), "\x00")
	return parts[:len(parts)-1]
}
