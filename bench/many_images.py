"""200,000 small images, read from a folder tree of PNG files while a small net trains on them once: how long the training waits
for input, and how much memory it takes. The kernel refuses it more than 512 MiB to write on (prlimit --data).

The images are those of CIFAR-10, mirrored and turned, so no two files are alike.
"""
import json
import pathlib
import resource
import shutil
import struct
import subprocess
import zlib

import programs

MEMORY = 512 << 20
SIDE, CLASSES, BATCH = 32, 10, 64
MODEL = """\
convolution conv1/weights channels=16 size=5 padding=same
bias conv1/biases
relu
max_pool size=2
convolution conv2/weights channels=32 size=5 padding=same
bias conv2/biases
relu
max_pool size=2
dense full/weights outputs=10
bias full/biases
cross_entropy
transform unit
optimizer momentum
learning_rate 0.01
"""


def png(rows):
    """rows: 32 of 96 bytes"""
    def part(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
            part(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 1)) + part(b"IEND", b""))


def variants(record):
    """The image of a record of CIFAR-10, mirrored, upside down, and both."""
    pixels = bytes(byte for pixel in zip(record[1:1025], record[1025:2049], record[2049:]) for byte in pixel)
    rows = [pixels[3 * SIDE * y:3 * SIDE * (y + 1)] for y in range(SIDE)]
    mirrored = [b"".join(row[3 * x:3 * x + 3] for x in reversed(range(SIDE))) for row in rows]
    return rows, mirrored, rows[::-1], mirrored[::-1]


def make_tree(directory, data, count):
    """train/CLASS/NUMBER.png, count of them, a multiple of 4; made once."""
    if (directory / "made").exists() and (directory / "made").read_text() == f"{data} {count}":
        return
    programs.say(f"many_images: writing {count} files to {directory}")
    shutil.rmtree(directory, ignore_errors=True)
    for name in range(CLASSES):
        (directory / "train" / str(name)).mkdir(parents=True)
    done = 0
    for batch in range(1, 6):
        content = (data / f"data_batch_{batch}.bin").read_bytes()
        for at in range(0, min(len(content), 3073 * ((count - done) // 4)), 3073):
            for rows in variants(content[at:at + 3073]):
                (directory / "train" / str(content[at]) / f"{done:06}.png").write_bytes(png(rows))
                done += 1
        programs.say(f"many_images: {done} of {count} files")
    if done < count:
        raise programs.Missing(f"{data} has images for {done} files only")
    (directory / "made").write_text(f"{data} {count}")


def run(options):
    data, noise = programs.cifar10(options.cifar10_dir, options.build)
    tree = pathlib.Path(options.build) / "bench" / "many-images"
    make_tree(tree, data, options.images)
    model = tree / "small.model"
    model.write_text(MODEL)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(["prlimit", f"--data={MEMORY}", programs.program(options.build, "trainer"), "--model", model, "--data", "folder",
                          "--data-dir", tree, "--batch-size", str(BATCH), "--max-steps", str(options.images // BATCH), "--json",
                          "--log-every", "500"], capture_output=True, text=True, env=programs.ENVIRONMENT)
    if run.returncode:
        raise RuntimeError(f"the trainer ended with {run.returncode}: {run.stderr[-500:]}")
    after, summary = resource.getrusage(resource.RUSAGE_CHILDREN), json.loads(run.stdout)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows = [(f"{options.images} PNG files of {SIDE}x{SIDE}{', ' + noise if noise else ''}",
             f"{1e3 * summary['first_batch_seconds']:.0f}", f"{100 * summary['input_waiting_share_later']:.2f} %", f"{after.ru_maxrss / 1024:.0f}", f"{MEMORY >> 20}",
             f"{summary['steps'] * BATCH / summary['seconds']:.0f}", f"{seconds * 1e6 / options.images:.0f}")]
    print("\nsmall images from disk")
    programs.table(("", "ms for the first batch", "waits for input then", "MiB of memory at most", "allowed", "images/s", "us of processor an image"), rows)
    return rows
