package rukh

import (
	"regexp"
	"unsafe"

	"rukh/raw"
)

// Provider is what runs nodes of a model: "hip" for GPUs, or "cpu".
type Provider struct {
	Name    string
	Options Options
}

// SessionOptions tell how a model is opened.
type SessionOptions struct {
	// nil for one that all sessions without their own share.
	Environment *Environment
	// The preferred one first; without any the CPU runs everything.
	Providers []Provider
	// Such as {"intra_op_threads": "2"}.
	Options Options
	// Their tensors take the place of initializers, for good; of two the last counts.
	Adapters []*Adapter
}

// Port is an input or an output of a model.
type Port struct {
	Name string
	// As the ONNX standard writes it: "tensor(float)", "seq(tensor(int64))" …
	Type string
	// -1 for a dimension that only a run tells; nil when their number is not known.
	Shape []int64
}

// Session is a model, ready to run.
type Session struct {
	*handle
	inputs, outputs []Port
}

// Open opens the file of a model; nil for the defaults.
func Open(path string, options *SessionOptions) (*Session, error) {
	return open(options, func(environment, settings unsafe.Pointer, out *unsafe.Pointer) error {
		return raw.SessionCreate(environment, path, settings, out)
	})
}

// OpenBytes opens a model in memory, which is copied; nil for the defaults.
func OpenBytes(model []byte, options *SessionOptions) (*Session, error) {
	return open(options, func(environment, settings unsafe.Pointer, out *unsafe.Pointer) error {
		data := unsafe.Pointer(firstOf(model))
		return raw.SessionCreateFromMemory(environment, data, uint(len(model)), settings, out)
	})
}

type creator func(environment, settings unsafe.Pointer, out *unsafe.Pointer) error

func open(options *SessionOptions, create creator) (*Session, error) {
	if options == nil {
		options = &SessionOptions{}
	}
	environment := options.Environment
	if environment == nil {
		var err error
		if environment, err = defaultEnvironment(); err != nil {
			return nil, err
		}
	}
	var settings, address unsafe.Pointer
	if err := raw.SessionOptionsCreate(&settings); err != nil {
		return nil, err
	}
	defer raw.SessionOptionsDestroy(settings)
	if err := options.write(settings); err != nil {
		return nil, err
	}
	err := environment.with(func(of unsafe.Pointer) error { return create(of, settings, &address) })
	if err != nil {
		return nil, err
	}
	session := &Session{handle: newHandle("session", address, raw.SessionDestroy)}
	if session.inputs, err = ports(address, inputSide); err == nil {
		session.outputs, err = ports(address, outputSide)
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

func (o *SessionOptions) write(settings unsafe.Pointer) error {
	for key, value := range o.Options {
		if err := raw.SessionOptionsSet(settings, key, value); err != nil {
			return err
		}
	}
	for _, provider := range o.Providers {
		var keys, values []string
		for key, value := range provider.Options {
			keys, values = append(keys, key), append(values, value)
		}
		if err := raw.SessionOptionsAddProvider(settings, provider.Name, keys, values, uint(len(keys))); err != nil {
			return err
		}
	}
	return addAdapters(settings, o.Adapters, raw.SessionOptionsAddAdapter)
}

// Inputs are the inputs in the model's order.
func (s *Session) Inputs() []Port {
	return append([]Port{}, s.inputs...)
}

// Outputs are the outputs in the model's order.
func (s *Session) Outputs() []Port {
	return append([]Port{}, s.outputs...)
}

// The functions that tell of inputs, or of outputs.
type side struct {
	count func(session unsafe.Pointer, count *uint) error
	name  func(session unsafe.Pointer, index uint, name *string) error
	kind  func(session unsafe.Pointer, index uint, buf *byte, size uint, needed *uint) error
	shape func(session unsafe.Pointer, index uint, dims *int64, size uint, rank *int64) error
}

var (
	inputSide = side{
		raw.SessionInputCount, raw.SessionInputName, raw.SessionInputTypeText, raw.SessionInputShape,
	}
	outputSide = side{
		raw.SessionOutputCount, raw.SessionOutputName, raw.SessionOutputTypeText, raw.SessionOutputShape,
	}
	dimensions = regexp.MustCompile(`\[[^\]]*\]`)
)

func ports(session unsafe.Pointer, of side) ([]Port, error) {
	var count uint
	if err := of.count(session, &count); err != nil {
		return nil, err
	}
	found := make([]Port, count)
	for i := range found {
		index, port := uint(i), &found[i]
		if err := of.name(session, index, &port.Name); err != nil {
			return nil, err
		}
		text, err := textOf(func(buf *byte, size uint, needed *uint) error {
			return of.kind(session, index, buf, size, needed)
		})
		if err != nil {
			return nil, err
		}
		port.Type = dimensions.ReplaceAllString(text, "")
		var rank int64
		if err := of.shape(session, index, nil, 0, &rank); err != nil {
			return nil, err
		}
		if rank < 0 {
			continue
		}
		port.Shape = make([]int64, rank)
		if err := of.shape(session, index, firstOf(port.Shape), uint(rank), &rank); err != nil {
			return nil, err
		}
	}
	return found, nil
}
