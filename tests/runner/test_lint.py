"""tests/lint.py: a small tree that keeps all house rules, and each rule broken in it once."""
import os
import pathlib
import subprocess
import sys

import pytest

LINT = pathlib.Path(__file__).resolve().parents[1] / "lint.py"
GUARD = "#ifndef {0}\n#define {0}\n\n{1}\n#endif\n"


def header(name, text, *includes):
    lines = "".join(f'#include "{other}"\n' for other in includes)
    return GUARD.format(name.upper().replace("/", "_").replace(".", "_"), f"{lines}{text}\n")


def source(*includes, text="int x(void)\n{\n    return 0;\n}\n"):
    return "".join(f'#include "{other}"\n' for other in includes) + "\n" + text


SOUND = {
    "base/error.h": header("base/error.h", "int error_get(void);"),
    "base/error.c": source("base/error.h"),
    "base/table.h": header("base/table.h", "struct table;\nint table_new(void);"),
    "base/table.c": source("base/table.h"),
    "base/table_write.h": header("base/table_write.h", "int table_write(struct table *t);", "base/table.h"),
    "base/table_write.c": source("base/table_write.h", text="struct table {\n    int a;\n};\n"),
    "base/table_other.c": source(text="struct table {\n    int b;\n};\n"),  # a form of which one is built
    "base/inside.h": header("base/inside.h", "int inside(void);", "base/error.h"),
    "base/file.h": header("base/file.h", "int file_get(void);"),
    "base/file.c": source("base/file.h", "base/inside.h", text="static int file_own(void)\n{\n    return 0;\n}\n"),
    "checkpoint/entry.h": header("checkpoint/entry.h", "int entry_get(void);", "base/error.h"),
    "checkpoint/entry.c": source("checkpoint/entry.h", "base/file.h"),
    "tests/test_a.py": "import helper\n",
}
MEMORY = 'int f(struct error *e)\n{\n    return error_set(e, ERR_NOMEM,\n                     "%s: no memory for it", "a");\n}\n'
LIMIT = 'int f(struct error *e)\n{\n    return error_set(e, ERR_NOMEM, "a batch needs %d MiB of memory", 1);\n}\n'


def lint(directory, files):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([sys.executable, LINT, "--cc", os.environ.get("CC", "cc")], cwd=directory, capture_output=True,
                          text=True)
    assert done.returncode == (1 if done.stderr else 0), done.stdout
    return done.stderr.splitlines(), done.stdout.splitlines()


@pytest.mark.parametrize("files, findings", [
    ({}, []),
    ({"base/limit.c": LIMIT}, []),
    ({"base/error.c": source("base/error.h", text=MEMORY)}, []),
    ({"base/up.c": source("checkpoint/entry.h")}, ["base/up.c:1: base/ may not include checkpoint/entry.h"]),
    ({"base/late.h": header("base/late.h", ""), "base/late.c": source("base/file.h", "base/late.h")},
     ["base/late.c: includes its own header first"]),
    ({"base/png.c": "#include <png.h>\n"}, ["base/png.c:1: <png.h> belongs to dataset/stream/ only"]),
    ({"base/memory.c": MEMORY}, ["base/memory.c:3: want of memory is said by error_memory()"]),
    ({"base/error.c": source("base/error.h", "base/file.h")},
     ["base/error.c: needs base/file, and is needed there; which can be read first?"]),
    ({"base/table.c": source("base/table.h", "base/table_write.h")},
     ["base/table.c: needs base/table_write, and is needed there; which can be read first?"]),
    ({"base/error.c": source("base/error.h", "checkpoint/entry.h"), "checkpoint/entry.h": header("checkpoint/entry.h", "")},
     ["base/error.c:2: base/ may not include checkpoint/entry.h",
      "base/error.c: needs base/file, checkpoint/entry, and is needed there; which can be read first?"]),
    ({"base/wide.c": "/*" + 119 * "x" + "*/\n"}, ["base/wide.c:1: line of 123 columns"]),
    ({"base/blank.c": "int a; \n"}, ["base/blank.c:1: tab or blank at the end"]),
    ({"tests/test_b.py": "import os\nfrom test_a import x\n"}, ["tests/test_b.py:2: a test imports a test"]),
    ({"tests/base/test_a.py": ""}, ["tests/test_a.py: pytest takes it for tests/base/test_a.py; give it a name of its own"]),
])
def test_rule(tmp_path, files, findings):
    assert lint(tmp_path, SOUND | files)[0] == [f"lint: {finding}" for finding in findings]


def test_a_long_function_is_a_remark(tmp_path):
    findings, said = lint(tmp_path, SOUND | {"base/long.c": "int f(void)\n{\n" + 81 * "    g();\n" + "}\n"})
    assert not findings and said[0] == "lint: remark: base/long.c:2: function of 81 lines; is there a seam?"


def test_a_header_that_needs_another_first(tmp_path):
    found, _ = lint(tmp_path, SOUND | {"base/alone.h": header("base/alone.h", "size_t f(void);")})
    assert found[0] == "lint: base/alone.h: does not compile alone" and "size_t" in "\n".join(found)


def test_layout(tmp_path):
    files = {".clang-format": (LINT.parents[1] / ".clang-format").read_text(),
             "base/one.c": "int one(void)\n{\n    return 1;\n}\n",
             "tests/base/test_one.c": "int one(void) { return 1; }\n"}
    assert lint(tmp_path, files)[0] == ["lint: tests/base/test_one.c: not laid out as .clang-format says; `make format` does it"]
    subprocess.run([sys.executable, LINT, "--format"], cwd=tmp_path, check=True)
    assert (tmp_path / "tests/base/test_one.c").read_text() == files["base/one.c"]
    assert lint(tmp_path, {})[0] == []
