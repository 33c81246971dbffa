#!/usr/bin/env python3
"""Makes the completions of bash, zsh and fish from what the programs say of their options.

usage: make_completion.py --bin DIR --out DIR PROGRAM...

Each PROGRAM in DIR is asked with --describe (base/options_describe.h). Writes OUT/bash/PROGRAM, OUT/zsh/_PROGRAM and
OUT/fish/PROGRAM.fish: commands, options with their helps, words where an option has a choice, files and directories
where it takes a path.
"""
import argparse
import json
import pathlib
import re
import subprocess

PATHS = {"FILE", "NEW", "PATH", "F", "OUT"}  # arguments that are files
DIRECTORIES = {"DIR", "CKPT", "DIRECTORY", "ROOT"}


def takes(option):
    """What comes after an option: 'none', 'words', 'files', 'directories' or 'text'."""
    if option["kind"] in ("flag", "count"):
        return "none"
    if option["choices"]:
        return "words"
    name = option["argument"] or ""
    return "files" if name in PATHS else "directories" if name in DIRECTORIES else "text"


def rows(o):
    """The options, with those that every program has."""
    own = [{"kind": "flag", "letter": "h", "name": "help", "argument": None, "choices": [], "help": "help"},
           {"kind": "flag", "letter": None, "name": "version", "argument": None, "choices": [], "help": "name and version"}]
    return [x for x in o["options"] if x["kind"] != "heading"] + own


def flags(option):
    return ([f"-{option['letter']}"] if option["letter"] else []) + [f"--{option['name']}"]


def positional(o):
    """Whether it takes arguments beside options: those are paths, all of them."""
    return bool(re.sub(r"\[?OPTION\.\.\.\]?|--?[\w-]+(?: [A-Z]+)?", "", o["usage"]).strip(" |[]"))


def contexts(o):
    """[(command or '', its description)]: what may stand on the line."""
    return [("", o)] + [(c["name"], c["command"]) for c in o["commands"]]


def short(text, most=70):
    """The beginning of a help, up to a sentence or a bracket."""
    words = re.split(r"(?<=\w)[.;] |\. ?$| \(", " ".join(text.split()), maxsplit=1)[0]
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0]


# ---- bash -------------------------------------------------------------------------------------------------------------

BASH = """# bash completion of {program}
_{name}()
{{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command="" paths="" i
    local -a found=()

    # --option=value is three words to bash
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
{commands}        esac
    done
    case "$command $before" in
{values}    esac
    if [[ -z $paths && ${{#found[@]}} == 0 && $word == -* ]]; then
        case $command in
{options}        esac
    elif [[ -z $paths && ${{#found[@]}} == 0 ]]; then
        case $command in
{arguments}        esac
    fi
    if [[ $paths == nothing ]]; then
        COMPREPLY=()
    elif [[ -n $paths ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -A "$paths" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -W "${{found[*]}}" -- "$word")
    fi
}}
complete -F _{name} {program}
"""


def bash(program, o):
    actions = {"files": "paths=file", "directories": "paths=directory", "text": "paths=nothing"}
    commands, values, options, arguments = "", "", "", ""
    if o["commands"]:
        names = "|".join(c["name"] for c in o["commands"])
        commands = f"        {names}) command=${{COMP_WORDS[i]}}; break ;;\n"
    for name, c in contexts(o):
        label = f'"{name}"' if not name else name
        for row in rows(c):
            kind = takes(row)
            if kind != "none":
                match = "|".join(f'"{name} {flag}"' for flag in flags(row))
                action = f"found=({' '.join(row['choices'])})" if kind == "words" else actions[kind]
                values += f"    {match}) {action} ;;\n"
        options += f"        {label}) found=({' '.join(flag for row in rows(c) for flag in flags(row))}) ;;\n"
        if not name and o["commands"]:
            names = " ".join(x["name"] for x in o["commands"])
            arguments += f"        {label}) found=({names} help) ;;\n"
        else:
            arguments += f"        {label}) {'paths=file' if positional(c) else 'paths=nothing'} ;;\n"
    return BASH.format(program=program, name=program, commands=commands or "        --) break ;;\n", values=values,
                       options=options, arguments=arguments)


