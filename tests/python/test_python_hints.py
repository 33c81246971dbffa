"""Every public function and method has type hints, which a checker finds, and which can be evaluated."""
import inspect
import typing

import pytest

import python_package  # noqa: F401

pytest.importorskip("numpy")

import evalboard  # noqa: E402
from evalboard import tensorboardX  # noqa: E402


def callables():
    """(name, function) of what users call."""
    for module in evalboard, evalboard.checkpoint, evalboard.summary, tensorboardX:
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            thing = getattr(module, name)
            if inspect.isclass(thing) and thing.__module__.startswith("evalboard"):
                for method, function in vars(thing).items():
                    function = getattr(function, "fget", None) or getattr(function, "__wrapped__", function)
                    if inspect.isfunction(function) and function.__module__.startswith("evalboard") and (
                            method == "__init__" or not method.startswith("_")):
                        yield f"{module.__name__}.{name}.{method}", function
            elif inspect.isfunction(thing) and thing.__module__.startswith("evalboard"):
                yield f"{module.__name__}.{name}", thing


def test_hints():
    without, seen = [], 0
    for name, function in callables():
        signature = inspect.signature(function)
        without += [f"{name}({p.name})" for p in signature.parameters.values() if p.name != "self" and p.annotation is p.empty]
        without += [f"{name}() ->"] if signature.return_annotation is signature.empty else []
        seen += 1
    assert not without and seen > 100


def test_exports():
    """The list that checkers read is what the package finds, and names that hints use are there when they are evaluated."""
    assert evalboard.__all__ == sorted([*evalboard._MODULE_OF, *evalboard._SUBMODULES])
    assert typing.get_type_hints(evalboard.checkpoint.save)["return"] is type(None)
