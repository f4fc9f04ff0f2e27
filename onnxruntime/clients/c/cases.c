/* Runs cases as a C program for ONNX Runtime does: cases PROVIDER CASE...
 *
 * PROVIDER is cpu, or a provider's name. A case is a folder as cases.py writes it. Needs onnxruntime_c_api.h of any version
 * since 1.14. */
#include <math.h>
#include <onnxruntime_c_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 8, MOST_DIMS = 8, TURNS = 3 };

struct tensor {
    char *name;
    ONNXTensorElementDataType type;
    double tolerance;
    int64_t dims[MOST_DIMS];
    size_t rank, count, bytes;
    char *data;
};

struct test_case {
    bool strict;
    size_t inputs, outputs;
    struct tensor input[MOST_TENSORS], output[MOST_TENSORS];
};

static const OrtApi *ort;

static void stop(const char *what, const char *detail) {
    fprintf(stderr, "%s: %s\n", what, detail);
    exit(1);
}

static void check(OrtStatus *status) {
    if (status != NULL)
        stop("ONNX Runtime", ort->GetErrorMessage(status));
}

/* The file's content, with a NUL behind it. */
static char *read_file(const char *folder, const char *name, size_t *bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        stop(path, "it cannot be opened");
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *content = malloc(*bytes + 1);
    if (content == NULL || fread(content, 1, *bytes, file) != *bytes)
        stop(path, "it cannot be read");
    content[*bytes] = '\0';
    fclose(file);
    return content;
}

static ONNXTensorElementDataType type_of(const char *name) {
    if (strcmp(name, "float32") == 0)
        return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    if (strcmp(name, "int64") == 0)
        return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    if (strcmp(name, "string") != 0)
        stop(name, "no case has a tensor of this type");
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}

/* A field of a line that strtok goes through. */
static char *field(void) {
    char *found = strtok(NULL, " ");
    if (found == NULL)
        stop("tensors.txt", "a line has too few fields");
    return found;
}

static void read_tensor(const char *folder, struct tensor *made) {
    made->name = strdup(field());
    made->type = type_of(field());
    made->tolerance = strtod(field(), NULL);
    made->data = read_file(folder, field(), &made->bytes);
    made->count = 1;
    for (char *dim; (dim = strtok(NULL, " ")) != NULL; made->rank++) {
        if (made->rank == MOST_DIMS)
            stop(made->name, "it has too many dimensions");
        made->dims[made->rank] = strtoll(dim, NULL, 10);
        made->count *= (size_t)made->dims[made->rank];
    }
}

static struct test_case read_case(const char *folder) {
    struct test_case made = {0};
    size_t bytes = 0;
    char *text = read_file(folder, "tensors.txt", &bytes);
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        const char *role = strtok(line, " ");
        if (role != NULL && strcmp(role, "strict") == 0)
            made.strict = true;
        else if (role != NULL && strcmp(role, "input") == 0 && made.inputs < MOST_TENSORS)
            read_tensor(folder, &made.input[made.inputs++]);
        else if (role != NULL && strcmp(role, "output") == 0 && made.outputs < MOST_TENSORS)
            read_tensor(folder, &made.output[made.outputs++]);
        else
            stop(folder, "tensors.txt has a line of another kind, or too many");
    }
    free(text);
    if (made.outputs == 0)
        stop(folder, "tensors.txt has no outputs");
    return made;
}

static void free_tensors(struct tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(tensors[i].name);
        free(tensors[i].data);
    }
}

static OrtValue *value_of(const struct tensor *given) {
    OrtValue *made = NULL;
    if (given->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        OrtAllocator *allocator = NULL;
        check(ort->GetAllocatorWithDefaultOptions(&allocator));
        check(ort->CreateTensorAsOrtValue(allocator, given->dims, given->rank, given->type, &made));
        const char *text = given->data;
        for (size_t i = 0; i < given->count; i++, text += strlen(text) + 1)
            check(ort->FillStringTensorElement(made, text, i));
        return made;
    }
    OrtMemoryInfo *memory = NULL;
    check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    check(ort->CreateTensorWithDataAsOrtValue(memory, given->data, given->bytes, given->dims, given->rank, given->type, &made));
    ort->ReleaseMemoryInfo(memory);
    return made;
}

static bool same_texts(const OrtValue *found, const struct tensor *wanted) {
    size_t length = 0, at = 0;
    check(ort->GetStringTensorDataLength(found, &length));
    char *content = malloc(length + 1);
    size_t *offsets = malloc((wanted->count + 1) * sizeof *offsets);
    check(ort->GetStringTensorContent(found, content, length, offsets, wanted->count));
    offsets[wanted->count] = length;
    bool same = true;
    for (size_t i = 0; same && i < wanted->count; i++) {
        const size_t expected = strlen(wanted->data + at);
        same = offsets[i + 1] - offsets[i] == expected && memcmp(content + offsets[i], wanted->data + at, expected) == 0;
        at += expected + 1;
    }
    free(content);
    free(offsets);
    return same;
}

