"""A decoder of captions in TensorFlow's own operators (graph mode), as im2txt has it: an image's features, then words, go
through one LSTM. Sizes are free. And the search for sentences, by what the comments of im2txt's caption generator say.
"""
import math

import numpy
import tensorflow as tf

v1 = tf.compat.v1
KEEP = 0.7


class Batches:
    """Sentences as caption_tool has them: words, labels, weights (n, steps), features (n, numbers), samples (n)."""

    PARTS = {"words": "int32", "labels": "int32", "weights": "float32", "features": "float32", "samples": "int64"}

    def __init__(self, **parts):
        self.__dict__.update({name: numpy.ascontiguousarray(parts[name], kind) for name, kind in self.PARTS.items()})

    @classmethod
    def read(cls, directory, steps, features):
        parts = {name: numpy.fromfile(directory / name, kind) for name, kind in cls.PARTS.items()}
        for name, width in ("words", steps), ("labels", steps), ("weights", steps), ("features", features):
            parts[name] = parts[name].reshape(-1, width)
        return cls(**parts)

    @classmethod
    def draw(cls, random, count, steps, words, features):
        """Sentences of any length; what is behind their ends has weight 0."""
        lengths = random.integers(2, steps + 1, count)
        lengths[0] = steps
        inside = numpy.arange(steps) < lengths[:, None]
        tokens = random.integers(0, words, (count, steps)) // 3  # a third of them, so that they come again
        return cls(words=numpy.where(inside, tokens, -1), labels=numpy.where(inside, 2 * tokens + 1, 0), weights=inside,
                   features=random.normal(size=(count, features)), samples=random.permutation(10 * count)[:count])

    def write(self, directory):
        directory.mkdir(exist_ok=True)
        for name in self.PARTS:
            getattr(self, name).tofile(directory / name)

    def part(self, first, count):
        return Batches(**{name: getattr(self, name)[first:first + count] for name in self.PARTS})


