/* Where nodes run, for tests that only count. */

#ifndef PLACEMENTS_H
#define PLACEMENTS_H

#include "check.h"

struct placements {
    size_t nodes, on_cpu, on_gpu;
};

static rukh_status count_placement(const rukh_placement *placement, void *user) {
    struct placements *found = (struct placements *)user;
    const char *provider;
    OK(rukh_placement_text(placement, RUKH_PLACEMENT_PROVIDER, &provider, &error));
    found->nodes++;
    found->on_cpu += strcmp(provider, "cpu") == 0;
    found->on_gpu += strcmp(provider, "hip") == 0;
    return RUKH_OK;
}

CHECK_UNUSED static struct placements placements_of(rukh_session *session) {
    struct placements found = {0, 0, 0};
    OK(rukh_session_for_each_placement(session, count_placement, &found, &error));
    return found;
}

#endif
