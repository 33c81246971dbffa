/* What tensors are for, by the names that TensorFlow 1 and 2, Keras 3, PyTorch and the trainer give them. */

#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_role.h"
#include "tests/check.h"

#define ATTRIBUTE "/.ATTRIBUTES/VARIABLE_VALUE"

static const struct {
    const char *name;
    int type;
    uint64_t elements;
    enum tensor_role role;
} cases[] = {
    { "conv1/weights", TENSOR_FLOAT, 4800, TENSOR_ROLE_WEIGHT },
    { "conv1/weights/ExponentialMovingAverage", TENSOR_FLOAT, 4800, TENSOR_ROLE_AVERAGE },
    { "conv1/weights/Momentum", TENSOR_FLOAT, 4800, TENSOR_ROLE_OPTIMIZER },
    { "conv1/weights/Adam_1", TENSOR_FLOAT, 4800, TENSOR_ROLE_OPTIMIZER },
    { "beta1_power", TENSOR_FLOAT, 1, TENSOR_ROLE_OPTIMIZER },
    { "Adam", TENSOR_FLOAT, 4800, TENSOR_ROLE_WEIGHT }, /* of no variable */
    { "Momentum/weights", TENSOR_FLOAT, 4800, TENSOR_ROLE_WEIGHT },
    { "unit/bn/moving_mean", TENSOR_FLOAT, 16, TENSOR_ROLE_WEIGHT },
    { "global_step", TENSOR_INT64, 1, TENSOR_ROLE_BOOKKEEPING },
    { "train/global_step", TENSOR_INT32, 1, TENSOR_ROLE_BOOKKEEPING },
    { "global_step", TENSOR_FLOAT, 1, TENSOR_ROLE_BOOKKEEPING },
    { "global_step", TENSOR_INT64, 2, TENSOR_ROLE_WEIGHT },
    { "not_global_step", TENSOR_INT64, 1, TENSOR_ROLE_WEIGHT },
    { "step", TENSOR_FLOAT, 1, TENSOR_ROLE_WEIGHT }, /* a step function's height, perhaps */
    { "global_step/weights", TENSOR_INT64, 1, TENSOR_ROLE_WEIGHT },
    { "bn1.num_batches_tracked", TENSOR_INT64, 1, TENSOR_ROLE_BOOKKEEPING },
    { "evalboard/run_option", TENSOR_UINT8, 3, TENSOR_ROLE_BOOKKEEPING },
    { "evalboard", TENSOR_UINT8, 3, TENSOR_ROLE_WEIGHT },
    { "_CHECKPOINTABLE_OBJECT_GRAPH", TENSOR_STRING, 1, TENSOR_ROLE_BOOKKEEPING },
    { "save_counter" ATTRIBUTE, TENSOR_INT64, 1, TENSOR_ROLE_BOOKKEEPING },
    { "step" ATTRIBUTE, TENSOR_INT32, 1, TENSOR_ROLE_BOOKKEEPING },
    { "optimizer/_iterations" ATTRIBUTE, TENSOR_INT64, 1, TENSOR_ROLE_BOOKKEEPING },
    { "optimizer/_learning_rate" ATTRIBUTE, TENSOR_FLOAT, 1, TENSOR_ROLE_OPTIMIZER },
    { "optimizer/_variables/4" ATTRIBUTE, TENSOR_FLOAT, 6, TENSOR_ROLE_OPTIMIZER },
    { "optimizer/_trainable_variables/0" ATTRIBUTE, TENSOR_FLOAT, 6, TENSOR_ROLE_WEIGHT },
    { "model/dense/kernel/.OPTIMIZER_SLOT/optimizer/m" ATTRIBUTE, TENSOR_FLOAT, 6, TENSOR_ROLE_OPTIMIZER },
    { "model/_functional/_operations/2/moving_mean" ATTRIBUTE, TENSOR_FLOAT, 2, TENSOR_ROLE_WEIGHT },
    { "", TENSOR_FLOAT, 1, TENSOR_ROLE_WEIGHT },
};

static void test_roles(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum tensor_role role = tensor_role(cases[i].name, cases[i].type, cases[i].elements);

        if (role != cases[i].role)
            fail_msg("%s: %s", cases[i].name, tensor_role_name(role));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_roles) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