/* Whether an output is as expected; says so where it is not. */
static bool compare(OrtValue *found, const struct tensor *wanted) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type;
    size_t rank = 0;
    int64_t dims[MOST_DIMS] = {0};
    check(ort->GetTensorTypeAndShape(found, &info));
    check(ort->GetTensorElementType(info, &type));
    check(ort->GetDimensionsCount(info, &rank));
    if (rank == wanted->rank)
        check(ort->GetDimensions(info, dims, rank));
    ort->ReleaseTensorTypeAndShapeInfo(info);
    if (type != wanted->type || rank != wanted->rank || memcmp(dims, wanted->dims, rank * sizeof *dims) != 0) {
        fprintf(stderr, "%s: its type or shape is another\n", wanted->name);
        return false;
    }
    bool same;
    void *data = NULL;
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        same = same_texts(found, wanted);
    } else {
        check(ort->GetTensorMutableData(found, &data));
        same = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || memcmp(data, wanted->data, wanted->bytes) == 0;
    }
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        const float *values = data, *expected = (const float *)wanted->data;
        for (size_t i = 0; same && i < wanted->count; i++)
            same = fabs((double)values[i] - expected[i]) <= wanted->tolerance;
    }
    if (!same)
        fprintf(stderr, "%s: its elements differ\n", wanted->name);
    return same;
}

static OrtSessionOptions *options_for(const char *provider, bool strict) {
    OrtSessionOptions *options = NULL;
    check(ort->CreateSessionOptions(&options));
    if (strcmp(provider, "cpu") != 0) {
        const char *key = "device_id", *device = "0";
        check(ort->SessionOptionsAppendExecutionProvider(options, provider, &key, &device, 1));
        if (strict)
            check(ort->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
    }
    return options;
}

static bool run(OrtSession *session, const struct test_case *given) {
    const char *input_names[MOST_TENSORS], *output_names[MOST_TENSORS];
    OrtValue *inputs[MOST_TENSORS] = {NULL};
    bool right = true;
    for (size_t i = 0; i < given->inputs; i++) {
        input_names[i] = given->input[i].name;
        inputs[i] = value_of(&given->input[i]);
    }
    for (size_t i = 0; i < given->outputs; i++)
        output_names[i] = given->output[i].name;
    for (int turn = 0; turn < TURNS; turn++) {
        OrtValue *outputs[MOST_TENSORS] = {NULL};
        check(ort->Run(session, NULL, input_names, (const OrtValue *const *)inputs, given->inputs, output_names, given->outputs,
                       outputs));
        for (size_t i = 0; i < given->outputs; i++) {
            right = compare(outputs[i], &given->output[i]) && right;
            ort->ReleaseValue(outputs[i]);
        }
    }
    for (size_t i = 0; i < given->inputs; i++)
        ort->ReleaseValue(inputs[i]);
    return right;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: cases PROVIDER CASE...\n");
        return 2;
    }
    OrtEnv *env = NULL;
    int failed = 0;
    ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (ort == NULL)
        stop("the API", "its version is not there");
    check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "cases", &env));
    for (int i = 2; i < argc; i++) {
        struct test_case given = read_case(argv[i]);
        OrtSessionOptions *options = options_for(argv[1], given.strict);
        OrtSession *sessions[2] = {NULL};
        char path[4096];
        size_t bytes = 0;
        char *model = read_file(argv[i], "model.onnx", &bytes);
        snprintf(path, sizeof path, "%s/model.onnx", argv[i]);
        check(ort->CreateSession(env, path, options, &sessions[0]));
        check(ort->CreateSessionFromArray(env, model, bytes, options, &sessions[1]));
        free(model);
        bool right = true;
        for (int source = 0; source < 2; source++) {
            right = run(sessions[source], &given) && right;
            ort->ReleaseSession(sessions[source]);
        }
        if (!right) {
            failed++;
            fprintf(stderr, "failed: %s\n", argv[i]);
        }
        ort->ReleaseSessionOptions(options);
        free_tensors(given.input, given.inputs);
        free_tensors(given.output, given.outputs);
    }
    ort->ReleaseEnv(env);
    printf("C, API %d, %s: %d passed, %d failed\n", ORT_API_VERSION, argv[1], argc - 2 - failed, failed);
    return failed > 0;
}
