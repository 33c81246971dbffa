"""The structs of evalboard._library are laid out as the library says."""
import ctypes

import pytest

import python_package  # noqa: F401

from evalboard import _library


def test_every_struct_is_as_told():
    made = [struct for struct in vars(_library).values()
            if isinstance(struct, type) and issubclass(struct, ctypes.Structure) and struct is not ctypes.Structure]
    assert len(made) > 12
    for struct in made:
        (_, _, size, _), *members = _library._LAYOUT[struct.__name__]
        assert ctypes.sizeof(struct) == size
        assert [(name, getattr(struct, name).offset, getattr(struct, name).size) for name, _, _, _ in members] == \
               [member[:3] for member in members]


def test_a_later_library(monkeypatch):
    """With an option out of what is reserved, and with members at the end; a layout that ctypes would not make is refused."""
    layout = {"later": [("", 0, 48, "s"), ("count", 0, 4, "i"), ("text", 8, 8, "t"), ("added", 16, 8, "f"),
                        ("reserved", 24, 16, "r")],
              "strange": [("", 0, 16, "s"), ("count", 4, 4, "i")]}
    monkeypatch.setattr(_library, "_LAYOUT", layout)
    later = _library._struct("later")
    assert ctypes.sizeof(later) == 48 and later.added.offset == 16 and later().added == 0
    with pytest.raises(ImportError, match="strange.* count at 4"):
        _library._struct("strange")
