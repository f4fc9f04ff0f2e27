// Package raw has every function of rukh's C API, written from its description. Package rukh is easier to use.
//
// Addresses are unsafe.Pointer, sizes uint. Functions that return a status leave out the last parameter of C's,
// error, and return an *Error. The library is loaded at the first call: the file that the environment variable
// RUKH_LIBRARY names, else the one that the system finds. A function that the library does not have fails when it is
// called. Memory of Go's that is given to a call is used by it alone, unless the function's comment says otherwise; then
// the memory must be C's.
package raw

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "functions.h"
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// Error is what the library refused or failed at.
type Error struct {
	// The kind of failure.
	Status Status
	// The library's text.
	Message string
}

func (e *Error) Error() string {
	return e.Message
}

// A library that is loaded: the address of each function that it has.
type library struct {
	path      string
	addresses [len(described)]unsafe.Pointer
}

var (
	once    sync.Once
	loaded  *library
	failure error
)

// The address of a function of the library that is loaded.
func function(index int) (unsafe.Pointer, error) {
	once.Do(func() { loaded, failure = load(os.Getenv("RUKH_LIBRARY")) })
	if failure != nil {
		return nil, failure
	}
	return loaded.function(index)
}

// The file of this name, else, without a name, the library that the system finds.
func load(named string) (*library, error) {
	paths := []string{"librukh.so.0.1", "librukh.so"}
	if named != "" {
		paths = []string{named}
	}
	var failures []string
	for _, path := range paths {
		handle, said := open(path)
		if handle == nil {
			failures = append(failures, said)
			continue
		}
		found := &library{path: path}
		for index, entry := range described {
			name := C.CString("rukh_" + entry.name)
			found.addresses[index] = C.dlsym(handle, name)
			C.free(unsafe.Pointer(name))
		}
		return found, found.check()
	}
	said := "librukh cannot be loaded (set RUKH_LIBRARY to its path): " + strings.Join(failures, "; ")
	return nil, &Error{ErrorNotFound, said}
}

func open(path string) (unsafe.Pointer, string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		return nil, C.GoString(C.dlerror())
	}
	return handle, ""
}

// Whether the library is of the series that this package was written for.
func (l *library) check() error {
	for index, entry := range described {
		if entry.name == "abi_version" {
			address, err := l.function(index)
			if err != nil {
				return err
			}
			return checkVersion(uint32(C.go_abi_version(address)))
		}
	}
	panic("the description has no abi_version")
}

// The rule of rukh.h: the same major and minor version. A function that is newer fails when it is called.
func checkVersion(found uint32) error {
	if found/1000 != describedABI/1000 {
		said := fmt.Sprintf("librukh has binary interface %d.%d.%d; this package needs one of the series %d.%d",
			found/1000000, found/1000%1000, found%1000, describedABI/1000000, describedABI/1000%1000)
		return &Error{ErrorUnsupported, said}
	}
	return nil
}

func (l *library) function(index int) (unsafe.Pointer, error) {
	if address := l.addresses[index]; address != nil {
		return address, nil
	}
	entry := described[index]
	said := fmt.Sprintf("rukh_%s came with binary interface %s; %s does not have it: use a newer librukh",
		entry.name, entry.since, l.path)
	return nil, &Error{ErrorUnsupported, said}
}

// What a call reported; ends the error object.
func failed(status C.int32_t, failure *unsafe.Pointer) error {
	if status == 0 {
		return nil
	}
	message := ErrorMessage(*failure)
	ErrorDestroy(*failure)
	return &Error{Status(status), message}
}

// A text in C's memory. One with a NUL inside is refused, which C would take for a shorter one.
func text(given string) (unsafe.Pointer, error) {
	if strings.IndexByte(given, 0) >= 0 {
		return nil, &Error{ErrorInvalidArgument, fmt.Sprintf("the text %q has a NUL inside; texts end there", given)}
	}
	return unsafe.Pointer(C.CString(given)), nil
}

func free(memory unsafe.Pointer) {
	C.free(memory)
}

// Texts in C's memory. With bare they may have NULs inside.
func texts(given []string, bare bool) ([]unsafe.Pointer, error) {
	copies := make([]unsafe.Pointer, 0, len(given))
	for _, one := range given {
		if !bare {
			copied, err := text(one)
			if err != nil {
				freeAll(copies)
				return nil, err
			}
			copies = append(copies, copied)
			continue
		}
		copies = append(copies, unsafe.Pointer(C.CString(one)))
	}
	return copies, nil
}

func freeAll(memory []unsafe.Pointer) {
	for _, one := range memory {
		C.free(one)
	}
}

// The address of the first element; NULL when there is none.
func first(elements []unsafe.Pointer) unsafe.Pointer {
	if len(elements) == 0 {
		return nil
	}
	return unsafe.Pointer(&elements[0])
}
