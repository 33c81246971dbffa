"""The blocks of a Markdown page, and a run of its commands as a reader would run them: in order, in one shell.

The fence says what a block is:
  sh             commands; `sh needs=MODULE` are left out where Python has no such module, `sh status=N` end with that status
  text           what the block of sh before it prints on standard output
  c, python      a file, whose name is in the comment on its first line
"""
import importlib.util
import re
import subprocess
import typing

import environment
from waiting import DEADLINE

# serves COMMAND...: until the TensorBoard that it starts, on any port, listens.
SERVES = """
serves() {
    "$@" --port=0 >served.txt 2>&1 & server=$!
    until grep -q 'http://' served.txt; do kill -0 $server || { cat served.txt; return 1; }; sleep 0.1; done
    kill $server; wait $server || :
}
"""
TENSORBOARD = r"^((?:\S*/)?tensorboard --logdir [^#\n]*).*"


class Block(typing.NamedTuple):
    place: str  # PAGE:LINE of its fence
    language: str
    needs: str  # None: nothing
    status: int
    text: str

    def runs_here(self):
        return not self.needs or importlib.util.find_spec(self.needs) is not None


def blocks(page):
    """The blocks of that file in order; whatever else a fence says is an error."""
    found, text = [], page.read_text()
    for match in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.M):
        place = f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}"
        fence = re.fullmatch(r"(sh|text|c|python)((?: \w+=\w+)*)", match[1])
        assert fence, f"{place}: a block of '{match[1]}' is not tested"
        words = dict(word.split("=") for word in fence[2].split())
        found.append(Block(place, fence[1], words.pop("needs", None), int(words.pop("status", 0)), match[2]))
        assert not words and (fence[1] == "sh" or not fence[2]), f"{place}: '{match[1]}'"
    return found


def write_files(found, folder):
    """The blocks that are files, into that folder."""
    for block in found:
        if block.language in ("c", "python"):
            name = re.match(r"(?:/\*|#) (\S+)", block.text)
            assert name, f"{block.place}: the first line names no file"
            (folder / name[1]).write_text(block.text)


def script(found, changes=()):
    """One of bash for all blocks of sh; each says its place first. changes: [(pattern, replacement)] for re.sub.

    TensorBoard is only started, and not even that where localhost is missing.
    """
    try:
        environment.require_localhost()
        serves = r"serves \1"
    except RuntimeError:
        serves = ":"
    lines = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT", SERVES]
    for block in found:
        if block.language != "sh" or not block.runs_here():
            continue
        text = block.text
        for pattern, replacement in [(TENSORBOARD, serves), *changes]:
            text = re.sub(pattern, replacement, text, flags=re.M)
        if block.status:
            text = f"set +e; ( set -e\n{text}); ended=$?; set -e\n" \
                   f"[ $ended = {block.status} ] || {{ echo ended with $ended, not {block.status}; exit 1; }}\n"
        lines += [f"echo '### {block.place}'", text]
    return "\n".join(lines)


def run(page, folder, variables, before=""):
    """Run the page's commands in that folder, after the shell commands `before`, and hold what they print to the page.

    variables: the environment. Returns the places of the blocks that were left out.
    """
    found = blocks(page)
    write_files(found, folder)
    done = subprocess.run(["bash", "-c", f"set -e\n{before}\n{script(found)}"], cwd=folder, env=variables,
                          capture_output=True, text=True, timeout=10 * DEADLINE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    printed = dict(re.findall(r"^### (\S+)\n((?:(?!### ).*\n)*)", done.stdout, re.M))
    for command, block in zip(found, found[1:]):
        if block.language == "text" and command.runs_here():
            assert command.language == "sh", f"{block.place}: no command before it"
            assert printed[command.place] == block.text, f"{block.place}: what {command.place} prints"
    return [block.place for block in found if block.language == "sh" and not block.runs_here()]
