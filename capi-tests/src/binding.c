/* Io bindings: memory of the caller, in place, allocated. */

#include "check.h"

int main(int argc, char **argv) {
    float a[] = {1, 2, 3}, product[3] = {0, 0, 0};
    const int64_t three[] = {3};
    rukh_environment *environment;
    rukh_session *session;
    rukh_io_binding *binding;
    rukh_value *va, *vb, *vproduct, *wrong, *text, *sum, *same;
    const float two[] = {2, 2, 2}, short_data[] = {0, 0};
    void *elements;
    int i;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    session = open_model(environment, "add");
    OK(rukh_io_binding_create(session, &binding, &error));
    /* The binding keeps its session, and that its environment. */
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);

    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, three, 1, a, sizeof a, NULL, NULL, &va, &error));
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, three, 1, product, sizeof product, NULL, NULL, &vproduct,
                                     &error));
    vb = floats(two, 3);
    OK(rukh_io_binding_bind_output_allocated(binding, "sum", &error));
    FAILS(RUKH_ERROR_INVALID_INPUT, "\"a\"", rukh_io_binding_run(binding, NULL, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "no run has ended well", rukh_io_binding_output(binding, "sum", &sum, &error));
    OK(rukh_io_binding_bind_input(binding, "a", va, &error));
    OK(rukh_io_binding_bind_input(binding, "b", vb, &error));
    OK(rukh_io_binding_bind_output(binding, "product", vproduct, &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    CHECK(product[0] == 2 && product[2] == 6);
    OK(rukh_io_binding_output(binding, "sum", &sum, &error));
    CHECK(floats_of(sum, 3)[2] == 5);

    /* What is written into bound memory is what the next run reads; the allocated output is new memory. */
    a[2] = 10;
    OK(rukh_value_data_mut(vb, &elements, NULL, &error));
    ((float *)elements)[2] = 5;
    OK(rukh_io_binding_run(binding, NULL, &error));
    CHECK(product[2] == 50 && floats_of(sum, 3)[2] == 5);
    rukh_value_destroy(sum);
    OK(rukh_io_binding_output(binding, "sum", &sum, &error));
    CHECK(floats_of(sum, 3)[2] == 15);
    OK(rukh_io_binding_output(binding, "product", &same, &error));
    CHECK(floats_of(same, 3) == product);
    rukh_value_destroy(same);
    rukh_value_destroy(sum);

    /* In place: the output's memory is an input's. */
    OK(rukh_io_binding_clear_outputs(binding, &error));
    OK(rukh_io_binding_bind_output(binding, "sum", va, &error));
    a[0] = a[1] = a[2] = 0;
    for (i = 0; i < 100; i++) OK(rukh_io_binding_run(binding, NULL, &error));
    CHECK(a[0] == 200 && a[1] == 200 && a[2] == 500);

    wrong = floats(short_data, 2);
    OK(rukh_value_create_tensor(RUKH_ELEMENT_STRING, three, 1, &text, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "strings", rukh_io_binding_bind_output(binding, "sum", text, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "\"total\"", rukh_io_binding_bind_output(binding, "total", wrong, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "\"c\"", rukh_io_binding_bind_input(binding, "c", wrong, &error));
    OK(rukh_io_binding_bind_output(binding, "sum", wrong, &error));
    FAILS(RUKH_ERROR_INVALID_INPUT, "\"sum\"", rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_clear_inputs(binding, &error));
    FAILS(RUKH_ERROR_INVALID_INPUT, "\"a\"", rukh_io_binding_run(binding, NULL, &error));
    rukh_io_binding_destroy(binding);
    rukh_value_destroy(va);
    rukh_value_destroy(vb);
    rukh_value_destroy(vproduct);
    rukh_value_destroy(wrong);
    rukh_value_destroy(text);
    return 0;
}
