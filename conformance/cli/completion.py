"""The command `completion`: a script by which a shell completes commands, their actions and options."""

import argparse
import re

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import Command, Option

SCRIPT = """\
_fencepost() {{
    local words="" word="${{COMP_WORDS[COMP_CWORD]}}"
    case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
        1:*) words="{commands}" ;;
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
if [[ -n "${{ZSH_VERSION:-}}" ]]; then autoload -U +X bashcompinit && bashcompinit; fi
complete -o default -F _fencepost fencepost
"""


def run_completion(options: argparse.Namespace, console: Console) -> int:
    """Print the script, for bash and zsh."""
    from fencepost.conformance.cli import COMMANDS as ALL
    from fencepost.conformance.cli import build_parser

    cases = []
    for name in ALL:
        parsers = [next(iter(build_parser([name])._subparsers._group_actions)).choices[name]]  # type: ignore[union-attr,index]
        words = set[str]()
        for parser in parsers:
            words |= set(re.findall(r"--[a-z][a-z-]*", parser.format_help()))
            for actions in parser._subparsers._group_actions if parser._subparsers else ():
                words |= set(actions.choices or ())
                parsers += (actions.choices or {}).values()
        cases.append(f'        *:{name}) words="{" ".join(sorted(words))}" ;;')
    console.print(SCRIPT.format(commands=" ".join(ALL), cases="\n".join(cases)))
    return 0


COMMANDS = {
    "completion": Command(
        run_completion,
        (Option("shell", "SHELL", "{choices}: one script is for both", choices=("bash", "zsh"), nargs="?"),),
        epilog='Add to ~/.bashrc or ~/.zshrc: eval "$(fencepost completion)"',
    )
}
