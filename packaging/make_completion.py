#!/usr/bin/env python3
"""Makes the completions of bash, zsh and fish from the options that the programs describe.

usage: make_completion.py --bin DIR --out DIR PROGRAM...

Each PROGRAM in DIR is asked with --describe (base/program/options.h). Writes OUT/bash/PROGRAM, OUT/zsh/_PROGRAM and
OUT/fish/PROGRAM.fish: commands, options with their helps, words where an option has a choice, files and directories
where it takes a path, and names that are in the files on the line (tags, runs, tensors), for which the shell asks the
program: without a message, and for two seconds at most.
"""
import argparse
import json
import pathlib
import re
import subprocess

PATHS = {"FILE", "NEW", "PATH", "F", "OUT"}  # arguments that are files
DIRECTORIES = {"DIR", "CKPT", "DIRECTORY", "ROOT"}

# Options whose values are names in the files on the command line: their key in the JSON lines of the command that lists
# them, and whether it gets all of the paths or the first.
ASK = {"eventlog": {"tag": "tag", "metric": "tag", "lower": "tag", "higher": "tag", "run": "run"},
       "checkpoint": {"tensor": "name"}}
LISTS = {"eventlog": ("tags --format jsonl", True), "checkpoint": ("inspect --no-statistics --json", False)}


def takes(option, program):
    """The kind of value of an option: 'none', 'words', 'files', 'directories', 'text', or the key of names to ask for."""
    if option["kind"] in ("flag", "count"):
        return "none"
    if option["choices"]:
        return "words"
    if option["name"] in ASK.get(program, {}):
        return ASK[program][option["name"]]
    name = option["argument"] or ""
    return "files" if name in PATHS else "directories" if name in DIRECTORIES else "text"


def sed_of(key):
    """A command that prints the value of this key in each line. Names that JSON escapes (quote, backslash) are left out."""
    return f"""sed -n 's/.*[{{,]"'{key}'":"\\([^"\\]*\\)".*/\\1/p'"""


def rows(o):
    """The options, including those that every program has."""
    own = [{"kind": "flag", "letter": "h", "name": "help", "argument": None, "choices": [], "help": "help"},
           {"kind": "flag", "letter": "V", "name": "version", "argument": None, "choices": [], "help": "name and version"}]
    return [x for x in o["options"] if x["kind"] != "heading"] + own


def flags(option):
    return ([f"-{option['letter']}"] if option["letter"] else []) + [f"--{option['name']}"]


def positional(o):
    """Whether it takes arguments besides options; all of them are paths."""
    return bool(re.sub(r"\[?OPTION\.\.\.\]?|--?[\w-]+(?: [A-Z]+)?", "", o["usage"]).strip(" |[]"))


def contexts(o):
    """[(command or '', its description)]: the possible words on the line."""
    return [("", o)] + [(c["name"], c["command"]) for c in o["commands"]]


def short(text, most=70):
    """The beginning of a help text, up to the end of a sentence or a bracket."""
    words = re.split(r"(?<=\w)[.;] |\. ?$| \(", " ".join(text.split()), maxsplit=1)[0]
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0]


# ---- bash -------------------------------------------------------------------------------------------------------------

