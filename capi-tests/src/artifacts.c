/* Compiled models: they compute what the model computes, and refuse what does not fit with a reason. A process that is
 * killed while it writes one leaves the file as it was. */

#include "system.h"

#include "check.h"

#include <pthread.h>

enum { SIDE = 4, THREADS = 4 };

static rukh_environment *environment;
static char folder[FOLDER_SIZE];

static const char *in_folder(const char *name) {
    static char paths[4][FOLDER_SIZE + 32];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static rukh_compile_options *new_options(const char *targets) {
    rukh_compile_options *options;
    OK(rukh_compile_options_create(&options, &error));
    OK(rukh_compile_options_set(options, "targets", targets, &error));
    return options;
}

static void compile(const char *model, const char *targets, const char *out) {
    rukh_compile_options *options = new_options(targets);
    OK(rukh_compile_model(environment, model_path(model), NULL, options, out, &error));
    rukh_compile_options_destroy(options);
}

static rukh_session *open_file(const char *path) {
    rukh_session *session;
    OK(rukh_session_create(environment, path, NULL, &session, &error));
    return session;
}

/* The first output for an input of ones. */
static float result_of(const rukh_session *session) {
    float ones[SIDE];
    const int64_t shape[] = {1, SIDE};
    const rukh_value *inputs[1];
    rukh_value *x, *y;
    const void *data;
    float first;
    int i;
    for (i = 0; i < SIDE; i++) ones[i] = 1;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, ones, sizeof ones, &x, &error));
    inputs[0] = x;
    OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &y, &error));
    OK(rukh_value_data(y, &data, NULL, &error));
    first = *(const float *)data;
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    return first;
}

static int files_in_folder(void) {
    int count = count_files(folder);
    CHECK(count >= 0);
    return count;
}

static void answers(void) {
    rukh_session *model = open_model(environment, "linear"), *artifact;
    uint64_t packed;
    compile("linear", "cpu,gfx1100", in_folder("a.rukh"));
    artifact = open_file(in_folder("a.rukh"));
    CHECK(result_of(model) == result_of(artifact));
    OK(rukh_session_load_counter(artifact, RUKH_LOAD_PACKED_BYTES, &packed, &error));
    CHECK(packed == 0);
    rukh_session_destroy(model);
    rukh_session_destroy(artifact);
}

/* From bytes, which the call copies. */
static void from_memory(void) {
    FILE *file = fopen(model_path("linear"), "rb");
    static char data[1 << 16];
    size_t size;
    rukh_session *model = open_model(environment, "linear"), *artifact;
    rukh_compile_options *options = new_options("cpu");
    CHECK(file != NULL);
    size = fread(data, 1, sizeof data, file);
    fclose(file);
    OK(rukh_compile_model_from_memory(environment, data, size, NULL, options, in_folder("m.rukh"), &error));
    memset(data, 0, size);
    artifact = open_file(in_folder("m.rukh"));
    CHECK(result_of(model) == result_of(artifact) && remove(in_folder("m.rukh")) == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "data: NULL",
          rukh_compile_model_from_memory(environment, NULL, 8, NULL, options, in_folder("m.rukh"), &error));
    FAILS(RUKH_ERROR_INVALID_MODEL, "is empty",
          rukh_compile_model_from_memory(environment, NULL, 0, NULL, options, in_folder("m.rukh"), &error));
    rukh_session_destroy(model);
    rukh_session_destroy(artifact);
    rukh_compile_options_destroy(options);
}

static void facts(void) {
    rukh_artifact *artifact;
    rukh_session_options *options;
    rukh_artifact_verdict verdict;
    char text[8192], tiny[4];
    size_t needed;
    OK(rukh_artifact_open(environment, in_folder("a.rukh"), &artifact, &error));
    OK(rukh_artifact_info(artifact, text, sizeof text, &needed, &error));
    CHECK(strstr(text, "\"targets\":[\"cpu\",\"gfx1100\"]") != NULL && needed == strlen(text) + 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "too few", rukh_artifact_info(artifact, tiny, sizeof tiny, &needed, &error));
    OK(rukh_artifact_check(artifact, NULL, &verdict, text, sizeof text, &needed, &error));
    CHECK(verdict == RUKH_ARTIFACT_OPTIMAL && text[0] == 0 && needed == 1);
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "intra_op_threads", "3", &error));
    OK(rukh_artifact_check(artifact, options, &verdict, text, sizeof text, NULL, &error));
    CHECK(verdict == RUKH_ARTIFACT_WORKS && strstr(text, "3 work here") != NULL);
    OK(rukh_session_options_set(options, "precision", "bf16", &error));
    OK(rukh_artifact_check(artifact, options, &verdict, text, sizeof text, NULL, &error));
    CHECK(verdict == RUKH_ARTIFACT_UNFIT && strstr(text, "precision \"f32\"") != NULL);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "verdict: NULL", rukh_artifact_check(artifact, NULL, NULL, NULL, 0, NULL, &error));
    rukh_session_options_destroy(options);
    rukh_artifact_destroy(artifact);
}

