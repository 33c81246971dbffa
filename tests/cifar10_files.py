"""CIFAR-10 in the format of its binary version, small."""
import random


def write_cifar(directory, records=60):
    """The files of CIFAR-10: five of training, one of test. Noise, so that no two pixels of a pooling window
    are nearly equal as they are in smooth images: there a rounding difference picks another one."""
    directory.mkdir(parents=True, exist_ok=True)
    draw = random.Random(5)
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        (directory / name).write_bytes(b"".join(bytes([draw.randrange(10)]) + draw.randbytes(3072)
                                                for _ in range(records)))
    return directory
