/* What tests of operators that launch a kernel of their own on a GPU share: the runtime's functions, and an operator. */

#ifndef OPERATORS_GPU_H
#define OPERATORS_GPU_H

#include "system.h"

#include "check.h"

#ifdef _WIN32
static const char runtime_name[] = "amdhip64.dll";
#else
#include <dlfcn.h>

static const char runtime_name[] = "libamdhip64.so";

static void *open_library(const char *name) {
    return dlopen(name, RTLD_NOW);
}

static void *function_of(void *library, const char *name) {
    return dlsym(library, name);
}
#endif

/* What of the runtime's API the operator uses. */
typedef struct {
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned lds, void *stream,
                  void **parameters, void **extra);
    int (*wait)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_exec_destroy)(void *exec);
    int (*graph_destroy)(void *graph);
    void *code;
} runtime;

typedef struct {
    const runtime *hip;
    void *module, *function;
    float factor;
} state;

static int created, destroyed, prepared, computed;

/* What the kernel does besides its work. */
typedef enum { NOTHING_ELSE, FAIL, FAIL_THE_THIRD_TIME, WAIT_FOR_THE_STREAM } besides;

static besides also;

static void release_state(void *user) {
    state *own = user;
    if (own->module != NULL) CHECK(own->hip->module_unload(own->module) == 0);
    free(own);
    destroyed++;
}

static rukh_status shape(rukh_node_info *node, void *user) {
    (void)user;
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

static rukh_status create(rukh_node_info *node, void *user) {
    state *own = calloc(1, sizeof *own);
    own->hip = user;
    OK(rukh_node_info_set_state(node, own, release_state, &error));
    OK(rukh_node_info_attribute_float(node, "factor", &own->factor, &error));
    created++;
    return RUKH_OK;
}

/* As much temporary memory as the input has. */
static rukh_status prepare(rukh_node_info *node, void *user) {
    int64_t dims[4], rank, i;
    size_t bytes = sizeof(float);
    void *own;
    (void)user;
    OK(rukh_node_info_state(node, &own, &error));
    CHECK(own != NULL);
    OK(rukh_node_info_input_shape(node, 0, dims, 4, &rank, &error));
    for (i = 0; i < rank; i++) {
        CHECK(dims[i] >= 0);
        bytes *= (size_t)dims[i];
    }
    prepared++;
    return rukh_node_info_set_scratch(node, bytes, NULL);
}

static int launch(const state *own, const void *from, void *to, float factor, size_t count, void *stream) {
    unsigned n = (unsigned)count;
    void *parameters[] = {&from, &to, &factor, &n};
    return own->hip->launch(own->function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}

/* Scales into the temporary memory by the factor, and from there into the output by 1. */
static rukh_status compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x;
    rukh_value *y;
    state *own;
    void *pointer, *stream, *scratch;
    int64_t dims[4];
    uint64_t from, to;
    size_t rank, count, bytes, device;
    int32_t on_device;
    (void)user;
    computed++;
    if (also == FAIL || (also == FAIL_THE_THIRD_TIME && computed == 3)) {
        OK(rukh_kernel_context_set_error(context, "the fan is broken", &error));
        return RUKH_ERROR_DEVICE;
    }
    OK(rukh_kernel_context_state(context, &pointer, &error));
    own = pointer;
    if (own->module == NULL) {
        CHECK(own->hip->module_load(&own->module, own->hip->code) == 0);
        CHECK(own->hip->module_function(&own->function, own->module, "scale") == 0);
    }
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_value_shape(x, dims, 4, &rank, &error));
    OK(rukh_value_element_count(x, &count, &error));
    OK(rukh_kernel_context_output(context, 0, dims, rank, &y, &error));
    OK(rukh_value_device(x, &on_device, &device, &from, &error));
    CHECK(on_device == 1 && from != 0);
    OK(rukh_value_device(y, &on_device, &device, &to, &error));
    CHECK(on_device == 1 && to != 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "writes the output's own memory",
          rukh_kernel_context_set_output(context, 0, x, &error));
    OK(rukh_kernel_context_stream(context, &stream, &error));
    OK(rukh_kernel_context_scratch(context, &scratch, &bytes, &error));
    CHECK(bytes == count * sizeof(float) && scratch != NULL);
    if (launch(own, (const void *)(uintptr_t)from, scratch, own->factor, count, stream) != 0 ||
        launch(own, scratch, (void *)(uintptr_t)to, 1, count, stream) != 0) {
        /* Recording ended when the stream was waited for. */
        CHECK(also == WAIT_FOR_THE_STREAM);
        return RUKH_ERROR_DEVICE;
    }
    /* Which is not allowed where the stream is recorded. */
    if (also == WAIT_FOR_THE_STREAM) own->hip->wait(stream);
    return RUKH_OK;
}

static rukh_operator *scale(const runtime *hip) {
    const float one = 1;
    rukh_operator *operator;
    OK(rukh_operator_create("test.ops", "Scale", 1, (void *)hip, NULL, &operator, &error));
    OK(rukh_operator_add_input(operator, "x", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute_with_default(operator, "factor", RUKH_ATTRIBUTE_FLOAT, &one, 1, &error));
    OK(rukh_operator_set_shape_function(operator, shape, &error));
    OK(rukh_operator_set_gpu_kernel(operator, create, prepare, compute, &error));
    return operator;
}

static void *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    char *bytes;
    CHECK(file != NULL);
    bytes = calloc(1, 1 << 20);
    CHECK(fread(bytes, 1, 1 << 20, file) > 0);
    fclose(file);
    return bytes;
}

static void *symbol(void *library, const char *name) {
    void *address = function_of(library, name);
    CHECK(address != NULL);
    return address;
}

/* Whether there is a device, and a kernel for it in the arguments. */
CHECK_UNUSED static int has_device(rukh_environment *environment, int argc) {
    size_t devices;
    OK(rukh_environment_device_count(environment, &devices, &error));
    if (devices > 0 && argc >= 3) return 1;
    CHECK(getenv("RUKH_HIP_LIBRARY") == NULL); /* whoever names a runtime wants its device tested */
    printf("skipped: %s\n", devices == 0 ? "there is no device" : "no compiled kernel was given");
    return 0;
}

/* The functions, and the kernel in a file. */
static runtime load_runtime(const char *code) {
    const char *path = getenv("RUKH_HIP_LIBRARY");
    void *library = open_library(path != NULL ? path : runtime_name);
    runtime hip;
    CHECK(library != NULL);
    *(void **)&hip.module_load = symbol(library, "hipModuleLoadData");
    *(void **)&hip.module_unload = symbol(library, "hipModuleUnload");
    *(void **)&hip.module_function = symbol(library, "hipModuleGetFunction");
    *(void **)&hip.launch = symbol(library, "hipModuleLaunchKernel");
    *(void **)&hip.wait = symbol(library, "hipStreamSynchronize");
    *(void **)&hip.capture_begin = symbol(library, "hipStreamBeginCapture");
    *(void **)&hip.capture_end = symbol(library, "hipStreamEndCapture");
    *(void **)&hip.graph_instantiate = symbol(library, "hipGraphInstantiateWithFlags");
    *(void **)&hip.graph_launch = symbol(library, "hipGraphLaunch");
    *(void **)&hip.graph_exec_destroy = symbol(library, "hipGraphExecDestroy");
    *(void **)&hip.graph_destroy = symbol(library, "hipGraphDestroy");
    hip.code = read_file(code);
    return hip;
}

#endif
