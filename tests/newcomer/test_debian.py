"""debian/: what a build of the packages would find out late. `dpkg-buildpackage -b -us -uc` itself is too long for a test."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from making import make

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
DEBIAN = ROOT / "debian"
TRIPLE = "x86_64-linux-gnu"
RENAMED = ("trainer", "evaluator", "checkpoint", "dataset")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """debian/tmp as debian/rules fills it."""
    if BUILD != ROOT / "build":
        pytest.fail("make install installs build/")
    tree = tmp_path_factory.mktemp("tmp")
    make("install", f"DESTDIR={tree}", "PREFIX=/usr", f"LIBDIR=/usr/lib/{TRIPLE}")
    subprocess.run(["sh", DEBIAN / "rename-installed", tree / "usr", TRIPLE], check=True)
    (tree / "usr/lib/python3/dist-packages").mkdir(parents=True)
    subprocess.run([sys.executable, "-B", ROOT / "packaging/make_wheel.py", "--version", "0.1.0", "--unpacked",
                    tree / "usr/lib/python3/dist-packages"], check=True)
    return tree


def test_each_file_is_in_one_package(tree):
    """Each pattern of debian/*.install finds something, and each file is found once."""
    places = {}
    for listed in DEBIAN.glob("*.install"):
        for pattern in listed.read_text().split():
            found = list(tree.glob(pattern))
            assert found, f"{listed.name}: {pattern}"
            for place in found:
                for file in [p for p in place.rglob("*") if not p.is_dir() or p.is_symlink()] or [place]:
                    assert places.setdefault(file, listed.name) == listed.name, file
    assert {p for p in tree.rglob("*") if p.is_symlink() or not p.is_dir()} == set(places)


def test_names_do_not_collide(tree):
    usr = tree / "usr"
    assert {p.name for p in (usr / "bin").iterdir()} == {f"evalboard-{name}" for name in RENAMED} | {"eventlog", "eventlog-server"}
    for name in (*RENAMED, "eventlog", "eventlog-server"):
        subprocess.run([usr / "lib/evalboard/bin" / name, "--version"], check=True, stdout=subprocess.DEVNULL)
    wrong = [str(p) for p in (usr / "share").rglob("*") if re.match(rf"_?({'|'.join(RENAMED)})\b", p.name)]
    assert not wrong
    page = (usr / "share/man/man1/evalboard-trainer-plan.1").read_text()
    assert '.TH "EVALBOARD\\-TRAINER\\-PLAN"' in page and "\nevalboard\\-trainer\\-plan \\- " in page
    for name in RENAMED:
        assert f"complete -F _{name} evalboard-{name}\n" in (usr / f"share/bash-completion/completions/evalboard-{name}").read_text()
        assert (usr / f"share/zsh/vendor-completions/_evalboard-{name}").read_text().startswith(f"#compdef evalboard-{name}\n")
        fish = (usr / f"share/fish/vendor_completions.d/evalboard-{name}.fish").read_text()
        assert f"complete -c evalboard-{name} " in fish and f"-c {name}" not in fish


@pytest.mark.parametrize("package", ["evalboard-eventlog", "evalboard-eventlog-mpi"])
def test_pkg_config(tree, package):
    out = subprocess.run(["pkg-config", "--cflags", "--libs", package], check=True, capture_output=True, text=True, env={
        **os.environ, "PKG_CONFIG_PATH": f"{tree}/usr/lib/{TRIPLE}/pkgconfig"}).stdout.split()
    assert "-leventlog" in out and ("-leventlog_mpi" in out) == (package == "evalboard-eventlog-mpi")


def test_control_and_changelog_are_true():
    control = (DEBIAN / "control").read_text()
    wanted = set(make("--eval=show:;@echo $(PACKAGES_build)", "show").split()) - {"gcc", "libc6-dev", "make"}  # which every build has
    depends = re.search(r"^Build-Depends: ((?:.*\n )*.*)", control, re.M)[1]
    assert set(re.sub(r"\(.*?\)", "", depends).replace(",", " ").split()) - {"debhelper-compat", "dh-sequence-python3"} == (
        wanted - {"libopenblas-pthread-dev"} | {"libopenblas-dev"})  # of any variant
    packages = set(re.findall(r"^Package: (.*)", control, re.M))
    assert packages == {"evalboard", "libeventlog0", "libeventlog-dev", "libeventlog-mpi0", "libeventlog-mpi-dev", "python3-evalboard"}
    assert {p.stem for p in DEBIAN.glob("*.install")} == packages
    version = re.search(r'"(.*)"', (ROOT / "base/version.h").read_text())[1]
    assert (DEBIAN / "changelog").read_text().startswith(f"evalboard ({version}) ")
    for library, listed in (("libeventlog0", "symbols.txt"), ("libeventlog-mpi0", "symbols_mpi.txt")):
        nodes = {line.split()[1] for line in (ROOT / "tests/abi" / listed).read_text().splitlines()}
        assert set(re.findall(r"\(symver\)(\S+)", (DEBIAN / f"{library}.symbols").read_text())) == nodes


def test_rules_parse(tmp_path):
    """make reads debian/rules as it is, without debhelper."""
    assert os.access(DEBIAN / "rules", os.X_OK) and shutil.which("dpkg-architecture")
    said = subprocess.run(["make", "-n", "-f", "debian/rules", "override_dh_auto_install"], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0 and "rename-installed debian/tmp/usr" in said.stdout, said.stderr


def test_onednn_is_recommended_by_its_name_here():
    said = subprocess.run(["make", "-n", "-f", "debian/rules", "override_dh_gencontrol"], cwd=ROOT, capture_output=True, text=True)
    package, = re.findall(r"-Vonednn:Package=(\S+)", said.stdout)
    files = subprocess.run(["dpkg-query", "-L", package], capture_output=True, text=True, check=True).stdout
    assert "/libdnnl.so." in files and "${onednn:Package}" in (DEBIAN / "control").read_text()
