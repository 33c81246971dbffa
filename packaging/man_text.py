"""Text and code as lines of a man page: man(7), for groff and mandoc, no line longer than 80 bytes."""
import re

LONGEST = 80       # bytes of a line of source
CODE = 72          # columns of a line of code, which is indented by 7
SHOWN = 4          # further columns of indentation of examples between paragraphs


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha") \
        .replace("~", "\\(ti")


def guard(line):
    return "\\&" + line if line[:1] in (".", "'") else line


def wrapped(line):
    """Wraps a line. No piece ends like a sentence, or groff would put two blanks after it."""
    out = []
    for word in line.split(" "):
        if out and len(f"{out[-1]} {word}\\&".encode()) <= LONGEST:
            out[-1] += " " + word
        else:
            out.append(word)
    return [guard(x + ("\\&" if re.search(r"[.?!](\\fR|[\])\"'])*$", x) and i + 1 < len(out) else ""))
            for i, x in enumerate(out)]


def continued(line):
    """One line of output, split in the source if it is too long for one line there."""
    out = []
    for word in re.split(r"(?<= )(?=\S)|(?<=\\:)", guard(line)):
        if out and len((out[-1] + word + "\\c").encode()) <= LONGEST:
            out[-1] += word
        else:
            out.append(word)
    return [x + "\\c" for x in out[:-1]] + out[-1:]


def prose(text):
    """A paragraph: `words` bold, *words* italic; no line begins with a control character."""
    out = []
    for part in re.split(r"(`[^`\n]+`|(?<![\w*(])\*[a-z_]+\*(?!\w))", " ".join(text.split())):
        if len(part) > 2 and part[0] == part[-1] == "`":
            out.append(f"\\fB{escape(part[1:-1])}\\fR")
        elif len(part) > 2 and part[0] == part[-1] == "*":
            out.append(f"\\fI{escape(part[1:-1])}\\fR")
        else:
            out.append(escape(part))
    # Where long words may break.
    return wrapped(re.sub(r"\S{40,}", lambda m: re.sub(r"(?<=[>/|])(?=\w|<)", r"\\:", m.group()), "".join(out)))


def paragraphs(text):
    """[(macro, lines)] of the mark-up of text files and comments: lines that begin with four blanks are shown unchanged,
    "* " begins an item."""
    out, paragraph, example = [], [], []

    def flush():
        if example:
            while not example[-1].strip():
                example.pop()
            out.append((".PP", shown(example)))
            example.clear()
        if paragraph:
            words = "\n".join(paragraph)
            item = words.startswith("* ")
            out.append((".IP \\(bu 2" if item else ".PP", prose(words[2:] if item else words)))
            paragraph.clear()

    for line in text.split("\n"):
        if line.startswith("    "):
            if paragraph:
                flush()
            example.append(line[4:])
        elif not line.strip():
            if example:
                example.append("")
            else:
                flush()
        else:
            if example or line.startswith("* "):
                flush()
            paragraph.append(line)
    flush()
    return out


def body(text):
    return [x for macro, lines in paragraphs(text) for x in [macro, *lines]]


# ---- code -------------------------------------------------------------------------------------------------------------

def shown(lines):
    """Unchanged lines, indented."""
    return [f".RS {SHOWN}", *code(lines), ".RE"]


def code(lines):
    return [".EX", *(x for line in lines for x in continued(escape(line))), ".EE"]


def filled(words, first, rest, separator=" ", columns=CODE):
    """Fills lines of code with words; the first line begins with `first`, the others with `rest`."""
    out, line, fresh = [], first, True
    for word in words:
        if not fresh and len(line + separator + word) > columns:
            out.append((line + separator).rstrip())
            line, fresh = rest, True
        line, fresh = line + ("" if fresh else separator) + word, False
    return [*out, line]


def declaration(text):
    """The declaration of a function, with its arguments wrapped."""
    head, arguments, comment = re.fullmatch(r"(.*?\w\()(.*)\);(?: (/\*.*\*/))?", " ".join(text.split())).groups()
    arguments = arguments.split(", ")
    beside = len(head) + max(map(len, arguments)) < CODE - 1
    lines = filled(arguments, head, " " * len(head), ", ", CODE - 2) if beside else \
        [head, *filled(arguments, " " * 8, " " * 8, ", ", CODE - 2)]
    lines[-1] += ");"
    if comment and len(f"{lines[-1]} {comment}") <= CODE:
        lines[-1] += f" {comment}"
    elif comment:
        lines.insert(0, comment)
    return lines


def definition(text):
    """The definition of a type; a comment that makes the line of a member too long is moved above it."""
    out, lines = [], text.split("\n")
    while lines:
        line = lines.pop(0)
        before, mark, _ = line.partition("/*")
        if not mark:
            indent = line[:len(line) - len(line.lstrip())]
            members = re.fullmatch(r"(.*\{) (.*) \};", line)
            out += [line] if len(line) <= CODE else \
                [members.group(1), *filled(members.group(2).split(), "    ", "    "), "};"] if members else \
                filled(line.split(), indent, indent)
            continue
        if "*/" in line and len(line) <= CODE:
            out.append(line)
            continue
        comment = [line[len(before):]]
        while "*/" not in comment[-1]:
            comment.append(lines.pop(0))
        words = re.sub(r"(?<=\n)\s*\*", "", re.sub(r"^/\*|\s*\*/$", "", "\n".join(comment).rstrip()))
        indent = before[:len(before) - len(before.lstrip())]
        above = [x for part in re.split(r"\n(?= [A-Z]+: )", words)
                 for x in filled(part.split(), indent + " * ", indent + " * ", columns=CODE - 3)]
        above[0] = indent + "/*" + above[0][len(indent) + 2:]
        out += [*above[:-1], above[-1] + " */"] + ([before.rstrip()] if before.strip() else [])
    return out


def shell(text):
    """Lines for the shell, wrapped if too long; the comment after such a line is moved above it."""
    out = []
    for line in re.sub(r"\s*\\\n\s*", " ", text).split("\n"):
        if len(line) <= CODE - SHOWN:
            out.append(line)
            continue
        words, comment = re.fullmatch(r"(\s*\S.*?)(?:\s{2,}(?:# )?(\S.*))?", line).groups()
        pieces = []
        for word in re.findall(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+", words):
            option = pieces and re.fullmatch(r"-[^\s=]*", pieces[-1]) and not word.startswith("-")
            if option or (pieces and pieces[-1].startswith("|")): # stays with its value; what a pipe leads to, whole
                pieces[-1] += " " + word
            else:
                pieces.append(word)
        lines = filled(pieces, "", "    ", columns=CODE - SHOWN - 2)
        out += ([f"# {comment}"] if comment else []) + [f"{x} \\" for x in lines[:-1]] + lines[-1:]
    return out
