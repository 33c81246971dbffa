"""A log with a value of every kind that libeventlog writes, by event_kinds.c, and the files that are in it as they are."""
import io
import os
import pathlib
import subprocess
import wave

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
# A picture of 3 x 2 pixels whose contents do not matter.
GIF = bytes.fromhex("474946383961030002008001000000ffffffff2c00000000030002000002028451003b")


def wav():
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(range(200)))
    return out.getvalue()


def write(directory):
    """The runs kinds, trial-0 and trial-1 below directory; returns it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    gif, clip = directory.with_name("a.gif"), directory.with_name("a.wav")
    gif.write_bytes(GIF)
    clip.write_bytes(wav())
    subprocess.run([BUILD / "tests/programs/event_kinds", directory, gif, clip], check=True)
    return directory
