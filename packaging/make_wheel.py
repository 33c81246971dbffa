#!/usr/bin/env python3
"""Makes the wheel of the Python package `evalboard`: python/evalboard with libeventlog.so and the programs in it.

usage: make_wheel.py --version V --out DIRECTORY --library FILE --programs FILE... --licenses FILE...
       make_wheel.py --version V --unpacked DIRECTORY

The second puts the Python files and what pip wants to know below DIRECTORY, for packages of a distribution.

The platform tag is manylinux_2_N of the highest GLIBC_2.N that any file needs, found with objdump; a file that needs another
library than those of glibc is refused. The same files make the same bytes: times are SOURCE_DATE_EPOCH, or 1980, and names
are in order. Nothing but the standard library, objdump and strip is needed.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What every Linux with glibc has, as PEP 600 wants it.
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
         "ld-linux-aarch64.so.1", "libgcc_s.so.1"}
METADATA = """\
Metadata-Version: 2.1
Name: evalboard
Version: {version}
Summary: Event files that TensorBoard shows: written and read by a small C library, at millions of points a second
License: MIT
Keywords: tensorboard,torch,tensorboardX,event files,summary writer
Classifier: Development Status :: 4 - Beta
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Visualization
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Provides-Extra: images
Requires-Dist: pillow; extra == "images"
Description-Content-Type: text/markdown

"""


def dynamic(path):
    """(libraries that the file needs, versions of glibc that it needs as tuples)."""
    words = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED\s+(\S+)", words))
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", words)}
    return needed, versions


def platform_tag(files):
    highest = (2, 17)  # the oldest that installers know
    for path in files:
        needed, versions = dynamic(path)
        if needed - GLIBC:
            sys.exit(f"make_wheel.py: {path} needs {', '.join(sorted(needed - GLIBC))}, which not every system has")
        highest = max(highest, *(v[:2] for v in versions))
    return f"manylinux_{highest[0]}_{highest[1]}_{platform.machine()}"


def stripped(path, directory):
    out = directory / path.name
    subprocess.run(["strip", "--strip-all" if path.suffix == "" else "--strip-unneeded", "-o", out, path], check=True)
    return out


def contents(options, tag, work):
    """{name in the wheel: (bytes, mode)}."""
    found = {}
    for path in sorted((ROOT / "python/evalboard").rglob("*")):
        if path.suffix in (".py", ".typed") or path.name == "py.typed":
            found[str(path.relative_to(ROOT / "python"))] = path.read_bytes(), 0o644
    found["evalboard/lib/libeventlog.so.0"] = stripped(options.shared_library, work).read_bytes(), 0o755
    for program in options.programs:
        found[f"evalboard/bin/{program.name}"] = stripped(program, work).read_bytes(), 0o755
    info = f"evalboard-{options.version}.dist-info"
    description = (ROOT / "python/README.md").read_text()
    found[f"{info}/METADATA"] = (METADATA.format(version=options.version) + description).encode(), 0o644
    found[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: evalboard\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
                              ).encode(), 0o644
    found[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes(), 0o644
    for path in options.licenses:
        found[f"{info}/licenses/{path.parent.name}"] = path.read_bytes(), 0o644
    lines = [f"{name},sha256={digest(data)},{len(data)}\n" for name, (data, _) in sorted(found.items())]
    found[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode(), 0o644
    return found


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def unpack(directory, version):
    """The package as a system has it whose libraries and programs are packages of their own, with what pip wants to know."""
    for path in sorted((ROOT / "python/evalboard").rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            place = directory / path.relative_to(ROOT / "python")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    information = directory / f"evalboard-{version}.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(METADATA.format(version=version) + (ROOT / "python/README.md").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--unpacked", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--library", dest="shared_library", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--licenses", type=pathlib.Path, nargs="*", default=[])
    options = parser.parse_args()
    if options.unpacked:
        unpack(options.unpacked, options.version)
        return
    tag = platform_tag([options.shared_library, *options.programs])
    for old in options.out.glob("evalboard-*.whl"):
        old.unlink()
    wheel = options.out / f"evalboard-{options.version}-py3-none-{tag}.whl"
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    work = options.out / "wheel"
    work.mkdir(exist_ok=True)
    temporary = work / wheel.name
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, mode) in sorted(contents(options, tag, work).items()):
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    temporary.rename(wheel)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
