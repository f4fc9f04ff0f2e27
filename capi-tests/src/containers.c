/* Sequences, maps, optionals. */

#include "check.h"

static void sequences(void) {
    const float one[] = {1}, two[] = {2, 3};
    rukh_value *items[2], *value, *item;
    rukh_kind kind;
    char text[64];
    size_t count = 9;
    items[0] = floats(one, 1);
    items[1] = floats(two, 2);
    OK(rukh_value_create_sequence((const rukh_value *const *)items, 2, RUKH_ELEMENT_UNDEFINED, &value, &error));
    OK(rukh_value_kind(value, &kind, &error));
    OK(rukh_value_type_text(value, text, sizeof text, NULL, &error));
    CHECK(kind == RUKH_KIND_SEQUENCE && strcmp(text, "seq(tensor(float))") == 0);
    OK(rukh_value_item_count(value, &count, &error));
    CHECK(count == 2);
    OK(rukh_value_item(value, 1, &item, &error));
    rukh_value_destroy(value);
    CHECK(floats_of(item, 2)[1] == 3.0f);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "a sequence, map or optional is needed",
          rukh_value_item_count(item, &count, &error));
    rukh_value_destroy(item);
    rukh_value_destroy(items[1]);
    items[1] = int64_scalar(4);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "item 1 is a tensor(int64), item 0 a tensor(float)",
          rukh_value_create_sequence((const rukh_value *const *)items, 2, 0, &value, &error));
    OK(rukh_value_create_sequence(NULL, 0, RUKH_ELEMENT_STRING, &value, &error));
    OK(rukh_value_item_count(value, &count, &error));
    CHECK(count == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "there is none", rukh_value_item(value, 0, &item, &error));
    rukh_value_destroy(value);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "element type 0 is not known",
          rukh_value_create_sequence(NULL, 0, RUKH_ELEMENT_UNDEFINED, &value, &error));
    rukh_value_destroy(items[0]);
    rukh_value_destroy(items[1]);
}

static void maps(void) {
    const int64_t numbers[] = {-1, 1}, shape[] = {2}, same[] = {5, 5};
    const char *names[] = {"a", "b"};
    const float one[] = {1}, two[] = {2};
    rukh_value *values[2], *keys, *map, *back;
    char text[64];
    const void *data;
    values[0] = floats(one, 1);
    values[1] = floats(two, 1);
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, shape, 1, numbers, 16, &keys, &error));
    OK(rukh_value_create_map(keys, (const rukh_value *const *)values, 2, 0, &map, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "1 values were given for 2 keys",
          rukh_value_create_map(keys, (const rukh_value *const *)values, 1, 0, &back, &error));
    rukh_value_destroy(keys);
    OK(rukh_value_type_text(map, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "map(int64,tensor(float))") == 0);
    OK(rukh_value_map_keys(map, &back, &error));
    OK(rukh_value_data(back, &data, NULL, &error));
    CHECK(((const int64_t *)data)[0] == -1);
    rukh_value_destroy(back);
    OK(rukh_value_item(map, 1, &back, &error));
    CHECK(floats_of(back, 1)[0] == 2.0f);
    rukh_value_destroy(back);
    rukh_value_destroy(map);

    OK(rukh_value_create_strings(shape, 1, names, NULL, 2, &keys, &error));
    OK(rukh_value_create_map(keys, (const rukh_value *const *)values, 2, 0, &map, &error));
    rukh_value_destroy(keys);
    OK(rukh_value_map_keys(map, &keys, &error));
    OK(rukh_value_string(keys, 1, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "b") == 0);
    rukh_value_destroy(keys);
    rukh_value_destroy(map);

    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, shape, 1, same, 16, &keys, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "each key is allowed once",
          rukh_value_create_map(keys, (const rukh_value *const *)values, 2, 0, &map, &error));
    rukh_value_destroy(keys);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "integers or strings are needed",
          rukh_value_create_map(values[0], (const rukh_value *const *)values, 1, 0, &map, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "a map is needed", rukh_value_map_keys(values[0], &map, &error));
    rukh_value_destroy(values[0]);
    rukh_value_destroy(values[1]);
}

static void optionals(void) {
    const float one[] = {1};
    rukh_value *value = floats(one, 1), *optional, *back;
    size_t count;
    char text[64];
    OK(rukh_value_create_optional(value, 0, &optional, &error));
    rukh_value_destroy(value);
    OK(rukh_value_item_count(optional, &count, &error));
    OK(rukh_value_item(optional, 0, &back, &error));
    CHECK(count == 1 && floats_of(back, 1)[0] == 1.0f);
    rukh_value_destroy(back);
    rukh_value_destroy(optional);
    OK(rukh_value_create_optional(NULL, RUKH_ELEMENT_DOUBLE, &optional, &error));
    OK(rukh_value_item_count(optional, &count, &error));
    OK(rukh_value_type_text(optional, text, sizeof text, NULL, &error));
    CHECK(count == 0 && strcmp(text, "optional(tensor(double))") == 0);
    rukh_value_destroy(optional);
}

int main(void) {
    sequences();
    maps();
    optionals();
    return 0;
}
