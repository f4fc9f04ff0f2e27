// A stand-in for libamdhip64 that records every call and fails where it is told to. Kernels do nothing.
//
// STAND_IN_LOG: the file that gets a line a call. STAND_IN_FAIL: "function:call:code" makes that call
// (counted from 1; 0 stands for every one) return that code. STAND_IN_DEVICES: how many devices there are, 1. At the end of the
// process a line tells what was not given back.
//
// Time between two events: 0.1 ms a launch, 0.001 ms a launch of the kernel that STAND_IN_FAST names, 0.01 ms
// a product of the library in stand_in_blas.c.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *log_file;
static long allocations, streams, events, modules;
#ifdef WITH_GRAPHS
static long graphs;
#endif
static int current_device;

static void balance(void) {
  if (log_file)
    fprintf(log_file, "balance allocations=%ld streams=%ld events=%ld modules=%ld device=%d\n", allocations,
            streams, events, modules, current_device);
#ifdef WITH_GRAPHS
  if (log_file) fprintf(log_file, "graphs %ld\n", graphs);
#endif
}

static void record(const char *format, ...) {
  if (!log_file) {
    const char *path = getenv("STAND_IN_LOG");
    log_file = path ? fopen(path, "w") : NULL;
    if (!log_file) return;
    setvbuf(log_file, NULL, _IOLBF, 0);
    atexit(balance);
  }
  va_list arguments;
  va_start(arguments, format);
  vfprintf(log_file, format, arguments);
  va_end(arguments);
  fputc('\n', log_file);
}

// The code that this call is told to fail with, or 0.
static int injected(const char *function) {
  static char wanted[128];
  static int call, code, count, read;
  if (!read) {
    const char *text = getenv("STAND_IN_FAIL");
    if (text && sscanf(text, "%127[^:]:%d:%d", wanted, &call, &code) != 3) wanted[0] = 0;
    read = 1;
  }
  return strcmp(function, wanted) == 0 && (++count == call || call == 0) ? code : 0;
}

#define CALL(...)                                   \
  do {                                              \
    record(__VA_ARGS__);                            \
    int code_ = injected(__func__);                 \
    if (code_) return code_;                        \
  } while (0)

static int devices(void) {
  const char *text = getenv("STAND_IN_DEVICES");
  return text ? atoi(text) : 1;
}