static void refused(void) {
    rukh_compile_options *options = new_options("native");
    rukh_artifact *artifact;
    char value[64];
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"gfx1\" is not known; known are cpu",
          rukh_compile_options_set(options, "targets", "cpu,gfx1", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "allowed are used, all and external",
          rukh_compile_options_set(options, "weights", "some", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NAME=SIZE", rukh_compile_options_set(options, "shapes", "n=x", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "known are shapes", rukh_compile_options_set(options, "target", "cpu", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "key: NULL", rukh_compile_options_set(options, NULL, "cpu", &error));
    OK(rukh_compile_options_get(options, "targets", value, sizeof value, NULL, &error));
    CHECK(strcmp(value, "native") == 0);
    OK(rukh_compile_options_key(options, 3, value, sizeof value, NULL, &error));
    CHECK(strcmp(value, "weights") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "option", rukh_compile_options_key(options, 4, value, sizeof value, NULL, &error));

    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "path: NULL",
          rukh_compile_model(environment, NULL, NULL, NULL, in_folder("b.rukh"), &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "out_path: NULL",
          rukh_compile_model(environment, model_path("add"), NULL, NULL, NULL, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "none.onnx",
          rukh_compile_model(environment, model_path("none"), NULL, options, in_folder("b.rukh"), &error));
    FAILS(RUKH_ERROR_IO, "/no/such/folder",
          rukh_compile_model(environment, model_path("add"), NULL, options, "/no/such/folder/b.rukh", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "is an artifact already",
          rukh_compile_model(environment, in_folder("a.rukh"), NULL, options, in_folder("b.rukh"), &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "rukh_compile_options",
          rukh_compile_model(environment, model_path("add"), NULL, (rukh_compile_options *)environment, in_folder("b.rukh"),
                             &error));
    rukh_compile_options_destroy(options);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_compile_options_set(options, "targets", "cpu", &error));

    FAILS(RUKH_ERROR_INVALID_MODEL, "does not begin as an artifact",
          rukh_artifact_open(environment, model_path("linear"), &artifact, &error));
    CHECK(artifact == NULL);
    FAILS(RUKH_ERROR_NOT_FOUND, "b.rukh", rukh_artifact_open(environment, in_folder("b.rukh"), &artifact, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_artifact_info(NULL, NULL, 0, NULL, &error));
    rukh_artifact_destroy(NULL);
    rukh_compile_options_destroy(NULL);
    CHECK(files_in_folder() == 1);
}

struct told {
    int steps, released;
    uint64_t stop;
};

static rukh_status count_steps(void *user, const char *step, uint64_t done, uint64_t total) {
    struct told *told = user;
    CHECK(step[0] != 0 && done < total);
    told->steps++;
    return done == told->stop ? RUKH_ERROR_CANCELLED : RUKH_OK;
}

static void release(void *user) {
    ((struct told *)user)->released++;
}

/* A callback that compiles another model meanwhile. */
static rukh_status compile_inside(void *user, const char *step, uint64_t done, uint64_t total) {
    (void)step;
    if (done + 1 == total) {
        OK(rukh_compile_model(environment, model_path("add"), NULL, NULL, (const char *)user, &error));
    }
    return RUKH_OK;
}

static void progress(void) {
    struct told told = {0, 0, 99};
    rukh_compile_options *options = new_options("cpu,gfx90a");
    OK(rukh_compile_options_set_progress(options, count_steps, &told, release, &error));
    OK(rukh_compile_model(environment, model_path("linear"), NULL, options, in_folder("p.rukh"), &error));
    CHECK(told.steps == 5 && remove(in_folder("p.rukh")) == 0);
    for (told.stop = 0; told.stop < 5; told.stop++) {
        FAILS(RUKH_ERROR_CANCELLED, "was cancelled",
              rukh_compile_model(environment, model_path("linear"), NULL, options, in_folder("p.rukh"), &error));
        CHECK(files_in_folder() == 1);
    }
    CHECK(told.released == 0);
    OK(rukh_compile_options_set_progress(options, compile_inside, (void *)in_folder("inner.rukh"), NULL, &error));
    CHECK(told.released == 1);
    OK(rukh_compile_model(environment, model_path("linear"), NULL, options, in_folder("p.rukh"), &error));
    CHECK(files_in_folder() == 3);
    CHECK(remove(in_folder("p.rukh")) == 0 && remove(in_folder("inner.rukh")) == 0);
    rukh_compile_options_destroy(options);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_compile_options_set_progress(NULL, count_steps, &told, release, &error));
    CHECK(told.released == 2);
}

typedef struct {
    char path[256];
    float expected;
} shared_artifact;

static void *open_and_run(void *given) {
    const shared_artifact *shared = given;
    int i;
    for (i = 0; i < 20; i++) {
        rukh_session *session = open_file(shared->path);
        CHECK(result_of(session) == shared->expected);
        rukh_session_destroy(session);
    }
    return NULL;
}

/* Windows keeps a file that is mapped: it is not replaced while one of the threads has it open. */
static void replace(const char *out) {
#ifdef _WIN32
    rukh_compile_options *options = new_options("cpu");
    rukh_error *error = NULL;
    rukh_status status = rukh_compile_model(environment, model_path("linear"), NULL, options, out, &error);
    CHECK(status == RUKH_OK ||
          (status == RUKH_ERROR_IO && strstr(rukh_error_message(error), "Windows keeps a file") != NULL));
    rukh_error_destroy(error);
    rukh_compile_options_destroy(options);
#else
    compile("linear", "cpu", out);
#endif
}

/* One artifact is replaced again and again while threads open it. */
static void replaced(void) {
    rukh_session *model = open_model(environment, "linear");
    shared_artifact shared;
    pthread_t threads[THREADS];
    int i;
    shared.expected = result_of(model);
    /* in_folder's memory is for one thread. */
    strcpy(shared.path, in_folder("shared.rukh"));
    compile("linear", "cpu", shared.path);
    for (i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, open_and_run, &shared) == 0);
    for (i = 0; i < 20; i++) replace(shared.path);
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    compile("linear", "cpu", shared.path);
    CHECK(remove(shared.path) == 0);
    rukh_session_destroy(model);
}

/* Writes one artifact after another until it is killed. */
static void write_for_ever(const char *path) {
    rukh_compile_options *options = new_options("all");
    environment = new_environment("1");
    for (;;) OK(rukh_compile_model(environment, model_path("linear"), NULL, options, path, &error));
}

static process start_writer(void) {
#ifdef _WIN32
    process child = run_again(model_folder, in_folder("killed.rukh"));
    CHECK(child != NULL);
#else
    process child = fork();
    CHECK(child >= 0);
    if (child == 0) write_for_ever(in_folder("killed.rukh"));
#endif
    return child;
}

static int there(void) {
    FILE *file = fopen(in_folder("killed.rukh"), "rb");
    return file != NULL && fclose(file) == 0;
}

static void killed(void) {
    int i;
    for (i = 0; i < 101; i++) {
        process child = start_writer();
        do {
            wait_milliseconds(20 + i % 10 * 3);
            /* The last one has written it at least once. */
        } while (i == 100 && !there());
        CHECK(kill_process(child));
        if (there()) {
            rukh_artifact *artifact;
            rukh_environment *own = new_environment("1");
            OK(rukh_artifact_open(own, in_folder("killed.rukh"), &artifact, &error));
            rukh_artifact_destroy(artifact);
            rukh_environment_destroy(own);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    /* Started again by `start_writer`. */
    if (argc > 2) write_for_ever(argv[2]);
    CHECK(make_folder(folder));
    /* First, while this process has no threads that a child would miss. */
    killed();
    CHECK(remove_folder(folder) && make_folder(folder));
    environment = new_environment("2");
    answers();
    from_memory();
    facts();
    refused();
    progress();
    replaced();
    rukh_environment_destroy(environment);
    CHECK(remove_folder(folder));
    return 0;
}
