/* An operator that launches a kernel of its own on a GPU:
 *
 *   operators_gpu MODELS CODE
 *
 * CODE is kernels/scale.hip compiled for the device; RUKH_HIP_LIBRARY names the runtime (libamdhip64.so or amdhip64.dll without
 * it).
 * Without a device, or without CODE, the test says so and ends. */

#include "system.h"

#include "placements.h"

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
    void *code;
} runtime;

typedef struct {
    const runtime *hip;
    void *module, *function;
    float factor;
} state;

static int created, destroyed, prepared, computed;
static int fails;

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
    if (fails) {
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
    CHECK(launch(own, (const void *)(uintptr_t)from, scratch, own->factor, count, stream) == 0);
    CHECK(launch(own, scratch, (void *)(uintptr_t)to, 1, count, stream) == 0);
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

static void run(rukh_session *session, int64_t rows, const float *row, const float *expected) {
    rukh_value *x, *y;
    const char *in = "x", *out = "y";
    int64_t dims[2], i;
    const float *found;
    void *data;
    dims[0] = rows;
    dims[1] = 2;
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, dims, 2, &x, &error));
    OK(rukh_value_data_mut(x, &data, NULL, &error));
    for (i = 0; i < rows; i++) memcpy((float *)data + 2 * i, row, 2 * sizeof(float));
    OK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
    found = floats_of(y, (size_t)rows * 2);
    for (i = 0; i < 2 * rows; i++) CHECK(found[i] == expected[i % 2]);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
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

int main(int argc, char **argv) {
    const char *path = getenv("RUKH_HIP_LIBRARY");
    rukh_environment *environment = new_environment("2");
    rukh_session_options *options;
    rukh_session *session;
    rukh_operator *operator;
    rukh_error *failure = NULL;
    rukh_value *x, *y;
    const float row[] = {1, 3}, expected[] = {24, 21};
    const int64_t dims[] = {1, 2};
    const char *in = "x", *out = "y";
    void *library;
    runtime hip;
    struct placements placements;
    size_t devices, i;
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    OK(rukh_environment_device_count(environment, &devices, &error));
    if (devices == 0 || argc < 3) {
        CHECK(path == NULL); /* whoever names a runtime wants its device tested */
        printf("skipped: %s\n", devices == 0 ? "there is no device" : "no compiled kernel was given");
        rukh_environment_destroy(environment);
        return 0;
    }
    library = open_library(path != NULL ? path : runtime_name);
    CHECK(library != NULL);
    *(void **)&hip.module_load = symbol(library, "hipModuleLoadData");
    *(void **)&hip.module_unload = symbol(library, "hipModuleUnload");
    *(void **)&hip.module_function = symbol(library, "hipModuleGetFunction");
    *(void **)&hip.launch = symbol(library, "hipModuleLaunchKernel");
    hip.code = read_file(argv[2]);

    operator = scale(&hip);
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    FAILS(RUKH_ERROR_UNSUPPORTED, "operator test.ops.Scale has a kernel for GPUs alone",
          rukh_session_create(environment, model_path("operators"), options, &session, &error));
    OK(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error));
    OK(rukh_session_options_set(options, "fallback", "error", &error));
    OK(rukh_session_create(environment, model_path("operators"), options, &session, &error));
    rukh_session_options_destroy(options);
    CHECK(created == 2);
    placements = placements_of(session);
    CHECK(placements.nodes > 0 && placements.on_gpu == placements.nodes);
    for (i = 0; i < 4; i++) run(session, 1, row, expected);
    CHECK(prepared == 2 && computed == 8);
    for (i = 0; i < 4; i++) run(session, 100, row, expected);
    CHECK(prepared == 4 && computed == 16);

    fails = 1;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, dims, 2, row, sizeof row, &x, &error));
    CHECK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &failure) == RUKH_ERROR_DEVICE);
    CHECK(strstr(rukh_error_message(failure), "(test.ops.Scale): the fan is broken") != NULL);
    rukh_error_destroy(failure);
    rukh_value_destroy(x);
    fails = 0;
    run(session, 3, row, expected);

    rukh_session_destroy(session);
    CHECK(destroyed == 2);
    rukh_environment_destroy(environment);
    free(hip.code);
    return 0;
}
