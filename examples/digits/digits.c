/*
 * Classifies the 360 held-out images of handwritten digits with the trained model beside this file.
 *
 *     digits [MODEL [IMAGES]]
 *
 * Exit codes: 0 when at least 97 % are right, 1 when fewer are, 2 when something cannot be read or run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rukh/rukh.h>

#define CLASSES 10
#define SHOWN 3

/* The images of a file: 8-bit pixels from 0 (white) to 16 (black), and what each image shows. */
typedef struct {
    size_t count, height, width;
    uint8_t *pixels, *labels;
} images;

/* Ends the program unless a call of the library succeeded. */
static void check(rukh_status status, rukh_error *const *error) {
    if (status != RUKH_OK) {
        fprintf(stderr, "%s: %s\n", rukh_status_name(status), rukh_error_message(*error));
        rukh_error_destroy(*error);
        exit(2);
    }
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return memory;
}

/* Three little-endian 32-bit numbers (count, height, width), the pixels, the labels. */
static images read_images(const char *path) {
    images set = {0, 0, 0, NULL, NULL};
    unsigned char head[12];
    FILE *file = fopen(path, "rb");
    if (file != NULL && fread(head, 1, sizeof head, file) == sizeof head) {
        size_t numbers[3];
        for (int i = 0; i < 3; i++) {
            const unsigned char *b = head + 4 * i;
            numbers[i] = (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
        }
        set.count = numbers[0];
        set.height = numbers[1];
        set.width = numbers[2];
        size_t pixels = set.count * set.height * set.width;
        set.pixels = allocate(pixels);
        set.labels = allocate(set.count);
        if (fread(set.pixels, 1, pixels, file) == pixels && fread(set.labels, 1, set.count, file) == set.count) {
            fclose(file);
            return set;
        }
    }
    fprintf(stderr, "%s: it cannot be read, or is cut off\n", path);
    exit(2);
}

static void draw(const images *set, size_t index) {
    static const char shades[] = " .:-=+*#%@";
    const uint8_t *pixel = set->pixels + index * set->height * set->width;
    for (size_t y = 0; y < set->height; y++) {
        fputs("    ", stdout);
        for (size_t x = 0; x < set->width; x++, pixel++) {
            char shade = shades[*pixel * 9 / 16];
            printf("%c%c", shade, shade);
        }
        putchar('\n');
    }
}

/* The scores of every image for every class; the caller destroys the value. */
static rukh_value *classify(const char *model, const images *set) {
    rukh_error *error = NULL;
    rukh_environment *environment = NULL;
    rukh_session *session = NULL;
    rukh_value *image = NULL, *scores = NULL;

    check(rukh_environment_create(NULL, &environment, &error), &error);
    check(rukh_session_create(environment, model, NULL, &session, &error), &error);

    int64_t shape[4] = {(int64_t)set->count, 1, (int64_t)set->height, (int64_t)set->width};
    check(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, shape, 4, &image, &error), &error);
    void *data = NULL;
    size_t bytes = 0;
    check(rukh_value_data_mut(image, &data, &bytes, &error), &error);
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        ((float *)data)[i] = set->pixels[i];
    }

    const char *input = "image", *output = "scores";
    const rukh_value *inputs[1] = {image};
    check(rukh_session_run(session, NULL, &input, inputs, 1, &output, 1, &scores, &error), &error);

    /* Any order will do: what is still needed stays alive. */
    rukh_environment_destroy(environment);
    rukh_session_destroy(session);
    rukh_value_destroy(image);
    return scores;
}

static size_t best_of(const float *scores) {
    size_t best = 0;
    for (size_t class = 1; class < CLASSES; class++) {
        if (scores[class] > scores[best]) {
            best = class;
        }
    }
    return best;
}

int main(int argc, char **argv) {
    const char *model = argc > 1 ? argv[1] : "digits.onnx";
    images set = read_images(argc > 2 ? argv[2] : "heldout.bin");
    rukh_value *scores = classify(model, &set);

    rukh_error *error = NULL;
    const void *data = NULL;
    size_t bytes = 0;
    check(rukh_value_data(scores, &data, &bytes, &error), &error);
    if (bytes != set.count * CLASSES * sizeof(float)) {
        fprintf(stderr, "%s: it does not give %d scores an image\n", model, CLASSES);
        return 2;
    }
    size_t right = 0;
    for (size_t i = 0; i < set.count; i++) {
        size_t answer = best_of((const float *)data + i * CLASSES);
        right += answer == set.labels[i];
        if (i < SHOWN) {
            draw(&set, i);
            printf("  this is a %zu%s\n\n", answer, answer == set.labels[i] ? "" : " (wrong)");
        }
    }
    printf("%zu of %zu right: %g %%\n", right, set.count, 100.0 * (double)right / (double)set.count);

    rukh_value_destroy(scores);
    free(set.pixels);
    free(set.labels);
    return right * 100 >= set.count * 97 ? 0 : 1;
}
