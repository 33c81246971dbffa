"""The seed models in TensorFlow's own operators (graph mode, tf.compat.v1), as their sources have them.

Each function builds logits in the default graph with variables of the original names. `training` is a Python bool.
"""
import numpy
import tensorflow as tf
from tensorflow.python.ops import rnn_grad  # noqa: F401  registers the gradient of BlockLSTM

v1 = tf.compat.v1


class Model:
    """What the tests need to know of a model. decay: variable name -> weight decay; words: its input is numbers below
    that, else images; labels: of a sample, 0: one, without a weight; debias: of the moving statistics."""

    def __init__(self, name, image, build, decay, parameters, statistics=0, classes=10, words=0, labels=0, debias=True):
        self.name, self.image, self.build, self.decay = name, image, build, decay
        self.parameters, self.statistics, self.classes, self.words = parameters, statistics, classes, words
        self.labels, self.debias = labels, debias


def weights(name, shape, initializer):
    return v1.get_variable(name, shape, tf.float32, initializer)


def constant(value):
    return v1.constant_initializer(value)


def bend(x):
    """Notes how near the values before a ReLU come to 0, where rounding decides whether a gradient goes on."""
    note_nearest(x, x)
    return x


def note_nearest(gap, x):
    v1.add_to_collection("nearest", tf.reduce_min(tf.abs(gap)) / tf.reduce_max(tf.abs(x)))


def max_pool(x, size, stride, padding):
    """x >= 0, from a ReLU. Notes the gap between the two largest of each window, where they are not zeros."""
    patches = tf.image.extract_patches(x, [1, size, size, 1], [1, stride, stride, 1], [1, 1, 1, 1], padding)
    patches = tf.reshape(patches, [-1, size * size, x.shape[3]])
    top = tf.math.top_k(tf.transpose(patches, [0, 2, 1]), 2).values
    note_nearest(tf.where(top[..., 0] > 0, top[..., 0] - top[..., 1], x.dtype.max), x)
    return tf.nn.max_pool2d(x, size, stride, padding)


def lenet(images, training, keep_mask=None):
    """keep_mask: (batch, 50), 1 where dropout keeps a unit; None: no dropout."""
    def layer(name, shape, operation):
        with v1.variable_scope(name):
            kernel = weights("weights", shape, v1.glorot_uniform_initializer())
            return operation(kernel) + weights("biases", shape[-1:], constant(0.0))

    x = tf.nn.relu(bend(layer("conv1", [5, 5, 1, 10], lambda w: tf.nn.conv2d(images, w, 1, "VALID"))))
    x = max_pool(x, 2, 2, "VALID")
    x = tf.nn.relu(bend(layer("conv2", [5, 5, 10, 20], lambda w, x=x: tf.nn.conv2d(x, w, 1, "VALID"))))
    x = max_pool(x, 2, 2, "VALID")
    x = tf.reshape(x, [-1, 320])
    x = tf.nn.relu(bend(layer("fc3", [320, 50], lambda w, x=x: tf.matmul(x, w))))
    if keep_mask is not None:
        x = x * keep_mask / 0.5
    return layer("fc4", [50, 10], lambda w, x=x: tf.matmul(x, w))


def cifar10_cnn(images, training, keep_mask=None):
    def layer(name, shape, deviation, bias, operation):
        with v1.variable_scope(name):
            kernel = weights("weights", shape, v1.truncated_normal_initializer(stddev=deviation))
            return tf.nn.bias_add(operation(kernel), weights("biases", shape[-1:], constant(bias)))

    def normalize(x):
        return tf.nn.local_response_normalization(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)

    def pool(x):
        return max_pool(x, 3, 2, "SAME")

    x = tf.nn.relu(bend(layer("conv1", [5, 5, 3, 64], 5e-2, 0.0, lambda w: tf.nn.conv2d(images, w, 1, "SAME"))))
    x = normalize(pool(x))
    x = tf.nn.relu(bend(layer("conv2", [5, 5, 64, 64], 5e-2, 0.1, lambda w, x=x: tf.nn.conv2d(x, w, 1, "SAME"))))
    x = tf.reshape(pool(normalize(x)), [-1, 2304])
    x = tf.nn.relu(bend(layer("local3", [2304, 384], 0.04, 0.1, lambda w, x=x: tf.matmul(x, w))))
    x = tf.nn.relu(bend(layer("local4", [384, 192], 0.04, 0.1, lambda w, x=x: tf.matmul(x, w))))
    return layer("softmax_linear", [192, 10], 1 / 192.0, 0.0, lambda w, x=x: tf.matmul(x, w))


