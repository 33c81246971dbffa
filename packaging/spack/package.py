# The recipe of evalboard for Spack 1.0 or later (package API v2), https://spack.readthedocs.io: a copy of it belongs in
# packages/evalboard/ of a repository of recipes, and the archive that `make dist` writes in the directory from which spack
# is called:
#
#   spack repo create recipes mine && spack repo add recipes/spack_repo/mine
#   install -D packaging/spack/package.py recipes/spack_repo/mine/packages/evalboard/package.py
#   spack install --no-checksum evalboard
#   spack install --no-checksum evalboard~mpi~checkpoints    # the library and the programs for event files alone
#
# In a checkout, without an archive: spack dev-build evalboard@0.1.0
import os

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Evalboard(MakefilePackage):
    """Distributed training, evaluation of every checkpoint, and event files for TensorBoard: the programs trainer,
    evaluator, checkpoint, dataset, eventlog and eventlog-server, and the C library libeventlog."""

    manual_download = True

    license("MIT")

    version("0.1.0")

    variant("mpi", default=True, description="Build trainer and libeventlog_mpi")
    variant("checkpoints", default=True, description="Build checkpoint, evaluator and dataset, and trainer with +mpi")
    variant("onednn", default=True, when="+checkpoints", description="Convolutions by oneDNN")
    variant("server", default=True, description="Build eventlog-server, a data server for TensorBoard")
    variant("sqlite", default=True, description="Build eventlog export --format=sqlite")
    variant("zstd", default=True, description="Read event files compressed with zstd")
    variant("deflate", default=True, description="Pack images by libdeflate, faster than zlib")
    variant("watch", default=True, description="Build eventlog watch, a live page in the terminal")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("zlib-api")
    depends_on("libpng")
    depends_on("openmpi", when="+mpi")
    # Loaded by name when a network is made: a BLAS of another name is not found.
    depends_on("openblas", when="+checkpoints")
    depends_on("onednn", when="+onednn")
    depends_on("libjpeg-turbo", when="+checkpoints")
    depends_on("protobuf-c", when="+checkpoints")
    depends_on("jansson", when="+checkpoints")
    depends_on("nghttp2", when="+server")
    depends_on("sqlite", when="+sqlite")
    depends_on("zstd", when="+zstd")
    depends_on("libdeflate", when="+deflate")
    depends_on("ncurses", when="+watch")

    conflicts("platform=darwin", msg="evalboard uses inotify, futexes and /proc")
    conflicts("platform=windows", msg="evalboard uses inotify, futexes and /proc")

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/evalboard-{version}.tar.gz"

    @property
    def parts(self):
        """The parts of the Makefile that are left out, whatever the machine has beside Spack's packages."""
        found = {
            "MPI": "+mpi",
            "OPENBLAS": "+checkpoints",
            "JPEG": "+checkpoints",
            "PROTOBUF": "+checkpoints",
            "JANSSON": "+checkpoints",
            "ONEDNN": "+onednn",
            "SQLITE": "+sqlite",
            "ZSTD": "+zstd",
            "DEFLATE": "+deflate",
            "NCURSES": "+watch",
            "NGHTTP2": "+server",
        }
        # libinotifytools is no package of Spack: evaluator looks for checkpoints every second.
        return ["INOTIFY=0"] + [f"{part}=0" for part, variant in found.items() if not self.spec.satisfies(variant)]

    def flag_handler(self, name, flags):
        # What is loaded late is found as what is linked.
        if name == "ldflags":
            for package in ("openblas", "onednn"):
                if package in self.spec:
                    flags.append(f"-Wl,-rpath,{self.spec[package].prefix.lib}")
        return (flags, None, None)

    @property
    def build_targets(self):
        return ["all", "documents", f"PREFIX={self.prefix}", *self.parts]

    @property
    def install_targets(self):
        return ["install", f"PREFIX={self.prefix}", *self.parts]

    def check(self):
        """`make check` installs Debian's packages; this much needs none."""
        with working_dir(self.build_directory):
            eventlog = Executable("build/bin/eventlog")
            eventlog("write", "--dir", "build/smoke", "--step", "1", "loss=1")
            eventlog("verify", "--strict", "build/smoke")
