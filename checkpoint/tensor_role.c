#include "checkpoint/tensor_role.h"

#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_value.h"

#include <string.h>

/* What TensorFlow 2 appends to the path of an object. */
static const char attribute[] = "/.ATTRIBUTES/VARIABLE_VALUE";

static int ends_with(const char *text, size_t n, const char *end)
{
    size_t k = strlen(end);

    return n >= k && memcmp(text + n - k, end, k) == 0;
}

static int begins_with(const char *text, size_t n, const char *start)
{
    size_t k = strlen(start);

    return n >= k && memcmp(text, start, k) == 0;
}

/* 1 if the last part of a path is this word; parts are separated by '/' or, in PyTorch's names, by '.'. */
static int last_is(const char *name, size_t n, const char *word)
{
    size_t k = strlen(word);

    return ends_with(name, n, word) && (n == k || name[n - k - 1] == '/' || name[n - k - 1] == '.');
}

static int any_last(const char *name, size_t n, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (last_is(name, n, words[i]))
            return 1;
    return 0;
}

static int is_counter(const char *name, size_t n, int type, uint64_t elements)
{
    static const char *const words[] = { "global_step", "step", "save_counter",       "iterations",
                                         "_iterations", "iter", "num_batches_tracked" };

    if (elements != 1 || !any_last(name, n, words, sizeof words / sizeof *words))
        return 0;
    return tensor_kind(type) == TENSOR_KIND_SIGNED || tensor_kind(type) == TENSOR_KIND_UNSIGNED ||
           last_is(name, n, "global_step");
}

static int is_slot(const char *name, size_t n)
{
    static const char *const slots[] = { "Momentum", "Adam",     "Adam_1",     "RMSProp", "RMSProp_1",
                                         "Adagrad",  "Adadelta", "Adadelta_1", "Ftrl",    "Ftrl_1" };
    static const char *const powers[] = { "beta1_power", "beta2_power" };

    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (last_is(name, n, slots[i]) && n > strlen(slots[i]) + 1 && name[n - strlen(slots[i]) - 1] == '/')
            return 1; /* of a variable, whose name precedes it */
    if (begins_with(name, n, "optimizer/_trainable_variables/"))
        return 0; /* where Keras 3 keeps the weights themselves */
    return any_last(name, n, powers, sizeof powers / sizeof *powers) || begins_with(name, n, "optimizer/") ||
           begins_with(name, n, "optimizer.") || begins_with(name, n, "_optimizer/") ||
           strstr(name, "/.OPTIMIZER_SLOT/");
}

enum tensor_role tensor_role(const char *name, int type, uint64_t elements)
{
    size_t n = strlen(name);

    if (begins_with(name, n, "evalboard/") || strcmp(name, "_CHECKPOINTABLE_OBJECT_GRAPH") == 0)
        return TENSOR_ROLE_BOOKKEEPING;
    if (ends_with(name, n, attribute))
        n -= sizeof attribute - 1;
    if (is_counter(name, n, type, elements))
        return TENSOR_ROLE_BOOKKEEPING;
    if (last_is(name, n, "ExponentialMovingAverage"))
        return TENSOR_ROLE_AVERAGE;
    return is_slot(name, n) ? TENSOR_ROLE_OPTIMIZER : TENSOR_ROLE_WEIGHT;
}

const char *tensor_role_name(enum tensor_role role)
{
    static const char *const names[TENSOR_ROLES] = { "weight", "average", "optimizer", "bookkeeping" };

    return names[role];
}
