"""The recipe for Spack and Containerfile name what the Makefile has: stand-ins for Spack's modules, where package API v2 has
them, run the recipe."""
import pathlib
import re
import subprocess
import os
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]


def value(variable):
    own = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(["make", "-s", f"--eval=show:;@echo $({variable})", "show"], cwd=ROOT, env=own, check=True, capture_output=True,
                          text=True).stdout.split()


def recipe():
    """The class of the recipe, its variants and what it depends on: {name: condition}."""
    variants, depends = {}, {}
    module = types.ModuleType("spack.package")
    module.license = module.version = module.conflicts = lambda *a, **k: None
    module.variant = lambda name, default, description, when=None: variants.update({name: when})
    module.depends_on = lambda spec, type=None, when=None: depends.update({re.split("[@~+]", spec)[0]: when})
    makefile = types.ModuleType("spack_repo.builtin.build_systems.makefile")
    makefile.MakefilePackage = object
    module.__all__ = ["license", "version", "conflicts", "variant", "depends_on"]
    made = {"spack": types.ModuleType("spack"), "spack.package": module, makefile.__name__: makefile}
    for parent in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        made[parent] = types.ModuleType(parent)
    sys.modules.update(made)
    names = {}
    try:
        exec(compile((ROOT / "packaging/spack/package.py").read_text(), "package.py", "exec"), names)
    finally:
        for name in made:
            del sys.modules[name]
    return names["Evalboard"], variants, depends


class Spec(dict):
    """Only these variants are on."""

    def __init__(self, on):
        super().__init__()
        self.on = {f"+{name}" for name in on}

    def satisfies(self, variant):
        return variant in self.on


def parts(on):
    package = recipe()[0]()
    package.spec, package.prefix = Spec(on), "/prefix"
    return set(package.parts)


def test_spack_knows_every_part():
    _, variants, depends = recipe()
    assert parts(variants) == {"INOTIFY=0"}
    assert parts(()) == {f"{part}=0" for part in value("PARTS") if part != "PYTHON"}
    conditions = {when for when in depends.values() if when}
    assert conditions == {f"+{name}" for name in variants}, "each variant brings a library"
    version = re.search(r'"(.*)"', (ROOT / "base/version.h").read_text())[1]
    assert f'version("{version}")' in (ROOT / "packaging/spack/package.py").read_text()


def test_spack_targets():
    package = recipe()[0]()
    package.spec, package.prefix = Spec(["mpi"]), "/prefix"
    assert package.install_targets[:2] == ["install", "PREFIX=/prefix"] and "MPI=0" not in package.install_targets
    assert package.build_targets[:2] == ["all", "documents"] and set(package.parts) < set(package.build_targets)
    assert package.url_for_version("1").startswith("file:///") and package.url_for_version("1").endswith("/evalboard-1.tar.gz")


def test_container_has_the_libraries():
    """The last stage installs the run-time package of each library that building needs."""
    last = (ROOT / "Containerfile").read_text().rpartition("\nFROM ")[2]
    installed = set(re.search(r"install -y --no-install-recommends((?:.*\\\n)+?.*&&)", last)[1].replace("\\", " ").split())
    of = {"zlib1g-dev": "zlib1g", "libpng-dev": "libpng16-16", "libjpeg62-turbo-dev": "libjpeg62-turbo", "libprotobuf-c-dev": "libprotobuf-c1",
          "libjansson-dev": "libjansson4", "libopenblas-pthread-dev": "libopenblas0-pthread", "libdnnl-dev": "libdnnl2",
          "libinotifytools0-dev": "libinotifytools0", "libopenmpi-dev": "openmpi-bin", "libsqlite3-dev": "libsqlite3-0",
          "libncurses-dev": "libncursesw6", "libzstd-dev": "libzstd1", "libdeflate-dev": "libdeflate0", "libnghttp2-dev": "libnghttp2-14"}
    assert {name for name in value("PACKAGES_build") if name.endswith("-dev")} - {"libc6-dev"} == set(of)
    assert set(of.values()) <= installed