class Decoder:
    """The graph, and a session of one thread with weights that are drawn, or set by load()."""

    def __init__(self, words, units, steps, features, bound=0.08):
        self.words, self.units, self.steps = words, units, steps
        self.graph = tf.Graph()
        with self.graph.as_default():
            v1.set_random_seed(5)
            draw = v1.random_uniform_initializer(-bound, bound)
            self.image = v1.get_variable("image_embedding/weights", [features, units], tf.float32, draw)
            self.map = v1.get_variable("seq_embedding/map", [words, units], tf.float32, draw)
            self.kernel = v1.get_variable("lstm/basic_lstm_cell/kernel", [2 * units, 4 * units], tf.float32, draw)
            self.bias = v1.get_variable("lstm/basic_lstm_cell/bias", [4 * units], tf.float32, draw)
            self.out = v1.get_variable("logits/weights", [units, words], tf.float32, draw)
            self.out_bias = v1.get_variable("logits/biases", [words], tf.float32, draw)
            self.variables = v1.trainable_variables()
            self.feeds = {"words": v1.placeholder(tf.int32, [None, steps]), "labels": v1.placeholder(tf.int32, [None, steps]),
                          "weights": v1.placeholder(tf.float32, [None, steps]),
                          "features": v1.placeholder(tf.float32, [None, features])}
            # Of what the cell reads and gives, at the image and at each word; the first one given is not used.
            self.kept = [v1.placeholder(tf.float32, [None, steps + 1 - given, units]) for given in (0, 1)]
            self.rate, self.clip = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
            self.logits, (self.cross_entropy, _) = self.tell(False)
            _, (self.sum, self.loss) = self.tell(True)
            gradients = v1.gradients(self.loss, self.variables)
            self.slices = gradients[self.variables.index(self.map)]
            self.gradients = list(map(tf.convert_to_tensor, gradients))
            clipped, self.norm = tf.clip_by_global_norm(self.gradients, self.clip)
            self.norm_of_slices = tf.linalg.global_norm([*self.gradients[:1], self.slices, *self.gradients[2:]])
            self.update = v1.train.GradientDescentOptimizer(self.rate).apply_gradients(zip(clipped, self.variables))
            self.search_graph()
            v1.train.get_or_create_global_step()
            self.session = v1.Session(graph=self.graph, config=v1.ConfigProto(
                intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
            self.session.run(v1.global_variables_initializer())
            self.saver = v1.train.Saver()

    def cell(self, x, c, h):
        i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), self.kernel) + self.bias, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return c, tf.tanh(c) * tf.sigmoid(o)

    def tell(self, training):
        """Logits of each word (n, steps, words); the cross entropy as a sum and as the mean over what has a weight."""
        image = tf.matmul(self.feeds["features"], self.image)
        words = tf.nn.embedding_lookup(self.map, tf.maximum(self.feeds["words"], 0))
        reads = tf.concat([image[:, None], words], 1)
        if training:
            reads = reads * self.kept[0] / KEEP
        c = h = tf.zeros_like(image)
        given = []
        for step in range(self.steps + 1):
            c, h = self.cell(reads[:, step], c, h)
            given.append(h)
        given = tf.stack(given[1:], 1)
        if training:
            given = given * self.kept[1] / KEEP
        logits = tf.tensordot(given, self.out, 1) + self.out_bias
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.maximum(self.feeds["labels"], 0), logits=logits)
        total = tf.reduce_sum(each * self.feeds["weights"])
        return logits, (total, total / tf.reduce_sum(self.feeds["weights"]))

    def search_graph(self):
        """One step of a search, from a state and a word; and the state after the image."""
        self.state = v1.placeholder(tf.float32, [2, None, self.units])
        self.word = v1.placeholder(tf.int32, [None])
        image = tf.matmul(self.feeds["features"], self.image)
        self.first = tf.stack(self.cell(image, tf.zeros_like(image), tf.zeros_like(image)))
        c, h = self.cell(tf.nn.embedding_lookup(self.map, self.word), self.state[0], self.state[1])
        self.next = tf.stack([c, h]), tf.nn.log_softmax(tf.matmul(h, self.out) + self.out_bias)

    def save(self, prefix):
        with self.graph.as_default():
            self.saver.save(self.session, str(prefix), write_meta_graph=False)

    def load(self, prefix):
        reader = tf.train.load_checkpoint(str(prefix))
        with self.graph.as_default():
            for variable in self.variables:
                variable.load(reader.get_tensor(variable.op.name), self.session)

    def feed(self, batches, kept=None):
        feed = {place: getattr(batches, name) for name, place in self.feeds.items()}
        for place, mask in zip(self.kept, kept or ()):
            feed[place] = mask
        return feed

    def perplexity(self, batches):
        return math.exp(self.session.run(self.cross_entropy, self.feed(batches)) / batches.weights.sum())

    def sentences(self, features, beams, longest, power, start, end):
        """[(score, log-probability, words)] of one image, the best first."""
        state = self.session.run(self.first, {self.feeds["features"]: features[None]})[:, 0]
        partial, complete = [(0.0, 0.0, [start], state)], []
        for _ in range(longest - 1):
            (states, logs) = self.session.run(self.next, {self.state: numpy.stack([p[3] for p in partial], 1),
                                                          self.word: [p[2][-1] for p in partial]})
            extended = []
            for row, (_, log_probability, words, _) in enumerate(partial):
                for word in numpy.argsort(-logs[row], kind="stable")[:beams]:
                    if logs[row][word] < math.log(1e-12):
                        continue
                    whole, total = [*words, int(word)], log_probability + float(logs[row][word])
                    if word == end:
                        complete.append((total / len(whole) ** power, total, whole, None))
                    else:
                        extended.append((total, total, whole, states[:, row]))
            best = sorted(extended, key=lambda b: -b[0])[:beams]
            complete = sorted(complete, key=lambda b: -b[0])[:beams]
            if not best:
                break
            partial = best
        return [sentence[:3] for sentence in complete or partial]
