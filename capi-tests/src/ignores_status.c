/* Must not compile without a warning: nobody looks at the status. */

#include <rukh/rukh.h>

void ignore(rukh_environment *environment, size_t *count);

void ignore(rukh_environment *environment, size_t *count) {
    rukh_environment_thread_count(environment, count, NULL);
}
