"""Which commands an old CLI's shell is given as they stand; the CLIs themselves are asked in
`tests/conformance/test_shell.py`."""

from __future__ import annotations

from bridle.policy.rewriting import survives_rewriting
from tests.operations import grows_as_its_size

SURVIVES = """
ls -la | head -20
cat a.txt | grep -n 'a b' | wc -l
grep -rn "TODO" src --include=*.py | sort | uniq -c
git log --oneline -5 | cat
npm test 2>&1 | tail -20
ls missing 2>/dev/null | head || echo none
find . -name '*.py' | xargs wc -l
echo 'no pipe: * ; # $x' > out
cat <<'EOF'
""".strip().splitlines()

CHANGED = [
    "ls *'; touch PWNED; ' | cat",
    "ls *'; touch PWNED; '|cat",
    "ls *'a'||echo none",
    "find d\necho -delete | cat",
    "ls | cat # why",
    "ls | cat a#b",
    "c 2> f3 | d",
    "c 3>f7 | d",
    "c 2 > f3 | d",
    "grep 'a$' f | head",
    "grep '`x`' f | head",
    'grep "a\\"b" f | head',
    "grep 'a\\' f | head",
    "ls ~ | head",
    "ls {a,b} | head",
    "a & b | c",
    "a | (b; c)",
    "a <<< b | c",
    "a\tb | c",
    "echo 'a' !x",
    "! grep 'a' f",
    "echo é | cat",
]


def test_a_command_that_an_old_cli_would_change_does_not_survive() -> None:
    assert [one for one in SURVIVES if not survives_rewriting(one)] == []
    assert [one for one in CHANGED if survives_rewriting(one)] == []


def test_a_long_command_is_read_in_linear_time() -> None:
    for part, end in (("a 'b c' *d 2>&1 ", "$ | x"), ("'a'*", " |x"), ("a|", "$"), ("  ", "|$")):
        assert grows_as_its_size(survives_rewriting, part * 3_000 + end, part * 30_000 + end)
