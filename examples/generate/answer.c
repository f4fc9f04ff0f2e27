/* Asks a small language model questions and checks its answers.
 *
 *     answer MODEL_FOLDER
 *
 * The model answers questions about numbers and days (corpus.py says which). The program prints the text as it comes
 * and exits with 0 when all answers are right.
 */
#include <rukh/generate.h>
#include <rukh/rukh.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program when a call failed. */
static void check(rukh_status status, rukh_error *const *error)
{
    if (status == RUKH_OK)
        return;
    fprintf(stderr, "%s: %s\n", rukh_status_name(status), rukh_error_message(*error));
    rukh_error_destroy(*error);
    exit(2);
}

/* Appends the generator's new text to `answer` and prints it. */
static void take_text(rukh_generator *generator, char *answer, size_t room)
{
    rukh_error *error = NULL;
    size_t used = strlen(answer);
    check(rukh_generator_text(generator, 0, answer + used, room - used, NULL, &error), &error);
    printf("%s", answer + used);
    fflush(stdout);
}

/* Asks a question in a conversation of its own; whether the answer is the expected one. */
static int ask(rukh_generator *generator, const char *question, const char *expected)
{
    rukh_error *error = NULL;
    char messages[256], answer[1024] = "";
    int32_t done = 0;

    snprintf(messages, sizeof messages, "[{\"role\": \"user\", \"content\": \"%s\"}]", question);
    check(rukh_generator_chat(generator, messages, &error), &error);
    printf("%s ", question);
    while (!done) {
        check(rukh_generator_next(generator, NULL, 0, &done, &error), &error);
        take_text(generator, answer, sizeof answer);
    }
    printf("\n");
    if (strcmp(answer, expected) == 0)
        return 1;
    fprintf(stderr, "expected: %s\n", expected);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const questions[][2] = {
        {"What is 27 plus 58?", "27 plus 58 is 85."},
        {"Spell 342.", "Three hundred forty-two."},
        {"Sort 31, 4, 15, 92, 65.", "4, 15, 31, 65, 92."},
        {"What day comes 3 days after Friday?", "Monday."},
        {"Count from 98 to 103.", "98, 99, 100, 101, 102, 103."},
        {"Draw five stars.", "★★★★★"},
    };
    size_t count = sizeof questions / sizeof *questions, right = 0, i;
    rukh_error *error = NULL;
    rukh_generator *generator = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: answer MODEL_FOLDER\n");
        return 2;
    }
    check(rukh_generator_create(NULL, argv[1], NULL, &generator, &error), &error);
    for (i = 0; i < count; i++)
        right += ask(generator, questions[i][0], questions[i][1]);
    rukh_generator_destroy(generator);
    printf("%zu of %zu answers are right\n", right, count);
    return right == count ? 0 : 1;
}
