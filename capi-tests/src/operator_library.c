/* A shared library of operators, which operators_loaded.c loads. VERSION, ENTRY and FAILS make variants that cannot be
 * loaded. */

#include <rukh/rukh.h>

#include <string.h>

#ifndef VERSION
#define VERSION RUKH_ABI_VERSION
#endif
#ifndef ENTRY
#define ENTRY rukh_register_operators
#endif

static rukh_status shape(rukh_node_info *node, void *user) {
    (void)user;
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

/* Gives the input as the output. */
static rukh_status compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x;
    rukh_status status = rukh_kernel_context_input(context, 0, &x, NULL);
    (void)user;
    return status == RUKH_OK ? rukh_kernel_context_set_output(context, 0, x, NULL) : status;
}

RUKH_EXPORT uint32_t rukh_operators_abi_version(void);
RUKH_EXPORT rukh_status ENTRY(rukh_operator_registry *registry);

uint32_t rukh_operators_abi_version(void) {
    return VERSION;
}

rukh_status ENTRY(rukh_operator_registry *registry) {
    rukh_operator *operator;
    rukh_status status;
#ifdef FAILS
    if (rukh_operator_registry_set_error(registry, "the licence has run out", NULL) != RUKH_OK) return RUKH_ERROR_INTERNAL;
#endif
    status = rukh_operator_create("test.ops", "Scale", 1, NULL, NULL, &operator, NULL);
    if (status != RUKH_OK) return status;
    if ((status = rukh_operator_add_input(operator, "x", "float", RUKH_ARITY_REQUIRED, NULL)) == RUKH_OK &&
        (status = rukh_operator_add_output(operator, "y", "float", RUKH_ARITY_REQUIRED, NULL)) == RUKH_OK &&
        (status = rukh_operator_add_attribute(operator, "factor", RUKH_ATTRIBUTE_FLOAT, 0, NULL)) == RUKH_OK &&
        (status = rukh_operator_set_shape_function(operator, shape, NULL)) == RUKH_OK &&
        (status = rukh_operator_set_kernel(operator, NULL, compute, NULL)) == RUKH_OK) {
        status = rukh_operator_registry_add(registry, operator, NULL);
    }
    rukh_operator_destroy(operator);
    return status;
}
