#!/usr/bin/env python3
"""Makes the man pages: section 1 from the options that the programs describe, section 3 from the public headers, section
7 from texts alone.

usage: make_man.py --bin DIR --text DIR --version V --out DIR PROGRAM... HEADER.h...

Each PROGRAM in DIR is run with --describe (base/program/options.h). Each header gives one page per group of
functions: those between two blank lines, with their comments and the types that they take. TEXT/<page>.txt adds what a
table cannot say: "# SECTION" begins a section (DESCRIPTION is added to the generated one), lines that begin with four
blanks are shown unchanged, "* " begins an item, `words` are bold and *words* italic, @NAME includes NAME.inc, and
@findings lists the findings of `eventlog verify`.
TEXT/functions.txt has a line for each page of section 3: the text of its NAME section, and the codes that its functions
return, which TEXT/errors.inc explains; its EXAMPLE is a function of TEXT/examples*.c.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import time

from man_text import body, code, continued, declaration, definition, escape, paragraphs, prose, shell, shown, wrapped

OWN = [{"kind": "flag", "letter": "h", "name": "help", "argument": None, "choices": [], "help": "Help on standard output."},
       {"kind": "flag", "letter": "V", "name": "version", "argument": None, "choices": [],
        "help": "Name and version on standard output."}]
RETURN = ("`EVENTLOG_OK` (0) unless stated otherwise above, or a negative code. Then *error*, if it is not NULL, holds "
          "the code, `errno` if the operating system set it, and a message that names the file and says what happened.")


def findings(binaries):
    """The findings of `eventlog verify`, as items of a text file."""
    run = subprocess.run([binaries / "eventlog", "verify", "--kinds", "--json"], check=True, capture_output=True, text=True)
    for row in json.loads(run.stdout)["kinds"]:
        default, python = row["default_loader"], row["python_loader"]
        both = f"Both loaders: {default}." if default == python else f"Default loader: {default}. Python loader: {python}."
        yield f"* `{row['kind']}` ({row['level']}): {row['what']}. {both}\n"


def sections_of(path, binaries=None):
    """[(title, text)] of a text file; empty if it does not exist."""
    if not path.exists():
        return []
    words = re.sub(r"^@(\w+)$", lambda m: "\n".join(findings(binaries)) if m.group(1) == "findings" else
                   (path.parent / f"{m.group(1)}.inc").read_text(), path.read_text(), flags=re.M)
    parts = re.split(r"^# (.+)\n", words, flags=re.M)
    return [(parts[i], parts[i + 1].strip("\n")) for i in range(1, len(parts), 2)]


def page(name, section, version, sections):
    """sections: [(title, lines)]; those without lines are left out."""
    made = time.strftime("%Y-%m-%d", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    out = [".\\\" Made by packaging/make_man.py.", f'.TH "{escape(name.upper())}" "{section}" "{made}" "evalboard {version}" '
           + ('"Library Functions"' if section == 3 else '"User Commands"'), ".nr HY 0", ".nh", ".ad l"]
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
        out += [".TP", *continued(", ".join(names) + (f" {value}" if value else "")), *prose(option["help"])]
    return out


def split_status(summary):
    """Splits the sentences about the exit status, if any, off the end of a summary."""
    match = re.search(r"(?:^|(?<=\. ))(?:Exit s|S)tatus:? (?=\d)", summary)
    return (summary[:match.start()], summary[match.start():]) if match else (summary, "")


def command_page(o, line, text, version, related, binaries):
    name = o["program"].replace(" ", "-")
    summary, status = split_status(o["summary"])
    extra = sections_of(text / f"{name}.txt", binaries)
    synopsis = [f".B {escape(o['program'])}"] + (wrapped(escape(o["usage"])) if o["usage"] else [])
    commands = []
    for c in o["commands"]:
        commands += [".TP", f"\\fB{escape(o['program'])} {escape(c['name'])}\\fR", *prose(c["help"])]
    examples = re.sub(r"^  ", "", o["examples"] or "", flags=re.M).strip("\n")
    sections = [
        ("NAME", wrapped(f"{escape(name)} \\- {escape(line[:1].lower() + line[1:])}")),
        ("SYNOPSIS", synopsis),
        ("DESCRIPTION", body(summary) + [x for title, words in extra if title == "DESCRIPTION" for x in body(words)]),
        ("COMMANDS", commands),
        ("OPTIONS", option_lines(o["options"] + ([{"kind": "heading", "help": "Other"}] if
                                                 any(x["kind"] == "heading" for x in o["options"]) else []) + OWN)),
        *[(title, body(words)) for title, words in extra if title != "DESCRIPTION"],
        ("EXIT STATUS", body(status) if not any(title == "EXIT STATUS" for title, _ in extra) else []),
        ("EXAMPLES", shown(shell(examples)) if examples else []),
        ("SEE ALSO", [f".BR {escape(n)} ({s})" + ("," if i + 1 < len(related) else "")
                      for i, (n, s) in enumerate(related)]),
    ]
    return f"man1/{name}.1", page(name, 1, version, sections)


LINES = {"trainer": "train a model on one or more ranks", "evaluator": "score every checkpoint of a running training",
         "eventlog": "inspect, verify, repair, follow, rewrite and export TensorBoard event files",
         "eventlog-server": "serve a log directory to TensorBoard, with every point",
         "checkpoint": "inspect, verify, compare and convert checkpoints",
         "dataset": "make and prepare data sets"}
# Pages of section 7: {program or library: [(name, line)]}
TOPICS = {"eventlog": [("eventlog-json", "what the commands of eventlog print as JSON")]}


def command_pages(program, binaries, text, version):
    o = json.loads(subprocess.run([binaries / program, "--describe"], check=True, capture_output=True, text=True).stdout)
    others = [(name, 1) for name in LINES if name != program]
    children = [(f"{program}-{c['name']}", 1) for c in o["commands"]]
    library = [("libeventlog", 3)] if program == "eventlog" else []
    topics = [(name, 7) for name, _ in TOPICS.get(program, [])]
    yield command_page(o, LINES[program], text, version, sorted(children) + others + library + topics, binaries)
    for c in o["commands"]:
        yield command_page(c["command"], c["help"], text, version,
                           [(program, 1)] + sorted(x for x in children if x[0] != f"{program}-{c['name']}") + topics, binaries)
    yield from topic_pages(program, 1, text, version)


def topic_pages(subject, section, text, version):
    for name, line in TOPICS.get(subject, []):
        sections = [("NAME", [f"{escape(name)} \\- {escape(line)}"])]
        sections += [(title, body(words)) for title, words in sections_of(text / f"{name}.txt")]
        sections.append(("SEE ALSO", [f".BR {escape(subject)} ({section})"]))
        yield f"man7/{name}.7", page(name, 7, version, sections)


# ---- section 3 --------------------------------------------------------------------------------------------------------

def comment_text(lines):
    """The words of a C comment; a line of dashes with a title is left out."""
    text = "\n".join(lines).strip()
    text = re.sub(r"^/\*+ ?|\s*\*/$", "", text)
    words = [re.sub(r"^ ?\*( ?)", lambda m: "", line) if i else line for i, line in enumerate(text.split("\n"))]
    return "\n".join("" if re.fullmatch(r"\s*-{3,}.*-{3,}\s*", line) else line for line in words).strip("\n")


def header_blocks(path):
    """[[(kind, text, name), ...], ...]: one list per group between blank lines. Kinds: comment, function, type."""
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


def examples_of(text):
    """{page: the lines of its example}: the functions of TEXT/examples*.c after a comment with the name of the page."""
    found = {}
    for path in sorted(text.glob("examples*.c")):
        for name, function in re.findall(r"^/\* (\w+) \*/\n(.*?^}\n)", path.read_text(), flags=re.S | re.M):
            found[name] = function.rstrip("\n").split("\n")
    return found


def errors_of(text):
    """{code: its item} of TEXT/errors.inc."""
    return {re.match(r"\* `EVENTLOG_ERROR_(\w+)`", item).group(1): item
            for item in (text / "errors.inc").read_text().strip().split("\n\n")}


def header_pages(path, text, version):
    blocks = header_blocks(path)
    library = "lib" + path.stem
    lines, returned = {}, {}
    for entry in (text / "functions.txt").read_text().splitlines():
        name, line, codes = re.fullmatch(r"(\w+): (.*?)(?: \[([A-Z ]+)\])?", entry).groups()
        lines[name] = line
        returned[name] = (codes or "").split()
    examples, errors = examples_of(text), errors_of(text)
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
        declared = "\n".join(words for kind, words, _ in block if kind == "function")
        used = uses(declared, types)
        intro = "\n\n".join(dict.fromkeys(introductions[t] for t in used if introductions[t]))
        line = lines[names[0]]
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
            first, *others = paragraphs(words) # what a header does not say of a function, it shall
            description += [".TP", *continued(", ".join(f"\\fB{n}\\fR()" for n in functions)), *first[1]]
            if others:
                description += [".RS", *(x for macro, lines_of_it in others for x in [macro, *lines_of_it]), ".RE"]
        type_lines = []
        for t in used:
            if not re.fullmatch(r"struct \w+;", types[t]):
                type_lines += [".PP", *code(definition(types[t]))]
        synopsis = [x for kind, words, _ in block if kind == "function" for x in declaration(words)]
        codes = returned[names[0]]
        sections = [
            ("NAME", wrapped(escape(", ".join(names)) + f" \\- {escape(line)}")),
            ("SYNOPSIS", [".nf", f"\\fB{escape(include)}\\fR", ".PP", *(x for y in synopsis for x in continued(escape(y))),
                          ".fi"]),
            ("DESCRIPTION", description),
            ("TYPES", type_lines),
            ("NOTES", body(intro) if intro else []),
            ("RETURN VALUE", body(RETURN) if codes else []),
            ("ERRORS", [x for name in codes for x in body(errors[name])]),
            ("EXAMPLE", code(examples[names[0]])),
            ("SEE ALSO", [f".BR {escape(library)} (3)"]),
        ]
        pages.append((f"man3/{names[0]}.3", page(names[0], 3, version, sections)))
        pages += [(f"man3/{name}.3", names[0]) for name in names[1:]]
    title, _, rest = first_comment.partition(" - ")
    head, _, more = rest.partition("\n\n")
    functions = []
    for names, line in summary:
        functions += [".TP", *continued(", ".join(f"\\fB{n}\\fR(3)" for n in names)), *prose(line)]
    extra = sections_of(text / f"{library}.txt")
    sections = [
        ("NAME", wrapped(f"{escape(library)} \\- {escape(lines[library])}")),
        ("SYNOPSIS", [".nf", f"\\fB{escape(include)}\\fR", ".PP",
                      f"cc file.c $(pkg\\-config \\-\\-cflags \\-\\-libs {escape(library[3:])})", ".fi"]),
        ("DESCRIPTION", body(head[:1].upper() + head[1:]) + body(more)
         + [x for name, words in extra if name == "DESCRIPTION" for x in body(words)]),
        ("FUNCTIONS", functions),
        ("ERRORS", [x for item in errors.values() for x in body(item)] +
         [x for t in ("eventlog_error",) if t in types for x in [".PP", *code(definition(types[t]))]]),
        *[(name, body(words)) for name, words in extra if name != "DESCRIPTION"],
        ("SEE ALSO", [".BR eventlog (1)" if library == "libeventlog" else ".BR libeventlog (3)"]),
    ]
    pages.append((f"man3/{library}.3", page(library, 3, version, sections)))
    return pages


def uses(code, types):
    """The named types in a declaration and their member types, except those that libeventlog(3) shows."""
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
            target.unlink(missing_ok=True)
            if content.startswith("."):
                target.write_text(content)
            else: # another name of that page
                target.symlink_to(f"{content}.3")


if __name__ == "__main__":
    main()
