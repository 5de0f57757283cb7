"""Words are expanded as the shell expands them."""

import pytest

from tests.tooling.safety.judge_harness import argvs
from tooling.safety.shell.command import HIDDEN, UNKNOWN


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r''m 'a b' \"c d\"e", ("rm", "a b", "c de")),
        (r"r\m a\ b", ("rm", "a b")),
        (r"$'\x72\155' $'\u0041\t'", ("rm", "A\t")),
        ("x=rm; $x -r", ("rm", "-r")),
        ("x='rm -r'; $x a", ("rm", "-r", "a")),
        ("x='a b'; cat \"$x\"", ("cat", "a b")),
        ("cat${IFS}a", ("cat", "a")),
        ("IFS=:; x=a:b; cat $x", ("cat", "a", "b")),
        ("cat a{b,c}d {1..3}", ("cat", "abd", "acd", "1", "2", "3")),
        ("cat $HOME/x ~/y", ("cat", "~/x", "~/y")),
        ("cat $PWD/x", ("cat", "/srv/project/x")),
        ("a=(1 '2 3'); cat \"${a[@]}\" ${a[0]}", ("cat", "1", "2 3", "1")),
        ("x=a.c; cat ${x%.c}.o ${x^^} ${x/a/b}", ("cat", "a.o", "A.C", "b.c")),
        ("cat ${x:-y}", ("cat", "y")),
        ("x=abc; cat ${x:1:1}", ("cat", "b")),
        ("cat $x", ("cat", UNKNOWN)),
        ("cat $(foo)", ("cat", UNKNOWN)),
        ("cat $(echo a)", ("cat", "a")),
        ("cat `printf 'a%s' b`", ("cat", "ab")),
        ("cat $(echo YQ== | base64 -d)", ("cat", "a")),
        ("cat $(echo a | openssl enc -d)", ("cat", HIDDEN)),
        ("cat ${PATH:0:1}", ("cat", HIDDEN)),
        ("cat ${!x}", ("cat", HIDDEN)),
        ('set -- a b; cat "$@" $2', ("cat", "a", "b", "b")),
        ('f() { cat "$1"; }; f x', ("cat", "x")),
        ("cat $((1+1))", ("cat", UNKNOWN)),
        ("cat > out a b", ("cat", "a", "b")),
        ("cat - 2>/dev/null", ("cat", "-")),
        ("read x <<< a; cat $x", ("cat", "a")),
        ("x=1; unset x; cat $x", ("cat", UNKNOWN)),
        ('cat "a"$"b"', ("cat", "ab")),
    ],
)
def test_words_are_expanded(text: str, words: tuple[str, ...]) -> None:
    assert argvs(text)[-1] == words


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("a; b && c || d | e & f", "abcdef"),
        ("if a; then b; elif c; then d; else e; fi", "abcde"),
        ("for x in 1 2; do a; done; while b; do c; done; until d; do e; done", "abcde"),
        ("case x in 1) a;; *) b;; esac; (c); { d; }; ! e", "abcde"),
        ('a "$(b)" `c` <(d) ${x:-$(e)} $(( $(f) ))', "bcdefa"),
        ("x=$(a) b; y=($(c)); [[ -n $(d) ]]; z[$(e)]=1", "abcde"),
        ("a <<E\n$(b)\nE\nc <<'E'\n$(d)\nE", "bac"),
        ("time a; coproc b; exec c", "abc"),
        ("trap a EXIT; eval b; alias x=c", "abc"),
        ("a \\\n| b", "ab"),
    ],
)
def test_every_command_of_a_statement_is_found(text: str, programs: str) -> None:
    found = [words[0] for words in argvs(text) if words and len(words[0]) == 1]
    assert list(dict.fromkeys(found)) == list(programs)


def test_a_variable_that_may_change_keeps_all_possible_values() -> None:
    assert ("rm", "x") in argvs("x=rm; if foo; then x=ls; fi; $x x")
    assert ("rm", "x") in argvs("x=ls; for i in 1 2; do $x x; x=rm; done")
    assert ("rm", "x") in argvs("for c in ls rm; do sudo $c x; done")


def test_assignments_in_a_subshell_stay_in_it() -> None:
    assert argvs("x=a; (x=b); cat $x")[-1] == ("cat", "a")
    assert argvs("x=a; echo | x=b; cat $x")[-1] == ("cat", "a")
