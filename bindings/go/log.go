package rukh

// #include <stdint.h>
// #include <stdlib.h>
// extern void rukhGoLog(void *record, void *user);
// extern void rukhGoRelease(void *user);
import "C"

import (
	"runtime/cgo"
	"unsafe"

	"rukh/raw"
)

type logFunction func(level raw.LogLevel, message string)

// Gives messages to a function until the environment and its sessions are gone.
func setLog(settings unsafe.Pointer, level raw.LogLevel, log logFunction) error {
	// C keeps no value of Go's, only this number in memory of its own.
	user := C.malloc(C.size_t(unsafe.Sizeof(C.uintptr_t(0))))
	*(*C.uintptr_t)(user) = C.uintptr_t(cgo.NewHandle(log))
	write, release := unsafe.Pointer(C.rukhGoLog), unsafe.Pointer(C.rukhGoRelease)
	return raw.EnvironmentOptionsSetLogCallback(settings, level, write, user, release)
}

//export rukhGoLog
func rukhGoLog(record, user unsafe.Pointer) {
	var level raw.LogLevel
	var message string
	// The record is valid during this call, so that neither fails.
	if raw.LogRecordLevel(record, &level) != nil || raw.LogRecordText(record, raw.LogTextMessage, &message) != nil {
		return
	}
	log := cgo.Handle(*(*C.uintptr_t)(user)).Value().(logFunction)
	log(level, message)
}

// The library calls it once, also when setting the log failed.
//
//export rukhGoRelease
func rukhGoRelease(user unsafe.Pointer) {
	cgo.Handle(*(*C.uintptr_t)(user)).Delete()
	C.free(user)
}
