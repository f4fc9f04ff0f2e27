package rukh

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"rukh/raw"
)

// RunOptions tell how a model runs.
type RunOptions struct {
	// The names of the outputs that are computed and returned; all when there are none.
	Outputs []string
	// Such as {"timeout_ms": "500"}.
	Options Options
	// What the run is not given is taken from these; of two the last counts.
	Adapters []*Adapter
}

// Run runs the model: values by the names of inputs, results by the names of outputs. nil for the default options. A
// context that ends, ends the run; the error is then the context's. Several goroutines may run a session at once.
func (s *Session) Run(ctx context.Context, values Values, options *RunOptions) (Values, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if options == nil {
		options = &RunOptions{}
	}
	settings, err := runSettings(ctx, options)
	if err != nil {
		return nil, err
	}
	defer raw.RunOptionsDestroy(settings)
	var used inputs
	defer used.end()
	names, addresses, err := s.given(&used, values)
	if err != nil {
		return nil, err
	}
	wanted := options.Outputs
	if len(wanted) == 0 {
		for _, port := range s.outputs {
			wanted = append(wanted, port.Name)
		}
	}
	results := make([]unsafe.Pointer, len(wanted))
	stop := cancelWith(ctx, settings)
	err = s.with(func(session unsafe.Pointer) error {
		return raw.SessionRun(session, settings, names, firstOf(addresses), uint(len(names)),
			wanted, uint(len(wanted)), firstOf(results))
	})
	stop()
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	return taken(wanted, results)
}

// The error of a run: the context's when that ended it.
func cancelled(ctx context.Context, err error) error {
	var of *Error
	if ctx.Err() != nil && errors.As(err, &of) && of.Status == raw.ErrorCancelled {
		return ctx.Err()
	}
	return err
}

// Options of a run that can be cancelled, or has options of its own or adapters; nil otherwise.
func runSettings(ctx context.Context, options *RunOptions) (unsafe.Pointer, error) {
	if ctx.Done() == nil && len(options.Options) == 0 && len(options.Adapters) == 0 {
		return nil, nil
	}
	var settings unsafe.Pointer
	if err := raw.RunOptionsCreate(&settings); err != nil {
		return nil, err
	}
	for key, value := range options.Options {
		if err := raw.RunOptionsSet(settings, key, value); err != nil {
			raw.RunOptionsDestroy(settings)
			return nil, err
		}
	}
	if err := addAdapters(settings, options.Adapters, raw.RunOptionsAddAdapter); err != nil {
		raw.RunOptionsDestroy(settings)
		return nil, err
	}
	return settings, nil
}

// Cancels runs with these options when the context ends. The function that it returns ends that, and waits for it.
func cancelWith(ctx context.Context, settings unsafe.Pointer) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			// It fails for options that are no more, which these are not.
			_ = raw.RunOptionsCancel(settings)
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

func (s *Session) given(used *inputs, values Values) ([]string, []unsafe.Pointer, error) {
	var names []string
	var addresses []unsafe.Pointer
	for name, value := range values {
		kind := "that of the model"
		for _, port := range s.inputs {
			if port.Name == name {
				kind = port.Type
			}
		}
		address, err := used.address(value, kind)
		var of *Error
		if errors.As(err, &of) {
			return nil, nil, &Error{Status: of.Status, Message: fmt.Sprintf("input %s: %s", name, of.Message)}
		}
		if err != nil {
			return nil, nil, err
		}
		names, addresses = append(names, name), append(addresses, address)
	}
	return names, addresses, nil
}

// The values of the outputs, all of which it takes over.
func taken(names []string, addresses []unsafe.Pointer) (Values, error) {
	outputs := make(Values, len(names))
	var failure error
	for index, name := range names {
		value, err := takeValue(addresses[index])
		if err != nil && failure == nil {
			failure = err
		}
		outputs[name] = value
	}
	if failure != nil {
		return nil, failure
	}
	return outputs, nil
}
