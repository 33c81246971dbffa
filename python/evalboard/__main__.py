"""python -m evalboard ...: the program `eventlog`; as its first argument `checkpoint`, that program."""
import os
import sys

from evalboard._library import program


def main() -> None:
    name, arguments = "eventlog", sys.argv[1:]
    if arguments[:1] == ["checkpoint"]:
        name, arguments = "checkpoint", arguments[1:]
    try:
        path = program(name)
    except FileNotFoundError as error:
        sys.exit(f"evalboard: {error}")
    sys.stdout.flush()
    os.execv(path, [name, *arguments])


if __name__ == "__main__":
    main()
