package rukh

import (
	"runtime"
	"sync"
	"unsafe"

	"rukh/raw"
)

// An object of the library: ended by Close, or when Go no longer has it.
type handle struct {
	mutex   sync.Mutex
	kind    string
	address unsafe.Pointer
	destroy func(unsafe.Pointer)
	users   int
	closed  bool
}

func newHandle(kind string, address unsafe.Pointer, destroy func(unsafe.Pointer)) *handle {
	h := &handle{kind: kind, address: address, destroy: destroy}
	runtime.SetFinalizer(h, (*handle).Close)
	return h
}

// Close ends the object; what still uses it goes on. Calling it again does nothing. It always returns nil.
func (h *handle) Close() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.closed = true
	h.endIfUnused()
	return nil
}

// The address for a call, after which the caller calls release.
func (h *handle) hold() (unsafe.Pointer, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		return nil, &Error{Status: raw.ErrorInvalidHandle, Message: "this " + h.kind + " was closed and cannot be used any more"}
	}
	h.users++
	return h.address, nil
}

func (h *handle) release() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.users--
	h.endIfUnused()
}

func (h *handle) endIfUnused() {
	if h.closed && h.users == 0 && h.address != nil {
		h.destroy(h.address)
		h.address = nil
		runtime.SetFinalizer(h, nil)
	}
}

// Calls use with the address.
func (h *handle) with(use func(unsafe.Pointer) error) error {
	address, err := h.hold()
	if err != nil {
		return err
	}
	defer h.release()
	return use(address)
}

// The text that a function of the raw layer builds whose parameters buf, cap and needed come last.
func textOf(build func(buf *byte, size uint, needed *uint) error) (string, error) {
	buffer := make([]byte, 256)
	for {
		var needed uint
		err := build(&buffer[0], uint(len(buffer)), &needed)
		if err == nil {
			return string(buffer[:needed-1]), nil
		}
		if needed <= uint(len(buffer)) {
			return "", err
		}
		buffer = make([]byte, needed)
	}
}

func firstOf[T any](elements []T) *T {
	if len(elements) == 0 {
		return nil
	}
	return &elements[0]
}
