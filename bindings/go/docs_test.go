package rukh_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestTheExamplesOfTheDocumentsRun(t *testing.T) {
	for _, page := range []string{"README.md", "../../docs/bindings.md"} {
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(must(os.ReadFile(page)), -1)
		if len(blocks) == 0 {
			t.Error(page, "has no example")
		}
		for _, block := range blocks {
			folder := t.TempDir()
			source := filepath.Join(folder, "main.go")
			if err := os.WriteFile(source, block[1], 0o600); err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(folder, "program")
			if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", page, err, out)
			}
			run := exec.Command(program)
			run.Dir = "../../examples/digits"
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, out)
			}
		}
	}
}

func TestTheDigitsExample(t *testing.T) {
	folder := "../../examples/digits/"
	run := exec.Command("go", "run", "./examples/digits", folder+"digits.onnx", folder+"heldout.bin")
	out, err := run.CombinedOutput()
	if err != nil || !regexp.MustCompile(`of 360 right: (9[789]|100)`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}