BASH = r"""# bash completion of {program}

# What the value of an option is: kind, or found; none of them: it takes no value. $1: command and option
_{name}_value()
{{
    kind="" found=()
    case $1 in
{values}    esac
}}

_{name}()
{{
    local line=$COMP_LINE word before command="" kind="" quote="" cut candidate i at
    local -a words=() found=() paths=()

    # The words of the line. Bash also splits them at '=' and ':', and then there is no blank between the pieces.
    for ((i = 0; i < ${{#COMP_WORDS[@]}}; i++)); do
        word=${{line#"${{line%%[! $'\t']*}}"}}
        if ((i > 0)) && [[ $word == "$line" && -n $word ]]; then
            words[-1]+=${{COMP_WORDS[i]}}
        else
            words+=("${{COMP_WORDS[i]}}")
        fi
        line=${{word#"${{COMP_WORDS[i]}}"}}
        ((i == COMP_CWORD)) && at=$((${{#words[@]}} - 1))
    done
    word=${{words[at]}} before=${{words[at - 1]}}
    if [[ $word == --*=* ]]; then
        before=${{word%%=*}} word=${{word#*=}}
    fi
    if [[ $word == [\"\']* ]]; then
        quote=${{word:0:1}} word=${{word:1}} cut=""
    else
        word=${{word//\\}} cut=${{word%"${{word##*[:=]}}"}} # Bash replaces only what follows
    fi
    for ((i = 1; i < at; i++)); do
        case ${{words[i]}} in
{commands}        esac
    done

    _{name}_value "$command $before"
    if [[ -z $kind && ${{#found[@]}} == 0 ]]; then
        case "$command $word" in
{arguments}        esac
    fi
    case $kind in
    file | directory)
        compopt -o filenames 2>/dev/null
        mapfile -t found < <(compgen -A "$kind" -- "$word")
        COMPREPLY=("${{found[@]#"$cut"}}")
        return
        ;;
{asks}    esac
    COMPREPLY=()
    for candidate in "${{found[@]}}"; do
        [[ $candidate == "$word"* ]] || continue
        candidate=${{candidate#"$cut"}}
        [[ -n $quote ]] || printf -v candidate %q "$candidate"
        COMPREPLY+=("$candidate")
    done
}}
complete -F _{name} {program}
"""

# The paths on the line, without values of options, and what the program finds in them.
BASH_ASK = r"""    {keys})
        for ((i = 1; i < ${{#words[@]}}; i++)); do
            local key=$kind
            _{name}_value "$command ${{words[i - 1]}}"
            if [[ -z $kind && ${{#found[@]}} == 0 && $i != "$at" && ${{words[i]}} != -* ]]; then
                candidate=${{words[i]//[\"\'\\]}} candidate=${{candidate/#~\//$HOME/}}
                [[ -e $candidate || -e $candidate.index ]] && paths+=("$candidate")
            fi
            kind=$key
        done
        found=()
        if ((${{#paths[@]}})); then
            mapfile -t found < <(timeout 2 "${{1/#~\//$HOME/}}" {lists} "${{paths[{which}]}}" 2>/dev/null </dev/null |
                {sed} | sort -u)
        fi
        ;;
"""


def bash(program, o):
    actions = {"files": "kind=file", "directories": "kind=directory", "text": "kind=text"}
    commands, values, arguments = "", "", ""
    if o["commands"]:
        names = "|".join(c["name"] for c in o["commands"])
        commands = f"        {names}) command=${{words[i]}}; break ;;\n"
    for name, c in contexts(o):
        for row in rows(c):
            kind = takes(row, program)
            if kind != "none":
                match = "|".join(f'"{name} {flag}"' for flag in flags(row))
                action = f"found=({' '.join(row['choices'])})" if kind == "words" else actions.get(kind, f"kind={kind}")
                if row["kind"] == "choices":  # several, with commas between: those before the last comma stay
                    action += ' found=("${found[@]/#/${word%"${word##*,}"}}")'
                values += f"    {match}) {action} ;;\n"
        arguments += f'        "{name} -"*) found=({" ".join(flag for row in rows(c) for flag in flags(row))}) ;;\n'
        if not name and o["commands"]:
            names = " ".join(x["name"] for x in o["commands"])
            arguments += f'        "{name} "*) found=({names} help) ;;\n'
        elif positional(c):
            arguments += f'        "{name} "*) kind=file ;;\n'
    asks = ""
    if program in ASK:
        lists, every = LISTS[program]
        asks = BASH_ASK.format(keys=" | ".join(sorted(set(ASK[program].values()))), name=program, lists=lists,
                               which="@" if every else "0", sed=sed_of('"$kind"'))
    return BASH.format(program=program, name=program, commands=commands or "        --) break ;;\n", values=values,
                       arguments=arguments, asks=asks)


# ---- zsh --------------------------------------------------------------------------------------------------------------

