"""The texts of --data text without --data-dir, as a test counts them."""
import pathlib
import re

LICENSES = pathlib.Path("/usr/share/common-licenses")


def words_of_test_part():
    """The words of the test part: every tenth block of ten lines of each file, without second names."""
    words = []
    for path in sorted(LICENSES.iterdir()):
        lines = [] if path.is_symlink() else path.read_text().split("\n")  # which form feeds do not end
        for first in range(90, len(lines) - 1, 100):
            text = "\n".join(lines[first:first + 10]).lower()
            words += [*re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*|[^\sa-z0-9]", text), "<end>"]
    return words
