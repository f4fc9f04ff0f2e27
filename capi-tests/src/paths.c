/* Paths of files are UTF-8: a model in a file whose name is in no code page, and bytes that are no UTF-8. */

#include "system.h"

#include "check.h"

static char folder[FOLDER_SIZE];

static const char *in_folder(const char *name) {
    static char paths[2][FOLDER_SIZE + 64];
    static int turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void copy_model(const char *from, const char *to) {
    static char data[1 << 16];
    FILE *in = fopen(from, "rb"), *out = open_path(to, "wb");
    size_t size;
    CHECK(in != NULL && out != NULL);
    size = fread(data, 1, sizeof data, in);
    CHECK(size > 0 && size < sizeof data && fwrite(data, 1, size, out) == size);
    fclose(in);
    CHECK(fclose(out) == 0);
}

int main(int argc, char **argv) {
    /* Cyrillic, Japanese and an elephant. */
    static const char model[] = "\xd1\x81\xd0\xbb\xd0\xbe\xd0\xbd \xe8\xb1\xa1 \xf0\x9f\x90\x98.onnx";
    static const char artifact[] = "\xe8\xb1\xa1.rukh";
    /* A character that is cut short. */
    static const char cut[] = "\xd1.onnx";
    rukh_environment *environment = new_environment("1");
    rukh_session *session;
    if (argc > 1) model_folder = argv[1];
    CHECK(make_folder(folder));
    copy_model(model_path("add"), in_folder(model));
    OK(rukh_session_create(environment, in_folder(model), NULL, &session, &error));
    rukh_session_destroy(session);
    OK(rukh_compile_model(environment, in_folder(model), NULL, NULL, in_folder(artifact), &error));
    OK(rukh_session_create(environment, in_folder(artifact), NULL, &session, &error));
    rukh_session_destroy(session);
    FAILS(RUKH_ERROR_NOT_FOUND, artifact,
          rukh_session_create(environment, "\xe8\xb1\xa1.rukh", NULL, &session, &error));
#ifdef _WIN32
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "is not UTF-8",
          rukh_session_create(environment, in_folder(cut), NULL, &session, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "is not UTF-8",
          rukh_compile_model(environment, in_folder(model), NULL, NULL, in_folder(cut), &error));
    /* Both separators. */
    CHECK(strchr(folder, '\\') != NULL);
#else
    copy_model(model_path("add"), in_folder(cut));
    OK(rukh_session_create(environment, in_folder(cut), NULL, &session, &error));
    rukh_session_destroy(session);
    CHECK(remove_path(in_folder(cut)));
#endif
    rukh_environment_destroy(environment);
    CHECK(remove_path(in_folder(model)) && remove_path(in_folder(artifact)));
    CHECK(remove_empty_folder(folder));
    return 0;
}