def zsh_quote(text):
    return text.replace("\\", "\\\\").replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


# Arguments: those of compadd, and the key of the names.
ZSH_ASK = """
(( $+functions[_{name}_asked] )) || _{name}_asked() {{
    local word
    local -a paths names
    for word in ${{${{(Q)words[2,-1]}}/#\\~\\//$HOME/}}; do
        [[ $word != -* && ( -e $word || -e $word.index ) ]] && paths+=("$word")
    done
    (( $#paths )) || return 1
    names=(${{(f)"$(timeout 2 {program} {lists} "${{(@)paths[{which}]}}" 2>/dev/null </dev/null | {sed} | sort -u)"}})
    compadd "${{(@)argv[1,-2]}}" -a names
}}
"""


def zsh_specs(o, program, indent):
    actions = {"files": "_files", "directories": "_files -/", "text": " "}
    specs = []
    for row in rows(o):
        kind = takes(row, program)
        help_text = zsh_quote(short(row["help"]))
        value = "" if kind == "none" else f":{zsh_quote((row['argument'] or row['name']).lower())}:" + \
            (f"({' '.join(row['choices'])})" if kind == "words" else actions.get(kind, f"_{program}_asked {kind}"))
        repeat = "*" if row["kind"] == "list" else ""
        for flag in flags(row):
            sign = "" if kind == "none" else "=" if flag.startswith("--") else "+"
            specs.append(f"'{repeat}{flag}{sign}[{help_text}]{value}'")
    if positional(o) and not o["commands"]:
        specs.append("'*:path:_files'")
    return (" \\\n" + indent).join(specs)


def zsh(program, o):
    if not o["commands"]:
        return f"#compdef {program}\n\n_arguments -s -S \\\n    {zsh_specs(o, program, '    ')}\n"
    ask = ""
    if program in ASK:
        lists, every = LISTS[program]
        ask = ZSH_ASK.format(program=program, name=program, lists=lists, which="1,-1" if every else "1,1", sed=sed_of('"$argv[-1]"'))
    commands = "\n".join(f"    '{zsh_quote(c['name'])}:{zsh_quote(short(c['help']))}'" for c in o["commands"])
    cases = "\n".join(f"    {c['name']})\n        _arguments -s -S \\\n            {zsh_specs(c['command'], program, ' ' * 12)}\n"
                      f"        ;;" for c in o["commands"])
    return (f"#compdef {program}\n{ask}\nlocal context state state_descr line\nlocal -A opt_args\nlocal -a commands\n\n"
            f"commands=(\n{commands}\n)\n"
            f"_arguments -C -S \\\n    {zsh_specs(o, program, '    ')} \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
            f"case $state in\ncommand)\n    _describe -t commands 'command of {program}' commands\n    ;;\nargument)\n"
            f"    case $words[1] in\n{cases}\n    esac\n    ;;\nesac\n")


# ---- fish -------------------------------------------------------------------------------------------------------------

def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# $argv: the key of the names.
FISH_ASK = """function __{name}_asked
    set -l paths
    for word in (commandline -opc | string replace -r '^~/' "$HOME/")[3..-1]
        if test -e "$word"; or test -e "$word.index"
            set -a paths "$word"
        end
    end
    test -n "$paths"; and timeout 2 {program} {lists} $paths[{which}] 2>/dev/null </dev/null | {sed} | sort -u
end"""


def fish(program, o):
    out = [f"# fish completion of {program}", f"complete -c {program} -f"]
    if program in ASK:
        lists, every = LISTS[program]
        out.append(FISH_ASK.format(program=program, name=program, lists=lists, which="1..-1" if every else "1",
                                   sed=sed_of('"$argv"')))
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
            kind = takes(row, program)
            value = {"none": "", "words": f" -x -a {fish_quote(' '.join(row['choices']))}", "files": " -r -F",
                     "directories": " -x -a '(__fish_complete_directories)'", "text": " -x"}.get(kind, f" -x -a '(__{program}_asked {kind})'")
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
