#!/usr/bin/env python3
"""Makes the man pages: section 1 from what the programs say of their options, section 3 from the public headers.

usage: make_man.py --bin DIR --text DIR --version V --out DIR PROGRAM... HEADER.h...

Each PROGRAM in DIR is asked with --describe (base/options_describe.h). Each header gives one page a group of functions:
the functions between two blank lines, with their comments and the types that they take. What a table cannot say stands
in TEXT/<page>.txt: "# SECTION" begins a section (DESCRIPTION is added to the generated one), lines that begin with four
blanks are shown as they are, "* " begins an item, `words` are bold and *words* italic, @NAME stands for NAME.inc,
@findings for what `eventlog verify` can find.
TEXT/functions.txt has a line for the NAME of a page of section 3; where there is none the comment's beginning is taken.
"""
import argparse
import json
import pathlib
import re
import subprocess

OWN = [{"kind": "flag", "letter": "h", "name": "help", "argument": None, "choices": [], "help": "Help on standard output."},
       {"kind": "flag", "letter": None, "name": "version", "argument": None, "choices": [],
        "help": "Name and version on standard output."}]
RETURN = ("Where nothing else is said above: `EVENTLOG_OK` (0), or one of the negative `EVENTLOG_ERROR_` codes, and then, where *error* is not NULL, a "
          "sentence that names the file and what happened. See `libeventlog`(3).")


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha") \
        .replace("~", "\\(ti")


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
    line = re.sub(r"\S{40,}", lambda m: re.sub(r"(?<=[>/|])(?=\w|<)", r"\\:", m.group()), "".join(out)) # where it may break
    return guard(line)


def guard(line):
    return "\\&" + line if line[:1] in (".", "'") else line


def shown(lines):
    """Lines as they are."""
    return [".RS 4", ".EX", *(guard(escape(line)) for line in lines), ".EE", ".RE"]


def body(text):
    """The mark-up of the text files, and of comments."""
    out, paragraph, example = [], [], []

    def flush():
        if example:
            while example and not example[-1].strip():
                example.pop()
            out.extend([".PP", *shown(example)])
            example.clear()
        if paragraph:
            words = "\n".join(paragraph)
            item = words.startswith("* ")
            out.extend([".IP \\(bu 2" if item else ".PP", prose(words[2:] if item else words)])
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


def findings(binaries):
    """What `eventlog verify` can find, as items of a text file."""
    run = subprocess.run([binaries / "eventlog", "verify", "--kinds", "--json"], check=True, capture_output=True, text=True)
    for row in json.loads(run.stdout)["kinds"]:
        default, python = row["default_loader"], row["python_loader"]
        both = f"Both loaders: {default}." if default == python else f"Default loader: {default}. Python loader: {python}."
        yield f"* `{row['kind']}` ({row['level']}): {row['what']}. {both}\n"


def sections_of(path, binaries=None):
    """[(title, text)] of a text file; empty where there is none."""
    if not path.exists():
        return []
    words = re.sub(r"^@(\w+)$", lambda m: "\n".join(findings(binaries)) if m.group(1) == "findings" else
                   (path.parent / f"{m.group(1)}.inc").read_text(), path.read_text(), flags=re.M)
    parts = re.split(r"^# (.+)\n", words, flags=re.M)
    return [(parts[i], parts[i + 1].strip("\n")) for i in range(1, len(parts), 2)]


def page(name, section, version, sections):
    """sections: [(title, lines)]; those without lines are left out."""
    out = [".\\\" Made by packaging/make_man.py.", f'.TH "{escape(name.upper())}" "{section}" "" "evalboard {version}" '
           + ('""' if section == 3 else '"User Commands"'), ".nr HY 0", ".nh", ".ad l"]
    for title, lines in sections:
        if lines:
            out.append(f'.SH "{escape(title)}"')
            out.extend(lines[1:] if lines[0] == ".PP" else lines)
    return "\n".join(out) + "\n"


# ---- section 1 --------------------------------------------------------------------------------------------------------

def option_lines(options):
    out = []
    for option in options:
        if option["kind"] == "heading":
            out.append(f'.SS "{escape(option["help"].rstrip(":"))}"')
            continue
        names = [f"\\fB\\-{option['letter']}\\fR"] if option["letter"] else []
        names.append(f"\\fB\\-\\-{escape(option['name'])}\\fR")
        value = "|\\:".join(f"\\fB{escape(c)}\\fR" for c in option["choices"]) or \
            (f"\\fI{escape(option['argument'])}\\fR" if option["argument"] else "")
        value += "[,...]" if option["kind"] == "choices" else ""
        value = f"[{value}]" if option["kind"] == "count" else value
        out += [".TP", ", ".join(names) + (f" {value}" if value else ""), prose(option["help"])]
    return out


def split_status(summary):
    """The sentences on the exit status stand last in a summary, where there are any."""
    match = re.search(r"(?:^|(?<=\. ))(?:Exit s|S)tatus:? (?=\d)", summary)
    return (summary[:match.start()], summary[match.start():]) if match else (summary, "")


def command_page(o, line, text, version, related, binaries):
    name = o["program"].replace(" ", "-")
    summary, status = split_status(o["summary"])
    extra = sections_of(text / f"{name}.txt", binaries)
    synopsis = [f".B {escape(o['program'])}", guard(escape(o["usage"]))] if o["usage"] else [f".B {escape(o['program'])}"]
    commands = []
    for c in o["commands"]:
        commands += [".TP", f"\\fB{escape(o['program'])} {escape(c['name'])}\\fR", prose(c["help"])]
    examples = [x for x in (o["examples"] or "").rstrip("\n").split("\n") if x.strip()]
    sections = [
        ("NAME", [f"{escape(name)} \\- {escape(line)}"]),
        ("SYNOPSIS", synopsis),
        ("DESCRIPTION", body(summary) + [x for title, words in extra if title == "DESCRIPTION" for x in body(words)]),
        ("COMMANDS", commands),
        ("OPTIONS", option_lines(o["options"] + ([{"kind": "heading", "help": "Other"}] if
                                                 any(x["kind"] == "heading" for x in o["options"]) else []) + OWN)),
        *[(title, body(words)) for title, words in extra if title != "DESCRIPTION"],
        ("EXIT STATUS", body(status) if not any(title == "EXIT STATUS" for title, _ in extra) else []),
        ("EXAMPLES", shown([x[2:] if x.startswith("  ") else x for x in examples]) if examples else []),
        ("SEE ALSO", [f".BR {escape(n)} ({s})" + ("," if i + 1 < len(related) else "")
                      for i, (n, s) in enumerate(related)]),
    ]
    return f"man1/{name}.1", page(name, 1, version, sections)


LINES = {"trainer": "train a model on one or more ranks", "evaluator": "score every checkpoint of a running training",
         "eventlog": "inspect, verify, repair, follow, rewrite and export TensorBoard event files",
         "checkpoint": "inspect, verify, compare and convert checkpoints"}


def command_pages(program, binaries, text, version):
    o = json.loads(subprocess.run([binaries / program, "--describe"], check=True, capture_output=True, text=True).stdout)
    others = [(name, 1) for name in LINES if name != program]
    children = [(f"{program}-{c['name']}", 1) for c in o["commands"]]
    library = [("libeventlog", 3)] if program == "eventlog" else []
    yield command_page(o, LINES[program], text, version, sorted(children) + others + library, binaries)
    for c in o["commands"]:
        yield command_page(c["command"], c["help"], text, version,
                           [(program, 1)] + sorted(x for x in children if x[0] != f"{program}-{c['name']}"), binaries)


# ---- section 3 --------------------------------------------------------------------------------------------------------

def comment_text(lines):
    """The words of a C comment; a line of dashes with a title is left out."""
    text = "\n".join(lines).strip()
    text = re.sub(r"^/\*+ ?|\s*\*/$", "", text)
    words = [re.sub(r"^ ?\*( ?)", lambda m: "", line) if i else line for i, line in enumerate(text.split("\n"))]
    return "\n".join("" if re.fullmatch(r"\s*-{3,}.*-{3,}\s*", line) else line for line in words).strip("\n")


def header_blocks(path):
    """[[(kind, text, name), ...], ...]: what stands between blank lines. Kinds: comment, function, type."""
    blocks, block, item, depth = [], [], [], 0
    in_comment = False
    for line in path.read_text().split("\n"):
        if not item and not line.strip():
            if block:
                blocks.append(block)
            block = []
            continue
        if not item and (line.startswith("#") or line.startswith('extern "C"') or line == "}"):
            continue
        first = not item
        item.append(line)
        if first:
            in_comment = line.startswith("/*")
        if in_comment:
            if "*/" in line:
                block.append(("comment", comment_text(item), None))
                item = []
            continue
        code = re.sub(r"/\*.*?(\*/|$)", "", "\n".join(item), flags=re.S)
        depth = code.count("{") - code.count("}")
        if depth == 0 and code.rstrip().endswith(";") and "\n".join(item).count("/*") == "\n".join(item).count("*/"):
            function = re.search(r"\b(eventlog_\w+)\s*\((?!\*)", code) if "{" not in code else None
            kind = re.match(r"(?:struct|enum|typedef)\s+(\w*)", code)
            if function and not code.startswith("typedef"):
                block.append(("function", "\n".join(item), function.group(1)))
            else:
                block.append(("type", "\n".join(item), (kind.group(1) if kind else "") or "enum"))
            item = []
    if block:
        blocks.append(block)
    return blocks


def first_words(text):
    """A short line from the first sentence of a comment."""
    sentence = re.split(r"[.;:](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]
    sentence = re.sub(r"\s*\([^)]*\)", "", sentence)
    if len(sentence) > 76:
        sentence = sentence[:76].rsplit(" ", 1)[0].rstrip(",") + " ..."
    return sentence[:1].lower() + sentence[1:] if not sentence[1:2].isupper() else sentence


def header_pages(path, text, version):
    blocks = header_blocks(path)
    library = "lib" + path.stem
    lines = dict(line.split(": ", 1) for line in (text / "functions.txt").read_text().splitlines())
    include = f"#include <eventlog/{path.name}>"
    types, introductions, first_comment = {}, {}, ""
    for block in blocks:
        comments = [words for kind, words, _ in block if kind == "comment"]
        if not first_comment and comments:
            first_comment = comments[0]
            continue
        for kind, words, name in block:
            if kind == "type":
                types[name] = words
                # A comment before types alone introduces them.
                introductions[name] = "\n\n".join(comments) if not any(k == "function" for k, _, _ in block) else ""
    groups = [b for b in blocks if any(kind == "function" for kind, _, _ in b)]
    summary = []
    pages = []
    for block in groups:
        names = [name for kind, _, name in block if kind == "function"]
        comments = [words for kind, words, _ in block if kind == "comment"]
        declared = "\n".join(words for kind, words, _ in block if kind == "function")
        used = uses(declared, types)
        intro = "\n\n".join(dict.fromkeys(introductions[t] for t in used if introductions[t]))
        line = lines.get(names[0]) or first_words(comments[0] if comments else intro or names[0])
        summary.append((names, line))
        described, words = [], ""
        for kind, item, name in block:
            if kind == "comment":
                words = item
            elif kind == "function":
                if words or not described:
                    described.append(([name], words))
                else:
                    described[-1][0].append(name)
                words = ""
        description = []
        for functions, words in described:
            description += [".TP", ", ".join(f"\\fB{n}\\fR()" for n in functions)]
            text_lines = body(words) if words else [".PP", "See below."]
            description += text_lines[1:2] + [".RS", *text_lines[2:], ".RE"] if len(text_lines) > 2 else text_lines[1:]
        type_lines = []
        for t in used:
            if re.fullmatch(r"struct \w+;", types[t]):
                continue
            type_lines += [".PP", ".EX", *(guard(escape(x)) for x in types[t].split("\n")), ".EE"]
        sections = [
            ("NAME", [escape(", ".join(names)) + f" \\- {escape(line)}"]),
            ("SYNOPSIS", [".nf", f"\\fB{escape(include)}\\fR", ".PP", *(guard(escape(x)) for x in declared.split("\n")),
                          ".fi"]),
            ("DESCRIPTION", description),
            ("TYPES", type_lines),
            ("NOTES", body(intro) if intro else []),
            ("RETURN VALUE", body(RETURN) if re.search(r"^int ", declared, flags=re.M) and "error" in declared else []),
            ("SEE ALSO", [f".BR {escape(library)} (3)"]),
        ]
        pages.append((f"man3/{names[0]}.3", page(names[0], 3, version, sections)))
        pages += [(f"man3/{name}.3", f".so man3/{names[0]}.3\n") for name in names[1:]]
    title, _, rest = first_comment.partition(" - ")
    head, _, more = rest.partition("\n\n")
    functions = []
    for names, line in summary:
        functions += [".TP", ", ".join(f"\\fB{n}\\fR(3)" for n in names), prose(line)]
    common = [b for b in ("enum", "eventlog_error") if b in types]
    extra = sections_of(text / f"{library}.txt")
    sections = [
        ("NAME", [f"{escape(library)} \\- {escape(lines[library])}"]),
        ("SYNOPSIS", [".nf", f"\\fB{escape(include)}\\fR", ".PP",
                      f"cc file.c $(pkg\\-config \\-\\-cflags \\-\\-libs {escape(library[3:])})", ".fi"]),
        ("DESCRIPTION", body(head[:1].upper() + head[1:]) + body(more)
         + [x for name, words in extra if name == "DESCRIPTION" for x in body(words)]),
        ("FUNCTIONS", functions),
        ("ERRORS", [x for t in common for x in [".PP", ".EX", *(guard(escape(y)) for y in types[t].split("\n")), ".EE"]]),
        *[(name, body(words)) for name, words in extra if name != "DESCRIPTION"],
        ("SEE ALSO", [".BR eventlog (1)" if library == "libeventlog" else ".BR libeventlog (3)"]),
    ]
    pages.append((f"man3/{library}.3", page(library, 3, version, sections)))
    return pages


def uses(code, types):
    """The named types that a declaration takes, and those that they are made of; not what libeventlog(3) shows."""
    found, wait = [], [code]
    while wait:
        words = re.findall(r"\b(?:struct|enum)\s+(\w+)|\b(eventlog_\w+)\s+\w", re.sub(r"/\*.*?\*/", "", wait.pop(0), flags=re.S))
        for name in (a or b for a, b in words):
            if name in types and name not in found and name not in ("enum", "eventlog_error"):
                found.append(name)
                wait.append(types[name])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--bin", "--text", "--out"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("subjects", nargs="+")
    options = parser.parse_args()
    for name in options.subjects:
        pages = header_pages(pathlib.Path(name), options.text, options.version) if name.endswith(".h") else \
            command_pages(name, options.bin, options.text, options.version)
        for path, content in pages:
            target = options.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)


if __name__ == "__main__":
    main()
