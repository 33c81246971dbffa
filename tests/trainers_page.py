"""The command lines of docs/trainers.md, for the tests that run them."""
import pathlib
import re
import shlex

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/trainers.md"
COMMANDS = {title: shlex.split(command.replace("\\\n", " ")) for title, command in
            re.findall(r"^## (.*)\n(?:(?!^## |^```).*\n)*```sh\n(evaluator .*(?:\n .*)*)\n```$", PAGE.read_text(), re.M)}


def options(title, step_scale=None):
    """What stands behind directories and program in the command below that heading; step_scale: instead of its own."""
    words = COMMANDS[title]
    assert words[1::2][:3] == ["--checkpoint-dir", "--eval-dir", "--exec"], title
    found = words[7:]
    if step_scale and "--step-scale" in found:
        found[found.index("--step-scale") + 1] = str(step_scale)
    return found
