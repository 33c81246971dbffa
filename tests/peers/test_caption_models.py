"""show_and_tell against TensorFlow from a checkpoint that TensorFlow wrote: variables, logits, losses, gradients with the
same dropout, 20 steps of clipped gradient descent, beams; and the perplexity of a training with the programs.
"""
import csv
import json
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
safetensors = pytest.importorskip("safetensors.numpy")
import bleu  # noqa: E402
import captions  # noqa: E402
from caption_models import KEEP, Batches, Decoder  # noqa: E402  (needs TensorFlow)

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SEED, STEPS, RATE = 3, 20, 2.0
# words, units, words of a sentence, features; sentences a step; the norm that gradients are clipped to
SIZES = {"show_and_tell": ((12000, 512, 20, 2048), 2, 1.5), "small": ((61, 24, 9, 32), 8, 0.3)}


def run(program, *arguments):
    run = subprocess.run([BUILD / program, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def tool(*arguments):
    return run("tests/peers/caption_tool", *arguments)


def kept_of(batches, directory, count, decoder, seed):
    """What dropout keeps of what the cell reads and of what it gives."""
    masks = []
    for number, steps in enumerate((decoder.steps + 1, decoder.steps)):
        tool("kept", batches, count, number, steps * decoder.units, KEEP, seed, directory / "kept")
        masks.append(numpy.fromfile(directory / "kept", "float32").reshape(-1, steps, decoder.units))
    return masks


def split(vector, rows):
    """Our vector as arrays by name."""
    return {name: vector[offset:offset + int(numpy.prod(shape))].reshape(shape) for name, offset, shape in rows}


def distance(ours, theirs):
    """Largest difference relative to the largest value."""
    return float(numpy.abs(ours - theirs).max() / max(numpy.abs(theirs).max(), 1e-12))


class Peer:
    def __init__(self, name, directory):
        (words, units, steps, features), self.count, self.clip = SIZES[name]
        self.name, self.directory, self.model = name, directory, name
        if name == "small":  # the layers of the built-in model
            text = run("bin/trainer", "describe", "show_and_tell", "--format=model")
            for there, here in (("512", units), ("12000", words), ("20x", f"{steps}x"), ("labels 20", f"labels {steps}"),
                                ("2048", features)):
                text = text.replace(there, str(here))
            self.model = directory / "small.model"
            self.model.write_text(text)
        self.decoder = Decoder(words, units, steps, features, bound=0.08 if name == "show_and_tell" else 0.4)
        self.prefix = directory / "model.ckpt-7"
        self.decoder.save(self.prefix)
        self.batches = Batches.draw(numpy.random.default_rng(2), STEPS * self.count, steps, words, features)
        self.batches.write(directory / "batches")
        self.kept = kept_of(directory / "batches", directory, self.count, self.decoder, SEED)
        lines = map(str.split, run("tests/peers/model_tool", "variables", self.model).splitlines())
        self.rows = [(line[3], int(line[1]), tuple(map(int, line[4:]))) for line in lines]

    def feed(self, step):
        part = slice(step * self.count, (step + 1) * self.count)
        feed = self.decoder.feed(self.batches.part(part.start, self.count), [mask[part] for mask in self.kept])
        return {**feed, self.decoder.rate: RATE, self.decoder.clip: self.clip}


@pytest.fixture(scope="module", params=SIZES)
def peer(request, tmp_path_factory):
    peer = Peer(request.param, tmp_path_factory.mktemp(request.param))
    yield peer
    peer.decoder.session.close()


def test_variables(peer):
    assert {name: shape for name, _, shape in peer.rows} == {
        v.op.name: tuple(v.shape.as_list()) for v in peer.decoder.variables}
    if peer.name == "show_and_tell":
        assert sum(int(numpy.prod(shape)) for _, _, shape in peer.rows) == 15447776


def test_logits(peer):
    few, out = peer.batches.part(0, 4), peer.directory / "logits"
    few.write(peer.directory / "few")
    tool("infer", peer.model, peer.prefix, peer.directory / "few", out)
    theirs = peer.decoder.session.run(peer.decoder.logits, peer.decoder.feed(few))
    ours = numpy.fromfile(out, "float32").reshape(theirs.shape)
    inside = few.weights > 0  # behind the end, theirs reads word 0
    error = distance(ours[inside], theirs[inside])
    print(f"{peer.name}: logits differ by {error:.1e}")
    assert error <= 1e-4


def test_twenty_steps(peer):
    """Losses, the gradient of the first step, weights after the last; and that dropout and clipping took part."""
    decoder, out = peer.decoder, peer.directory / "trained"
    decoder.load(peer.prefix)
    printed = tool("train", peer.model, peer.prefix, peer.directory / "batches", peer.count, RATE, peer.clip, SEED, out)
    losses, norms = zip(*(map(float, line.split()) for line in printed.splitlines()))
    gradient, weights = numpy.split(numpy.fromfile(out, "float32"), 2)
    first = peer.feed(0)
    want = dict(zip((v.op.name for v in decoder.variables), decoder.session.run(decoder.gradients, first)))
    merged, of_slices = decoder.session.run([decoder.norm, decoder.norm_of_slices], first)
    units = peer.batches.weights[:peer.count].sum()
    errors = {name: distance(value / units, want[name]) for name, value in split(gradient, peer.rows).items()}
    print(f"{peer.name}: gradients differ by {max(errors.values()):.1e}; norm {merged:.6f}, of slices {of_slices:.6f}")
    assert max(errors.values()) <= 1e-3, errors
    theirs = [decoder.session.run([decoder.loss, decoder.norm, decoder.update], peer.feed(step)) for step in range(STEPS)]
    trained = dict(zip(want, decoder.session.run(decoder.variables)))
    off = max(abs(ours / row[0] - 1) for ours, row in zip(losses, theirs))
    apart = {name: distance(value, trained[name]) for name, value in split(weights, peer.rows).items()}
    print(f"{peer.name}: losses {losses[0]:.3f} to {losses[-1]:.3f} differ by {off:.1e}, weights by {max(apart.values()):.1e}")
    assert len(losses) == STEPS and off <= 1e-4
    assert norms == pytest.approx([row[1] for row in theirs], rel=1e-3)
    assert max(apart.values()) <= 1e-3, apart
    assert max(norms) > peer.clip
    assert peer.name != "small" or losses[-1] < losses[0] - 1


@pytest.mark.parametrize("beams, power", [(1, 0), (3, 0), (3, 0.7), (16, 1)])
def test_beams(peer, beams, power):
    """The same sentences in the same order, with their log-probabilities."""
    start, end = 1, 2
    peer.decoder.load(peer.prefix)
    few = peer.batches.part(0, 20 if peer.name == "small" else 2)
    few.write(peer.directory / "few")
    found = {}
    for line in tool("tell", peer.model, peer.prefix, peer.directory / "few", beams, 20, power, start, end).splitlines():
        row, score, log_probability, *words = line.split()
        found.setdefault(int(row), []).append((float(score), float(log_probability), list(map(int, words))))
    ended = 0
    for row, features in enumerate(few.features):
        theirs = peer.decoder.sentences(features, beams, 20, power, start, end)
        assert [words for _, _, words in found[row]] == [words for _, _, words in theirs]
        for ours, want in zip(found[row], theirs):
            assert ours[:2] == pytest.approx(want[:2], rel=1e-4)
        ended += theirs[0][2][-1] == end
    print(f"{peer.name}: {ended} of {len(found)} ended")
    assert peer.name != "small" or beams == 1 or ended


# ---- a training with the programs ----------------------------------------------------------------------------------

TRAINED, EVERY, BATCH = 600, 200, 16


def validation(made):
    """The captions of the test part as the decoder reads them, and of each image its captions and features: from COCO's
    JSON, im2txt's vocabulary and the safetensors file, without our programs."""
    words = [line.split()[0] for line in (made / "word_counts.txt").read_text().splitlines()]
    number = {word: k for k, word in enumerate(words)}
    annotations = json.loads((made / "annotations/captions_val.json").read_text())["annotations"]
    table = safetensors.load_file(made / "features/val.safetensors")
    row = {int(image): k for k, image in enumerate(table["image_id"])}
    steps, sentences, images = 18, [], {}
    for one in annotations:
        said = [number.get(word, len(words)) for word in one["caption"].lower().replace(".", " .").replace(",", " ,").split()]
        labels = [*said, number["</S>"]]
        assert len(labels) <= steps
        behind = steps - len(labels)
        features = numpy.zeros(64, "float32")  # the model reads more than there are
        features[:40] = table["features"][row[one["image_id"]]]
        sentences.append(([number["<S>"], *said, *[-1] * behind], labels + [0] * behind, [1] * len(labels) + [0] * behind,
                          features, 0))
        images.setdefault(one["image_id"], ([], features))[0].append(said)
    return Batches(**dict(zip(Batches.PARTS, zip(*sentences)))), images, number


def test_training(tmp_path):
    """From the program's own first weights, on the batches that it reads, with what its dropout keeps: TensorFlow has its
    perplexity at each checkpoint, and tells the same captions, whose BLEU and exact matches are the evaluator's."""
    made, checkpoints, scores = captions.make(tmp_path), tmp_path / "ckpt", tmp_path / "eval"
    common = ["--model", tmp_path / "decoder.model", "--data", "captions", "--data-dir", made]
    run("bin/trainer", *common, "--max-steps", TRAINED, "--save-checkpoint-steps", EVERY, "--checkpoint-dir", checkpoints,
        "--seed", SEED, "--optimizer", "sgd", "--learning-rate", RATE, "--clip-norm", 5, "--batch-size", BATCH)
    run("bin/evaluator", "--data", "captions", "--data-dir", made, "--checkpoint-dir", checkpoints, "--eval-dir", scores,
        "--once", "--tags", "im2txt", "--metrics", "captions")
    table = run("bin/eventlog", "export", "--format=csv", scores)
    ours = {int(row["step"]): float(row["value"]) for row in csv.DictReader(table.splitlines()) if row["tag"] == "Perplexity"}
    (tmp_path / "batches").mkdir()
    tool("batches", made, tmp_path / "decoder.model", BATCH, TRAINED, SEED, tmp_path / "batches")
    decoder, batches = Decoder(64, 24, 18, 64), Batches.read(tmp_path / "batches", 18, 64)
    kept = kept_of(tmp_path / "batches", tmp_path, BATCH, decoder, SEED)
    held, images, number = validation(made)
    decoder.load(checkpoints / "model.ckpt-0")
    theirs = {0: decoder.perplexity(held)}
    for step in range(TRAINED):
        part = slice(step * BATCH, (step + 1) * BATCH)
        feed = decoder.feed(batches.part(part.start, BATCH), [mask[part] for mask in kept])
        decoder.session.run(decoder.update, {**feed, decoder.rate: RATE, decoder.clip: 5})
        if (step + 1) % EVERY == 0:
            theirs[step + 1] = decoder.perplexity(held)
    print("perplexity, ours and theirs: " + ", ".join(f"{s}: {ours[s]:.4f} {theirs[s]:.4f}" for s in theirs))
    assert list(ours) == list(theirs) and theirs[TRAINED] < theirs[0] / 3
    assert list(ours.values()) == pytest.approx(list(theirs.values()), rel=1e-3)  # 1 % is wanted
    start, end = number["<S>"], number["</S>"]
    told = [decoder.sentences(features, 3, 20, 0, start, end)[0][2] for _, features in images.values()]
    told = [[word for word in words[1:] if word != end] for words in told]
    last = json.loads((scores / "evaluations.jsonl").read_text().splitlines()[-1])["metrics"]
    want = bleu.scores(told, [references for references, _ in images.values()])
    print(want)
    assert {name: last[name] for name in want} == pytest.approx(want, abs=1e-6)
