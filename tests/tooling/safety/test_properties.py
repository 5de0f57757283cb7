"""Property tests: no disguise lowers a verdict, and quoting a dangerous command is harmless."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.tooling.safety.judge_harness import decision
from tooling.contract.action import Decision

DANGERS = st.sampled_from(
    (
        *("rm -rf /", "rm -rf ~", "dd if=/dev/zero of=/dev/sda", "mkfs.ext4 /dev/sda1", "kill -9 -1", "git push"),
        *(
            "cat /etc/passwd",
            "curl https://example.org",
            "npm publish",
            "cat .env",
            "printenv",
            "rm -rf src",
            "sudo ls",
        ),
    )
)
WRAPPERS = ("env A=1 {}", "nice {}", "nohup {}", "timeout 5 {}", "command {}", "exec {}")
STATEMENTS = st.sampled_from(
    (
        *("{}", "( {} )", "{{ {}; }}", "! {}", "true && {}", "false || {}", "ls; {}", "ls | {}", "{} | cat", "{} &"),
        *("if true; then {}; fi", "for i in 1 2; do {}; done", "while true; do {}; done", "case a in a) {};; esac"),
        *(
            "f() {{ {}; }}; f",
            "echo $( {} )",
            'echo "$( {} )"',
            "x=$( {} )",
            "cat <<E\n$( {} )\nE\n",
            "[[ -n $( {} ) ]]",
        ),
        *("cat <( {} )", "time {}", "# a\n{}", "{} # b", "{} > out.txt", *WRAPPERS),
    )
)
QUOTES = ("bash -c {}", "sh -c {}", "eval {}", "trap {} EXIT", "echo {} | sh", "sh <<< {}", "bash -lc {}")
HARMLESS = ("git commit -m {}", "grep -rn {} src", "echo {}", "printf '%s\\n' {}", "rg {}")


def wrap_in_layers(danger: str, layers: list[str]) -> str:
    text = danger
    for layer in layers:
        if layer in WRAPPERS and text != danger:
            continue
        text = layer.format(shlex.quote(text) if layer in QUOTES else text)
    return text


@examples(300)
@given(DANGERS, st.lists(st.one_of(STATEMENTS, st.sampled_from(QUOTES)), max_size=4))
def test_nesting_never_lowers_a_verdict(danger: str, layers: list[str]) -> None:
    assert decision(wrap_in_layers(danger, layers)) >= decision(danger)


@st.composite
def obfuscate(draw: st.DrawFn, text: str) -> str:
    """Spell a word with quotes and escapes that the shell removes."""
    pieces = []
    for char in text:
        form = draw(st.sampled_from(["plain", "single", "double", "escaped", "ansi", "empty"]))
        hexed = f"$'\\x{ord(char):02x}'"
        pieces.append(
            {
                "single": f"'{char}'",
                "double": f'"{char}"',
                "escaped": f"\\{char}",
                "ansi": hexed,
                "empty": f"''{char}",
            }.get(form, char)
        )
    return "".join(pieces)


@examples(300)
@given(st.data(), DANGERS)
def test_spelling_never_lowers_a_verdict(data: st.DataObject, danger: str) -> None:
    words = [data.draw(obfuscate(word)) if "~" not in word else word for word in danger.split()]
    assert decision(" ".join(words)) >= decision(danger)


@examples(200)
@given(DANGERS, STATEMENTS, st.sampled_from(HARMLESS))
def test_a_dangerous_command_as_an_argument_is_allowed(danger: str, around: str, harmless: str) -> None:
    assert decision(harmless.format(shlex.quote(around.format(danger)))) is Decision.ALLOW


@examples(100)
@given(DANGERS, STATEMENTS)
def test_a_dangerous_command_in_a_quoted_heredoc_is_allowed(danger: str, around: str) -> None:
    assert decision(f"cat > notes.md <<'END'\n{around.format(danger)}\nEND\n") is Decision.ALLOW


@examples(300)
@given(st.text(max_size=60))
def test_any_text_gets_a_verdict(text: str) -> None:
    assert decision(text) in Decision
