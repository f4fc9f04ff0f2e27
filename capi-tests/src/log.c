/* The log: what records tell, levels of environments, sessions and runs, and callbacks that do what they should not. */

#include "check.h"

#include <limits.h>

struct heard {
    int messages, nodes, runs, opened;
    const rukh_log_record *last;
    rukh_environment *environment;
    rukh_session *session;
};

static const char *text_of(const rukh_log_record *record, rukh_log_text which) {
    const char *text = NULL;
    OK(rukh_log_record_text(record, which, &text, &error));
    return text;
}

static void hear(const rukh_log_record *record, void *user) {
    struct heard *heard = (struct heard *)user;
    const char *category = text_of(record, RUKH_LOG_TEXT_CATEGORY), *text;
    rukh_log_level level;
    heard->messages++;
    heard->last = record;
    OK(rukh_log_record_level(record, &level, &error));
    CHECK(text_of(record, RUKH_LOG_TEXT_MESSAGE)[0] != '\0');
    CHECK(strstr(text_of(record, RUKH_LOG_TEXT_LOCATION), ".rs:") != NULL);
    if (strcmp(category, "run") == 0) {
        CHECK(level == RUKH_LOG_DEBUG && strcmp(text_of(record, RUKH_LOG_TEXT_RUN), "mine") == 0);
        if (text_of(record, RUKH_LOG_TEXT_NODE)[0] != '\0') heard->nodes++;
        else heard->runs++;
    }
    if (strcmp(category, "session") == 0) heard->opened++;
    /* Wrong arguments, from inside. */
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "which: 6", rukh_log_record_text(record, 6, &text, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "which: -1", rukh_log_record_text(record, -1, &text, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "which", rukh_log_record_text(record, INT_MIN, &text, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "text", rukh_log_record_text(record, 0, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "level", rukh_log_record_level(record, NULL, &error));
    rukh_session_destroy((rukh_session *)record);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "rukh_log_record", rukh_completion_wait((const rukh_completion *)record, &error));
    /* It calls back: opens the same model, runs, changes the level, whose own messages come here too. */
    if (heard->environment != NULL) {
        rukh_environment *environment = heard->environment;
        heard->environment = NULL;
        rukh_session_destroy(open_model(environment, "add"));
        OK(rukh_environment_set_log_level(environment, RUKH_LOG_ERROR, &error));
    }
    if (heard->session != NULL) {
        rukh_session *session = heard->session;
        heard->session = NULL;
        FAILS(RUKH_ERROR_INVALID_INPUT, "\"a\" is missing",
              rukh_session_run(session, NULL, NULL, NULL, 0, NULL, 0, NULL, &error));
    }
}

static rukh_environment *environment_heard(struct heard *heard, rukh_log_level level) {
    rukh_environment_options *options;
    rukh_environment *environment;
    OK(rukh_environment_options_create(&options, &error));
    OK(rukh_environment_options_set_log_callback(options, level, hear, heard, NULL, &error));
    OK(rukh_environment_create(options, &environment, &error));
    rukh_environment_options_destroy(options);
    return environment;
}

static void run(rukh_session *session, rukh_run_options *options, rukh_status wanted) {
    const float one[] = {1, 2};
    rukh_value *a = floats(one, 2), *sum = NULL;
    const rukh_value *inputs[2];
    inputs[0] = inputs[1] = a;
    if (wanted == RUKH_OK) {
        OK(rukh_session_run(session, options, NULL, inputs, 2, NULL, 1, &sum, &error));
    } else {
        FAILS(wanted, "", rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &sum, &error));
    }
    rukh_value_destroy(sum);
    rukh_value_destroy(a);
}

static void levels_of_runs(void) {
    static const char *const quiet[] = {"info", "warning", "error", "off", "4", "1", "", "-1"};
    struct heard heard;
    rukh_environment *environment;
    rukh_session *session;
    rukh_run_options *options;
    char text[16];
    size_t i;
    memset(&heard, 0, sizeof heard);
    environment = environment_heard(&heard, RUKH_LOG_WARNING);
    session = open_model(environment, "add");
    CHECK(heard.messages == 0);
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_run_options_set(options, "tag", "mine", &error));
    for (i = 0; i < COUNT_OF(quiet); i++) {
        OK(rukh_run_options_set(options, i % 2 ? "log_severity_level" : "log_level", quiet[i], &error));
        run(session, options, RUKH_OK);
        CHECK(heard.messages == 0);
    }
    OK(rukh_run_options_get(options, "log_level", text, sizeof text, NULL, &error));
    CHECK(text[0] == '\0');
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "debug, info", rukh_run_options_set(options, "log_level", "loud", &error));
    OK(rukh_run_options_set(options, "log_severity_level", "0", &error));
    OK(rukh_run_options_get(options, "log_level", text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "debug") == 0);
    run(session, options, RUKH_OK);
    CHECK(heard.nodes >= 1 && heard.runs == 1);
    /* The record that the callback kept is gone. */
    FAILS(RUKH_ERROR_INVALID_HANDLE, "", rukh_log_record_level(heard.last, NULL, &error));
    heard.session = session;
    run(session, options, RUKH_OK);
    CHECK(heard.session == NULL && heard.runs == 2);
    /* Other runs are as quiet as before. */
    heard.messages = 0;
    run(session, NULL, RUKH_OK);
    run(session, NULL, RUKH_ERROR_INVALID_INPUT);
    CHECK(heard.messages == 0);
    rukh_run_options_destroy(options);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
}

static void levels_of_sessions(void) {
    struct heard heard;
    rukh_environment *environment;
    rukh_session_options *options;
    rukh_session *session;
    rukh_run_options *run_options;
    memset(&heard, 0, sizeof heard);
    environment = environment_heard(&heard, RUKH_LOG_ERROR);
    OK(rukh_session_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "debug, info", rukh_session_options_set(options, "log_level", "5", &error));
    OK(rukh_session_options_set(options, "log_level", "info", &error));
    OK(rukh_session_options_set(options, "log_id", "named", &error));
    OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
    CHECK(heard.opened == 1 && heard.messages == 1);
    rukh_session_destroy(session);
    OK(rukh_session_options_set(options, "log_level", "off", &error));
    OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
    CHECK(heard.messages == 1);
    OK(rukh_run_options_create(&run_options, &error));
    OK(rukh_run_options_set(run_options, "tag", "mine", &error));
    run(session, run_options, RUKH_OK);
    CHECK(heard.messages == 1);
    OK(rukh_run_options_set(run_options, "log_level", "debug", &error));
    run(session, run_options, RUKH_OK);
    CHECK(heard.runs == 1);
    rukh_session_destroy(session);
    rukh_session_options_destroy(options);
    rukh_run_options_destroy(run_options);

    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "level: 4", rukh_environment_set_log_level(environment, 4, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "level: -1", rukh_environment_set_log_level(environment, -1, &error));
    OK(rukh_environment_set_log_level(environment, RUKH_LOG_INFO, &error));
    /* The callback opens another session and silences itself. */
    heard.opened = 0;
    heard.environment = environment;
    rukh_session_destroy(open_model(environment, "linear"));
    rukh_session_destroy(open_model(environment, "linear"));
    CHECK(heard.opened == 2 && heard.environment == NULL);
    rukh_environment_destroy(environment);
    /* Without a callback a level changes nothing. */
    environment = new_environment("1");
    OK(rukh_environment_set_log_level(environment, RUKH_LOG_DEBUG, &error));
    rukh_environment_destroy(environment);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    levels_of_runs();
    levels_of_sessions();
    return 0;
}
