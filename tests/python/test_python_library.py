"""The structs of evalboard._library are laid out as the header has them, and only the library of their version is taken."""
import ctypes
import os
import pathlib
import re
import subprocess

import pytest

import python_package  # noqa: F401

from evalboard import _library

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()


def structs():
    return [struct for struct in vars(_library).values()
            if isinstance(struct, type) and issubclass(struct, ctypes.Structure) and struct is not ctypes.Structure]


def members_in_header():
    """{struct: its members, in their order}"""
    code = re.sub(r"/\*.*?\*/", "", (BUILD / "product/eventlog.h").read_text(), flags=re.S)
    found = {}
    for name, body in re.findall(r"struct (\w+)\s*\{(.*?)\n\};", code, flags=re.S):
        body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)  # a pointer to a function
        found[name] = [member for declaration in body.split(";") if declaration.strip()
                       for member in re.findall(r"(\w+)\s*(?:\[[^\]]*\])?\s*(?=,|$)", declaration.strip())]
    return found


def test_every_struct_is_as_in_the_header(tmp_path):
    names = members_in_header()
    assert len(structs()) == 15
    lines = []
    for struct in structs():
        name = struct.__name__
        assert [field for field, _ in struct._fields_] == names[name], name
        lines.append(f"_Static_assert(sizeof(struct {name}) == {ctypes.sizeof(struct)}, \"{name}\");")
        for field, _ in struct._fields_:
            place = getattr(struct, field)
            lines.append(f"_Static_assert(offsetof(struct {name}, {field}) == {place.offset} && "
                         f"sizeof(((struct {name} *)0)->{field}) == {place.size}, \"{name}.{field}\");")
    (tmp_path / "layout.c").write_text("\n".join(["#include <stddef.h>", "#include <eventlog.h>", *lines, ""]))
    subprocess.run(["cc", "-std=c11", "-fsyntax-only", f"-I{BUILD / 'product'}", tmp_path / "layout.c"], check=True)


def test_only_its_own_version(monkeypatch):
    assert f'"{_library.VERSION}"' in (ROOT / "base/version.h").read_text()
    monkeypatch.setattr(_library, "VERSION", "0.0.9")
    with pytest.raises(ImportError, match="is libeventlog .*, and this package is of 0.0.9; install libeventlog of the same"):
        _library._check_version(_library.lib)
