package rukh

import (
	"sync"
	"unsafe"

	"rukh/raw"
)

// EnvironmentOptions tell how an environment is made.
type EnvironmentOptions struct {
	// Such as {"threads": "4"}.
	Options Options
	// Receives messages of the library, from any thread and from several at once; nil for none.
	Log func(level raw.LogLevel, message string)
	// The least level that Log receives.
	LogLevel raw.LogLevel
}

// Environment has the threads and settings that sessions share.
type Environment struct {
	*handle
}

// Device is what can run models.
type Device struct {
	Provider, Name, Architecture string
	// In bytes; 0 when it is not known.
	Memory uint64
}

var (
	sharedMutex sync.Mutex
	shared      *Environment
)

// NewEnvironment makes an environment; nil for the defaults.
func NewEnvironment(options *EnvironmentOptions) (*Environment, error) {
	if options == nil {
		options = &EnvironmentOptions{}
	}
	var settings, address unsafe.Pointer
	if err := raw.EnvironmentOptionsCreate(&settings); err != nil {
		return nil, err
	}
	defer raw.EnvironmentOptionsDestroy(settings)
	for key, value := range options.Options {
		if err := raw.EnvironmentOptionsSet(settings, key, value); err != nil {
			return nil, err
		}
	}
	if options.Log != nil {
		if err := setLog(settings, options.LogLevel, options.Log); err != nil {
			return nil, err
		}
	}
	if err := raw.EnvironmentCreate(settings, &address); err != nil {
		return nil, err
	}
	return &Environment{newHandle("environment", address, raw.EnvironmentDestroy)}, nil
}

// The environment of sessions for which none is named.
func defaultEnvironment() (*Environment, error) {
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	if shared == nil {
		made, err := NewEnvironment(nil)
		if err != nil {
			return nil, err
		}
		shared = made
	}
	return shared, nil
}

// ThreadCount is how many threads compute.
func (e *Environment) ThreadCount() (int, error) {
	var count uint
	err := e.with(func(address unsafe.Pointer) error { return raw.EnvironmentThreadCount(address, &count) })
	return int(count), err
}

// Devices are the GPUs and, as the last, the CPU.
func (e *Environment) Devices() ([]Device, error) {
	var found []Device
	err := e.with(func(address unsafe.Pointer) error {
		var count uint
		if err := raw.EnvironmentDeviceCount(address, &count); err != nil {
			return err
		}
		for index := uint(0); index < count; index++ {
			device, err := deviceAt(address, index)
			if err != nil {
				return err
			}
			found = append(found, device)
		}
		return nil
	})
	return found, err
}

func deviceAt(environment unsafe.Pointer, index uint) (Device, error) {
	var device unsafe.Pointer
	var found Device
	if err := raw.EnvironmentDevice(environment, index, &device); err != nil {
		return found, err
	}
	defer raw.DeviceDestroy(device)
	for _, ask := range []func() error{
		func() error { return raw.DeviceProvider(device, &found.Provider) },
		func() error { return raw.DeviceName(device, &found.Name) },
		func() error { return raw.DeviceArch(device, &found.Architecture) },
		func() error { return raw.DeviceMemory(device, &found.Memory) },
	} {
		if err := ask(); err != nil {
			return found, err
		}
	}
	return found, nil
}

// ProviderReason is why a provider such as "hip" cannot be used here; "" when it can.
func (e *Environment) ProviderReason(provider string) (string, error) {
	var reason string
	err := e.with(func(address unsafe.Pointer) error {
		var err error
		reason, err = textOf(func(buf *byte, size uint, needed *uint) error {
			return raw.EnvironmentProviderReason(address, provider, buf, size, needed)
		})
		return err
	})
	return reason, err
}
