// Classifies the 360 held-out images of handwritten digits.
//
//	digits [MODEL [IMAGES]]
//
// Exit codes: 0 when at least 97 % are right, 1 when fewer are, 2 when something cannot be read or run.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"rukh"
)

func main() {
	paths := []string{"digits.onnx", "heldout.bin"}
	copy(paths, os.Args[1:])
	right, count, err := classify(paths[0], paths[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d of %d right: %g %%\n", right, count, 100*float64(right)/float64(count))
	if right*100 < count*97 {
		os.Exit(1)
	}
}

func classify(model, images string) (right, count int, err error) {
	// Three little-endian 32-bit numbers (count, height, width), the pixels from 0 to 16, the labels.
	file, err := os.ReadFile(images)
	if err != nil {
		return 0, 0, err
	}
	if len(file) < 12 {
		return 0, 0, fmt.Errorf("%s: it is cut off", images)
	}
	var head [3]int
	for i := range head {
		head[i] = int(binary.LittleEndian.Uint32(file[4*i:]))
	}
	count, area := head[0], head[1]*head[2]
	if len(file) != 12+count*(area+1) {
		return 0, 0, fmt.Errorf("%s: it has %d bytes, not %d", images, len(file), 12+count*(area+1))
	}
	pixels := make([]float32, count*area)
	for i := range pixels {
		pixels[i] = float32(file[12+i])
	}
	labels := file[12+len(pixels):]

	session, err := rukh.Open(model, nil)
	if err != nil {
		return 0, 0, err
	}
	defer session.Close()
	image, err := rukh.NewTensor(pixels, int64(count), 1, int64(head[1]), int64(head[2]))
	if err != nil {
		return 0, 0, err
	}
	defer image.Close()
	outputs, err := session.Run(context.Background(), rukh.Values{"image": image}, nil)
	if err != nil {
		return 0, 0, err
	}
	scores, err := rukh.Data[float32](outputs["scores"])
	if err != nil {
		return 0, 0, err
	}
	classes := len(scores) / count
	for i := 0; i < count; i++ {
		row, best := scores[i*classes:(i+1)*classes], 0
		for class, score := range row {
			if score > row[best] {
				best = class
			}
		}
		if best == int(labels[i]) {
			right++
		}
	}
	return right, count, nil
}
