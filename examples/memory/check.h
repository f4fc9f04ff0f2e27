/* What the examples do when a call of the library fails. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <rukh/rukh.h>

/* Ends the program unless a call succeeded. */
static void check(rukh_status status, rukh_error *const *error) {
    if (status != RUKH_OK) {
        fprintf(stderr, "%s: %s\n", rukh_status_name(status), rukh_error_message(*error));
        rukh_error_destroy(*error);
        exit(2);
    }
}

#endif
