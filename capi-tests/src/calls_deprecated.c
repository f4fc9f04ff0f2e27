/* Must not compile without a warning: it calls what is deprecated. */

#include <rukh/rukh.h>

int call(rukh_environment_options *options);

int call(rukh_environment_options *options) {
    return rukh_environment_options_set_log(options, RUKH_LOG_INFO, NULL, NULL, NULL, NULL);
}