int hipInit(unsigned flags) { CALL("hipInit %u", flags); return devices() ? 0 : 100; }
int hipRuntimeGetVersion(int *version) {
  CALL("hipRuntimeGetVersion");
  const char *text = getenv("STAND_IN_VERSION");
  *version = text ? atoi(text) : 60200000;
  return 0;
}
int hipGetDeviceCount(int *count) { CALL("hipGetDeviceCount"); *count = devices(); return devices() ? 0 : 100; }
int hipSetDevice(int device) { CALL("hipSetDevice %d", device); current_device = device; return 0; }
int hipGetDevice(int *device) { *device = current_device; return 0; }
int hipDeviceGetName(char *name, int length, int device) {
  snprintf(name, length, "Stand-in %d", device);
  return 0;
}
int hipDeviceTotalMem(size_t *bytes, int device) { (void)device; *bytes = 1ul << 30; return 0; }
int hipDeviceGetPCIBusId(char *id, int length, int device) {
  snprintf(id, length, "0000:0%d:00.0", device);
  return 0;
}
int hipGetDevicePropertiesR0600(char *properties, int device) {
  CALL("hipGetDevicePropertiesR0600 %d", device);
  memset(properties, 0, 1472);
  *(size_t *)(properties + 296) = 65536;
  *(int *)(properties + 308) = 32;
  *(int *)(properties + 388) = 8;
  strcpy(properties + 1160, "gfx1100");
  return 0;
}
const char *hipGetErrorName(int code) {
  return code == 2 ? "hipErrorOutOfMemory" : code == 700 ? "hipErrorIllegalAddress" : "hipErrorInjected";
}
int hipMemGetInfo(size_t *free_bytes, size_t *total) {
  CALL("hipMemGetInfo");
  *free_bytes = 1ul << 29;
  *total = 1ul << 30;
  return 0;
}
int hipMalloc(void **address, size_t bytes) {
  CALL("hipMalloc %zu", bytes);
  if (posix_memalign(address, 256, bytes ? bytes : 1)) return 2;
  allocations++;
  return 0;
}
int hipFree(void *address) { CALL("hipFree"); allocations -= address != NULL; free(address); return 0; }
int hipHostMalloc(void **address, size_t bytes, unsigned flags) {
  CALL("hipHostMalloc %zu %u", bytes, flags);
  if (posix_memalign(address, 256, bytes ? bytes : 1)) return 2;
  allocations++;
  return 0;
}
int hipHostFree(void *address) { CALL("hipHostFree"); allocations -= address != NULL; free(address); return 0; }
int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream) {
  CALL("hipMemcpyHtoDAsync %zu %p", bytes, stream);
  memcpy(to, from, bytes);
  return 0;
}
int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *stream) {
  CALL("hipMemcpyDtoHAsync %zu %p", bytes, stream);
  memcpy(to, from, bytes);
  return 0;
}
int hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, void *stream) {
  CALL("hipMemcpyDtoDAsync %zu %p", bytes, stream);
  memmove(to, from, bytes);
  return 0;
}
int hipMemsetD8Async(void *to, unsigned char value, size_t count, void *stream) {
  CALL("hipMemsetD8Async %zu %p", count, stream);
  memset(to, value, count);
  return 0;
}
int hipStreamCreateWithFlags(void **stream, unsigned flags) {
  CALL("hipStreamCreateWithFlags %u", flags);
  *stream = malloc(1);
  streams++;
  return 0;
}
int hipStreamDestroy(void *stream) { CALL("hipStreamDestroy %p", stream); streams--; free(stream); return 0; }
int hipStreamSynchronize(void *stream) { CALL("hipStreamSynchronize %p", stream); return 0; }
int hipEventCreateWithFlags(void **event, unsigned flags) {
  CALL("hipEventCreateWithFlags %u", flags);
  *event = malloc(1);
  events++;
  return 0;
}
int hipStreamWaitEvent(void *stream, void *event, unsigned flags) {
  (void)event, (void)flags;
  CALL("hipStreamWaitEvent %p", stream);
  return 0;
}
// Milliseconds of what was given to streams so far, and at the last two events.
static double work, marks[2];
void stand_in_product(void) { work += 0.01; }
int hipEventRecord(void *event, void *stream) {
  (void)event;
  CALL("hipEventRecord %p", stream);
  marks[0] = marks[1];
  marks[1] = work;
  return 0;
}
int hipEventElapsedTime(float *milliseconds, void *from, void *to) {
  (void)from, (void)to;
  CALL("hipEventElapsedTime");
  *milliseconds = (float)(marks[1] - marks[0]);
  return 0;
}
int hipEventQuery(void *event) { (void)event; CALL("hipEventQuery"); return 0; }
int hipEventSynchronize(void *event) { (void)event; CALL("hipEventSynchronize"); return 0; }
int hipEventDestroy(void *event) { CALL("hipEventDestroy"); events--; free(event); return 0; }
int hipModuleLoadData(void **module, const void *image) {
  CALL("hipModuleLoadData");
  if (memcmp(image, "\177ELF", 4)) return 209;
  *module = malloc(1);
  modules++;
  return 0;
}
int hipModuleUnload(void *module) { CALL("hipModuleUnload"); modules--; free(module); return 0; }
int hipModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  CALL("hipModuleGetFunction %s", name);
  // A name is its kernel's handle.
  static char names[256][64];
  int i = 0;
  while (i < 255 && names[i][0] && strcmp(names[i], name)) i++;
  snprintf(names[i], sizeof names[i], "%s", name);
  *function = names[i];
  return 0;
}
#ifndef WITHOUT_LAUNCH
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned lds, void *stream, void **parameters, void **extra) {
  (void)lds, (void)parameters;
  const char *fast = getenv("STAND_IN_FAST");
  work += fast && strcmp(function, fast) == 0 ? 0.001 : 0.1;
  CALL("hipModuleLaunchKernel %u %u %u x %u %u %u %p", gx, gy, gz, bx, by, bz, stream);
  // The tags of HIP: pointer 1, size 2, end 3.
  if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3) return 1;
  return 0;
}
#endif
#ifndef WITHOUT_STREAM_DEVICE
int hipStreamGetDevice(void *stream, int *device) {
  CALL("hipStreamGetDevice %p", stream);
  *device = (uintptr_t)stream == 0xdead00 ? 1 : current_device;
  return 0;
}
#endif
#ifdef WITH_GRAPHS
// Recorded launches are counted by hipModuleLaunchKernel as others are, and launching their graph does nothing.
static int capturing;
int hipStreamIsCapturing(void *stream, int *status) {
  (void)stream;
  *status = capturing;
  return 0;
}
int hipStreamBeginCapture(void *stream, int mode) {
  CALL("hipStreamBeginCapture %p %d", stream, mode);
  capturing = 1;
  return 0;
}
int hipStreamEndCapture(void *stream, void **graph) {
  capturing = 0;
  *graph = NULL;
  CALL("hipStreamEndCapture %p", stream);
  *graph = malloc(1);
  graphs++;
  return 0;
}
int hipGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  (void)graph;
  CALL("hipGraphInstantiateWithFlags %llu", flags);
  *exec = malloc(1);
  graphs++;
  return 0;
}
int hipGraphLaunch(void *exec, void *stream) { (void)exec; CALL("hipGraphLaunch %p", stream); return 0; }
int hipGraphDestroy(void *graph) { CALL("hipGraphDestroy"); graphs--; free(graph); return 0; }
int hipGraphExecDestroy(void *exec) { CALL("hipGraphExecDestroy"); graphs--; free(exec); return 0; }
#endif