def resnet32(images, training, keep_mask=None):
    def convolution(x, name, channels, stride=1):
        with v1.variable_scope(name):
            kernel = weights("DW", [3, 3, x.shape[3], channels],
                             v1.random_normal_initializer(stddev=numpy.sqrt(2.0 / (9 * channels))))
            return tf.nn.conv2d(x, kernel, stride, "SAME")

    def activation(x, name):
        with v1.variable_scope(name):
            beta = weights("beta", [x.shape[3]], constant(0.0))
            gamma = weights("gamma", [x.shape[3]], constant(1.0))
            moving = [v1.get_variable(n, [x.shape[3]], tf.float32, constant(c), trainable=False)
                      for n, c in (("moving_mean", 0.0), ("moving_variance", 1.0))]
            mean, variance = tf.nn.moments(x, [0, 1, 2]) if training else moving
            for variable, value in zip(moving, (mean, variance)):
                v1.add_to_collection("statistics", (variable, value))
            x = bend(tf.nn.batch_normalization(x, mean, variance, beta, gamma, 0.001))
        return tf.where(tf.less(x, 0.0), 0.1 * x, x)

    x = convolution(images, "init/init_conv", 16)
    for stage, channels in ((1, 16), (2, 32), (3, 64)):
        for number in range(5):
            with v1.variable_scope(f"unit_{stage}_{number}"):
                shared, wider = stage == 1 and number == 0, stage > 1 and number == 0
                y = activation(x, "shared_activation/init_bn" if shared else "residual_only_activation/init_bn")
                shortcut = y if shared else x
                y = convolution(y, "sub1/conv1", channels, 2 if wider else 1)
                y = convolution(activation(y, "sub2/bn2"), "sub2/conv2", channels)
                if wider:
                    shortcut = tf.nn.avg_pool2d(shortcut, 2, 2, "VALID")
                    shortcut = tf.pad(shortcut, [[0, 0]] * 3 + [[channels // 4, channels // 4]])
                x = y + shortcut
    x = tf.reduce_mean(activation(x, "unit_last/final_bn"), [1, 2])
    with v1.variable_scope("logit"):
        bound = numpy.sqrt(3.0 / 64)
        return tf.matmul(x, weights("DW", [64, 10], v1.random_uniform_initializer(-bound, bound))) + weights(
            "biases", [10], constant(0.0))


def next_word(words, training, keep_mask=None):
    """Bengio et al. 2003, with ReLU."""
    def layer(x, name, outputs):
        with v1.variable_scope(name):
            kernel = weights("weights", [x.shape[1], outputs], v1.glorot_uniform_initializer())
            return tf.matmul(x, kernel) + weights("biases", [outputs], constant(0.0))

    with v1.variable_scope("embedding"):
        table = weights("map", [10000, 64], v1.random_uniform_initializer(-0.1, 0.1))
    x = tf.reshape(tf.gather(table, tf.reshape(words, [-1, 5])), [-1, 5 * 64])
    return layer(tf.nn.relu(bend(layer(x, "hidden", 128))), "logits", 10000)


def mnist_cnn(images, training, keep_mask=None):
    def layer(x, name, shape, operation):
        with v1.variable_scope(name):
            kernel = weights("weights", shape, v1.glorot_uniform_initializer())
            return tf.nn.bias_add(operation(x, kernel), weights("biases", shape[-1:], constant(0.0)))

    def convolution(x, name, size):
        return tf.nn.relu(bend(layer(x, name, [size, size, x.shape[3], 128], lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"))))

    x = max_pool(convolution(convolution(images, "Conv", 5), "Conv_1", 5), 2, 2, "VALID")
    x = max_pool(convolution(convolution(x, "Conv_2", 3), "Conv_3", 3), 2, 2, "VALID")
    x = max_pool(convolution(convolution(x, "Conv_4", 3), "Conv_5", 3), 2, 2, "VALID")
    return layer(tf.reshape(x, [-1, 1152]), "fully_connected", [1152, 10], tf.matmul)


def mnist_lstm(images, training, keep_mask=None):
    """LSTMCell by the kernel that computes it: without Keras, TensorFlow has no class for it any more."""
    note_nearest(tf.ones([1]), tf.ones([1]))  # nothing in it bends
    with v1.variable_scope("rnn/lstm_cell"):
        kernel = weights("kernel", [28 + 64, 4 * 64], v1.glorot_uniform_initializer())
        bias = weights("bias", [4 * 64], constant(0.0))
    return dense_of_last(lstm(tf.reshape(images, [-1, 28, 28]), kernel, bias, 64), "dense", 64)


def mnist_lstm_128(images, training, keep_mask=None):
    """BasicLSTMCell, likewise."""
    note_nearest(tf.ones([1]), tf.ones([1]))
    with v1.variable_scope("rnn/basic_lstm_cell"):
        kernel = weights("kernel", [28 + 128, 4 * 128], v1.glorot_uniform_initializer())
        bias = weights("bias", [4 * 128], constant(0.0))
    out = weights("Variable", [128, 10], v1.random_normal_initializer()), weights("Variable_1", [10],
                                                                                  v1.random_normal_initializer())
    return tf.matmul(lstm(tf.reshape(images, [-1, 28, 28]), kernel, bias, 128)[:, -1], out[0]) + out[1]


def dense_of_last(steps, scope, units):
    with v1.variable_scope(scope):
        kernel = weights("kernel", [units, 10], v1.glorot_uniform_initializer())
        return tf.matmul(steps[:, -1], kernel) + weights("bias", [10], constant(0.0))


def lstm(x, kernel, bias, units):
    """What each step gives, (batch, steps, units), from x (batch, steps, values)."""
    zeros, none = tf.zeros([tf.shape(x)[0], units]), tf.zeros([units])
    steps = tf.cast(tf.shape(x)[1], tf.int64)
    given = tf.raw_ops.BlockLSTM(seq_len_max=steps, x=tf.transpose(x, [1, 0, 2]), cs_prev=zeros, h_prev=zeros, w=kernel,
                                 wci=none, wcf=none, wco=none, b=bias, forget_bias=1.0, cell_clip=-1.0)
    return tf.transpose(given.h, [1, 0, 2])


def layers_of_images(images, training, keep_mask=None):
    """With TensorFlow's fused batch norm, whose moving variance is unbiased."""
    draw = v1.random_normal_initializer(stddev=0.2)

    def convolution(x, scope, window, channels, stride, padding):
        with v1.variable_scope(scope):
            x = tf.pad(x, [[0, 0], padding[0], padding[1], [0, 0]])
            return tf.nn.conv2d(x, weights("weights", [*window, x.shape[3], channels], draw), stride, "VALID")

    def normalize(x, scope, gamma):
        with v1.variable_scope(scope + "/BatchNorm"):
            size = [x.shape[3]]
            beta = weights("beta", size, constant(0.0))
            gamma = weights("gamma", size, constant(1.0)) if gamma else tf.ones(size)
            moving = [v1.get_variable(n, size, tf.float32, constant(c), trainable=False)
                      for n, c in (("moving_mean", 0.0), ("moving_variance", 1.0))]
            given = {} if training else dict(zip(("mean", "variance"), moving))
            x, *found = v1.nn.fused_batch_norm(x, gamma, beta, epsilon=0.001, is_training=training, **given)
            for variable, value in zip(moving, found if training else moving):
                v1.add_to_collection("statistics", (variable, value))
            return x

    x = convolution(images, "broad", [1, 7], 16, 1, [[0, 0], [3, 3]])
    x = tf.nn.relu(bend(normalize(x, "broad", False)))
    left = bend(normalize(convolution(x, "fixed", [3, 3], 8, 2, [[1, 1], [1, 1]]), "fixed", True))
    x = convolution(x, "tall", [5, 1], 16, [2, 1], [[2, 1], [0, 0]])
    with v1.variable_scope("tall"):
        x = x + weights("biases", [16], draw)
    right = tf.nn.max_pool2d(tf.nn.relu(bend(x)), [1, 2], [1, 2], "VALID")
    note_nearest(tf.where(right > 0, tf.abs(x[:, :, ::2] - x[:, :, 1::2]), x.dtype.max), x)
    x = tf.reduce_mean(tf.nn.relu(tf.concat([left, right], 3)), [1, 2])
    with v1.variable_scope("logits"):
        return tf.matmul(x, weights("weights", [24, 10], draw)) + weights("biases", [10], constant(0.0))


def layers_of_words(words, training, keep_mask=None):
    draw = v1.random_uniform_initializer(-0.3, 0.3)
    note_nearest(tf.ones([1]), tf.ones([1]))
    x = tf.gather(weights("map", [50, 8], draw), tf.reshape(words, [-1, 6]))
    for scope, units in (("first", 12), ("second", 7)):
        with v1.variable_scope(scope):
            x = lstm(x, weights("kernel", [x.shape[2] + units, 4 * units], draw),
                     weights("bias", [4 * units], constant(0.0)), units)
    with v1.variable_scope("logits"):
        return tf.tensordot(x, weights("kernel", [7, 50], draw), 1) + weights("bias", [50], constant(0.0))


def language_model(words, training, keep_mask=None):
    """Zaremba et al. 2014, small and with one layer, from an empty memory."""
    draw = v1.random_uniform_initializer(-0.1, 0.1)
    note_nearest(tf.ones([1]), tf.ones([1]))
    with v1.variable_scope("embedding"):
        x = tf.gather(weights("map", [10000, 200], draw), tf.reshape(words, [-1, 20]))
    with v1.variable_scope("rnn/lstm_cell"):
        x = lstm(x, weights("kernel", [400, 800], draw), weights("bias", [800], constant(0.0)), 200)
    with v1.variable_scope("softmax"):
        return tf.tensordot(x, weights("kernel", [200, 10000], draw), 1) + weights("bias", [10000], constant(0.0))


MODELS = {model.name: model for model in (
    Model("lenet", (28, 28, 1), lenet, lambda name: 1e-4 if name.endswith("/weights") else 0, 21840),
    Model("cifar10_cnn", (24, 24, 3), cifar10_cnn,
          lambda name: 0.004 if name in ("local3/weights", "local4/weights") else 0, 1068298),
    Model("resnet32", (32, 32, 3), resnet32, lambda name: 0.0002 if name.endswith("/DW") else 0, 464154, 2272),
    Model("next_word", (1, 5, 1), next_word,
          lambda name: 1e-5 if name in ("hidden/weights", "logits/weights") else 0, 1971088, classes=10000, words=10000),
    Model("mnist_cnn", (28, 28, 1), mnist_cnn, lambda name: 0, 1014922),
    Model("mnist_lstm", (28, 28, 1), mnist_lstm, lambda name: 0, 24458),
    Model("mnist_lstm_128", (28, 28, 1), mnist_lstm_128, lambda name: 0, 81674),
    Model("language_model", (20, 1, 1), language_model, lambda name: 0, 4330800, classes=10000, words=10000, labels=20),
    Model("layers_of_images", (10, 8, 3), layers_of_images, lambda name: 0, 3066, 48, debias=False),
    Model("layers_of_words", (6, 1, 1), layers_of_words, lambda name: 0, 2368, classes=50, words=50, labels=6),
)}