# ---- zsh --------------------------------------------------------------------------------------------------------------

def zsh_quote(text):
    return text.replace("\\", "\\\\").replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_specs(o, indent):
    actions = {"files": "_files", "directories": "_files -/", "text": " "}
    specs = []
    for row in rows(o):
        kind = takes(row)
        help_text = zsh_quote(short(row["help"]))
        value = "" if kind == "none" else f":{zsh_quote((row['argument'] or row['name']).lower())}:" + \
            (f"({' '.join(row['choices'])})" if kind == "words" else actions[kind])
        repeat = "*" if row["kind"] == "list" else ""
        for flag in flags(row):
            sign = "" if kind == "none" else "=" if flag.startswith("--") else "+"
            specs.append(f"'{repeat}{flag}{sign}[{help_text}]{value}'")
    if positional(o) and not o["commands"]:
        specs.append("'*:path:_files'")
    return (" \\\n" + indent).join(specs)


def zsh(program, o):
    if not o["commands"]:
        return f"#compdef {program}\n\n_arguments -s -S \\\n    {zsh_specs(o, '    ')}\n"
    commands = "\n".join(f"    '{zsh_quote(c['name'])}:{zsh_quote(short(c['help']))}'" for c in o["commands"])
    cases = "\n".join(f"    {c['name']})\n        _arguments -s -S \\\n            {zsh_specs(c['command'], ' ' * 12)}\n"
                      f"        ;;" for c in o["commands"])
    return (f"#compdef {program}\n\nlocal context state state_descr line\nlocal -A opt_args\nlocal -a commands\n\n"
            f"commands=(\n{commands}\n)\n"
            f"_arguments -C -S \\\n    {zsh_specs(o, '    ')} \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
            f"case $state in\ncommand)\n    _describe -t commands 'command of {program}' commands\n    ;;\nargument)\n"
            f"    case $words[1] in\n{cases}\n    esac\n    ;;\nesac\n")


# ---- fish -------------------------------------------------------------------------------------------------------------

def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(program, o):
    out = [f"# fish completion of {program}", f"complete -c {program} -f"]
    names = " ".join(c["name"] for c in o["commands"])
    if o["commands"]:
        for c in o["commands"]:
            out.append(f"complete -c {program} -n 'not __fish_seen_subcommand_from {names}' -a {c['name']} "
                       f"-d {fish_quote(short(c['help']))}")
    for name, c in contexts(o):
        if o["commands"]:
            condition = f" -n '__fish_seen_subcommand_from {name}'" if name else \
                f" -n 'not __fish_seen_subcommand_from {names}'"
        else:
            condition = ""
        for row in rows(c):
            kind = takes(row)
            value = {"none": "", "words": f" -x -a {fish_quote(' '.join(row['choices']))}", "files": " -r -F",
                     "directories": " -x -a '(__fish_complete_directories)'", "text": " -x"}[kind]
            letter = f" -s {row['letter']}" if row["letter"] else ""
            out.append(f"complete -c {program}{condition}{letter} -l {row['name']}{value} -d {fish_quote(short(row['help']))}")
        if positional(c) and not c["commands"]:
            out.append(f"complete -c {program}{condition} -F")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    for program in options.programs:
        o = json.loads(subprocess.run([options.bin / program, "--describe"], check=True, capture_output=True,
                                      text=True).stdout)
        for path, content in ((f"bash/{program}", bash(program, o)), (f"zsh/_{program}", zsh(program, o)),
                              (f"fish/{program}.fish", fish(program, o))):
            target = options.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)


if __name__ == "__main__":
    main()
