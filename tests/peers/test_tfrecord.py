"""TFRecord files that TensorFlow wrote, as our reader has them: against TensorFlow's own reading."""
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
tf = pytest.importorskip("tensorflow")

TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")) / "tests" / "peers" / "model_tool"
KEYS = {"image": "image/encoded", "label": "image/class/label", "height": "image/height", "width": "image/width",
        "channels": "image/channels", "format": "image/format"}


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value if isinstance(value, list) else [value]))


def write(path, samples, keys):
    with tf.io.TFRecordWriter(str(path)) as file:
        for sample in samples:
            features = {keys.get(name, name): feature(value) for name, value in sample.items()}
            features["image/object/bbox/xmin"] = tf.train.Feature(float_list=tf.train.FloatList(value=[0.25, 0.5]))
            features["image/object/class/text"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x" * 700, b""]))
            example = tf.train.Example(features=tf.train.Features(feature=features))
            file.write(example.SerializeToString())


def pictures(count, height, width):
    y, x = numpy.mgrid[:height, :width]
    base = numpy.stack([120 + 100 * numpy.sin(x / 5 + c) * numpy.cos(y / (5 + c)) for c in range(3)], -1)
    random = numpy.random.default_rng(height)
    return [numpy.clip(base + random.normal(0, 12, base.shape), 0, 255).astype("uint8") for _ in range(count)]


def ours(directory, count, tmp_path, keys=None, size=None):
    environment = {**os.environ, **({"EXAMPLE_KEYS": keys} if keys else {}), **({"IMAGE_SIZE": size} if size else {})}
    subprocess.run([TOOL, "transform", "unit", "tfrecord", directory, "0", str(count), tmp_path / "out"], check=True,
                   env=environment)
    return numpy.rint(numpy.fromfile(tmp_path / "out", "float32") * 255).astype("uint8").reshape(count, -1)


@pytest.mark.parametrize("kind", ["png", "jpeg", "raw"])
def test_as_tensorflow_reads_it(kind, tmp_path):
    encode = {"png": tf.io.encode_png, "jpeg": tf.io.encode_jpeg, "raw": None}[kind]
    images, place = pictures(12, 40, 56), tmp_path / "data"
    place.mkdir()
    samples = [{"image": encode(image).numpy() if encode else image.tobytes(), "format": kind.encode(), "label": i % 5 + 1,
                "height": 40, "width": 56, "channels": 3} for i, image in enumerate(images)]
    for shard in range(3):
        write(place / f"test-{shard:05}-of-00003", samples[shard * 4:shard * 4 + 4], KEYS)
    files = tf.data.TFRecordDataset(sorted(map(str, place.iterdir())))
    wanted = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
    theirs = [tf.io.parse_single_example(record, wanted)["image/encoded"] for record in files]
    decode = {"png": tf.io.decode_png, "raw": lambda x: tf.io.decode_raw(x, tf.uint8),
              "jpeg": lambda x: tf.io.decode_jpeg(x, dct_method="INTEGER_ACCURATE")}[kind]
    theirs = numpy.stack([decode(x).numpy().reshape(-1) for x in theirs])
    assert numpy.array_equal(ours(place, 12, tmp_path), theirs)


def test_other_keys_and_no_shape(tmp_path):
    """As TensorFlow's example of MNIST writes it: grey pixels, whose size the reader knows."""
    random = numpy.random.default_rng(1)
    images = [random.integers(0, 256, (28, 28), "uint8") for _ in range(5)]
    write(tmp_path / "mnist.tfrecords", [{"image_raw": i.tobytes(), "digit": n} for n, i in enumerate(images)], {})
    have = ours(tmp_path / "mnist.tfrecords", 5, tmp_path, "image=image_raw,label=digit", "28")
    assert numpy.array_equal(have, numpy.stack(images).reshape(5, -1))


def test_damage_that_tensorflow_finds(tmp_path):
    """A bit of the data, of their CRC, of the length or of its CRC: neither reads the record."""
    write(tmp_path / "sound", [{"image": bytes(range(12)), "label": 1, "height": 2, "width": 2}], KEYS)
    sound = (tmp_path / "sound").read_bytes()
    for place in (0, 7, 8, 11, 12, len(sound) // 2, len(sound) - 5, len(sound) - 4, len(sound) - 1):
        damaged = bytearray(sound)
        damaged[place] ^= 4
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError):
            list(tf.data.TFRecordDataset(str(tmp_path / "damaged")))
        run = subprocess.run([TOOL, "transform", "unit", "tfrecord", tmp_path / "damaged", "0", "1", tmp_path / "out"],
                             capture_output=True, text=True)
        assert run.returncode != 0 and "broken record" in run.stderr, (place, run.stderr)
