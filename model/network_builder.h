/*
 * network_builder.h - the calls with which a model's build() adds layer by layer, from the images to the cross entropy.
 *
 * Each call takes values and returns the next one. Variables are numbered and laid out in the order of these calls;
 * their names are the checkpoint's. The first mistake (an impossible shape, a value used after a layer changed it in
 * place, no memory) is kept, later calls do nothing, and network_new reports it: build() need not check results.
 */
#ifndef MODEL_NETWORK_BUILDER_H
#define MODEL_NETWORK_BUILDER_H

#include "model/model.h"
#include "model/variable.h"
#include "model/window.h"

enum relu { RELU_NONE, RELU };
enum lstm_gives { LSTM_GIVES_LAST, LSTM_GIVES_EVERY, LSTM_GIVES_LATER /* every one but the first */ };
enum leaky_gradient { LEAKY_GRADIENT_ONE, LEAKY_GRADIENT_SLOPE }; /* at 0: as where(x < 0, ...), as tf.nn.leaky_relu */

struct network_builder;

/* Of beta, gamma, and the moving mean and variance: TensorFlow's scope/beta, scope/gamma, scope/moving_mean,
 * scope/moving_variance, or PyTorch's scope.bias, scope.weight, scope.running_mean, scope.running_var. */
enum batch_norm_names { BATCH_NORM_TENSORFLOW, BATCH_NORM_TORCH };

struct batch_norm_options {
    double epsilon;
    double
        slope;  /* of the leaky ReLU that follows, with gradient 1 at 0; 0: of a ReLU, with gradient 0 at 0; 1: none */
    int debias; /* the moving averages are zero-debiased (tf.nn.moments and assign_moving_average) */
    int unbiased;    /* the moving variance is of v n / (n - 1), as with TensorFlow's fused operator; else of v */
    int leave_gamma; /* no gamma: it is 1 */
    enum batch_norm_names names;
};

/* A kernel's initial values and weight decay. */
struct kernel_options {
    enum initial_kind initial;
    double initial_value; /* deviation, or bound of the uniform */
    double decay;
};

int network_builder_images(struct network_builder *b); /* the network's input */

/* For integer input: replaces each integer by a row of variable `name` (rows, width), so that in's channel becomes
 * `width`. An integer outside [0, rows) stands for zeros. The gradient comes as rows (struct row_gradient). */
int network_builder_embedding(struct network_builder *b, int in, const char *name, int rows, int width,
                              const struct kernel_options *options);
/* For integer input (in): the features beside it, (1, 1, the model's features). Nothing before them learns. */
int network_builder_image_features(struct network_builder *b, int in);
/* The rows of 1 to 8 inputs of equal width and channels, one input below the other, in order. */
int network_builder_stack(struct network_builder *b, const int *inputs, int count);
/* Kernel variable `name` (window's height, width, channels of in, channels). Add the bias with network_builder_bias. */
int network_builder_convolution(struct network_builder *b, int in, const char *name, int channels, struct window window,
                                const struct kernel_options *options);
/* in times variable `name` (height width channels of in, outputs), flattened in (height, width, channel) order. */
int network_builder_dense(struct network_builder *b, int in, const char *name, int outputs,
                          const struct kernel_options *options);
/* The channels of each pixel, such as a step of a sequence, times variable `name` (channels of in, outputs). */
int network_builder_dense_each(struct network_builder *b, int in, const char *name, int outputs,
                               const struct kernel_options *options);
/* A long short-term memory that reads in row by row (height steps of width channels values each): variables
 * scope/kernel (width channels + units, 4 units) and scope/bias (4 units), gates in the order i, j, f, o; forget is
 * added to f. Gives what the last step gives, (1, 1, units), what every step gives, (height, 1, units), or what every
 * step after the first gives, (height - 1, 1, units): the first one then only sets the state. */
int network_builder_lstm(struct network_builder *b, int in, const char *scope, int units, enum lstm_gives gives,
                         double forget, const struct kernel_options *options);
/* Adds variable `name` (channels), and ReLU if wanted. In place. */
int network_builder_bias(struct network_builder *b, int in, const char *name, double initial, enum relu relu);
/* The same with initial values that are drawn. */
int network_builder_bias_drawn(struct network_builder *b, int in, const char *name,
                               const struct kernel_options *options, enum relu relu);
/* Variables beta and, unless left out, gamma; statistics moving_mean and moving_variance. */
int network_builder_batch_norm(struct network_builder *b, int in, const char *scope,
                               const struct batch_norm_options *options);
int network_builder_relu(struct network_builder *b, int in); /* in place */
/* In place. slope > 0. */
int network_builder_leaky(struct network_builder *b, int in, double slope, enum leaky_gradient gradient);
/* Padding counts neither for a maximum nor for a mean. */
int network_builder_max_pool(struct network_builder *b, int in, struct window window);
int network_builder_average_pool(struct network_builder *b, int in, struct window window);
int network_builder_global_average_pool(struct network_builder *b, int in); /* over all pixels: (1, 1, channels) */
/* Adds zero channels around in's, half of them (rounded down) before. */
int network_builder_widen(struct network_builder *b, int in, int channels);
int network_builder_add(struct network_builder *b, int changed, int other); /* changed += other, in place */
/* The channels of 1 to 8 inputs of equal height and width side by side, in order. A value may occur more than once. */
int network_builder_concat(struct network_builder *b, const int *inputs, int count);
int network_builder_lrn(struct network_builder *b, int in, int radius, double bias, double alpha, double beta);
/* In training only; in place. Each value of each pixel, such as a step of a sequence, is kept or not by itself. */
int network_builder_dropout(struct network_builder *b, int in, double keep);
/* Must be the last call. logits: as many pixels as a sample has labels (struct model), of `classes` channels each.
 * Labels count by their weights; those of weight 0, such as padding behind a text, may be anything. */
void network_builder_cross_entropy(struct network_builder *b, int logits);

#endif
