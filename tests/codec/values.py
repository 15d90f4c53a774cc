"""Values to write and read: JSON of every shape, and strings that YAML is known to trip over."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_WORDS = r"""
no No NO n N y Y yes on off true TRUE False null Null ~ = << - -- --- ... ? : ! & * | > % @ `
.inf -.inf +.INF .nan .NaN NaN inf 0 00 012 0o7 0O7 0o14 0x10 0X1F 0b101 1e3 1E3 1e5 1.e+3 1.0 .5 +.5 -1 +1
1_000 1,000 0.1_2 190:20:30 12:30:45 12:30 1:2.5 2026-01-01 2026-1-1 2026-11-30T20:04:10Z 2026-11-30t1:2:3
1e5aaaa 123456 15m 30s 7d 2h 1MiB 64B 1B 1d 30/m 1.2.3 v0.9 1a2b3c 0e0 e1 #a a#b a:b a: :a key:value http://a/b
[ ] { } [a] {a} , a, ' " \\ \\n '' "" 'a' "a" ./a ../a ~/a .git .Inf /a $a ${a} <a >a |a %a @a `a !a !!str &a *a
"""
TRAPS = [
    *_WORDS.split(),
    "",
    " ",
    "  ",
    " a",
    "a ",
    "a b",
    "a: b",
    "a #b",
    "a # b",
    "- a",
    "? a",
    "\t",
    "a\tb",
    "\n",
    "\n\n",
    "a\n",
    "a\n\n",
]
TRAPS += [
    "a\nb",
    " a\nb",
    "\na",
    "\n a\nb\n",
    "a\n b\n\n\n",
    "a \nb",
    "a\n \nb",
    "a\n  ",
    "\ta\nb",
    "a\n\tb",
    "a\\\nb",
    "a\n---\nb",
]
TRAPS += [
    "<<<<<<< a",
    "=======",
    "a\n<<<<<<< b\n",
    "# a\n# b",
    "\x85",
    "a\u2028b",
    "a\nb\u2028\n c",
    "\ufeff",
    "a\u200bb",
    "\u202e",
]
TRAPS += [
    "\xa0a",
    "a\xa0",
    "é",
    "日本",
    "😀",
    "a\n😀\n",
    "\ue000",
    "\ufffe",
    "\U000e0001",
    '"\n"',
    "\\\n\\",
    "a" * 2000,
]

_RISKY = ":#-?{}[],&*!|>'\"%@`~=.<+_ \n\n\t\\/0189abexoEXOTZnyN\x85\u2028\xa0é"

texts = (
    st.sampled_from(TRAPS)
    | st.text(_RISKY, max_size=12)
    | st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t\x85"), max_size=12)
    | st.lists(st.sampled_from(TRAPS), max_size=4).map("\n".join)
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
mappings = st.dictionaries(texts, values, max_size=5)


def typed(value: Any) -> Any:
    """Return the value with its types and order spelled out, for ``==`` to see."""
    if isinstance(value, dict):
        return ["dict", [(key, typed(inner)) for key, inner in value.items()]]
    if isinstance(value, list):
        return ["list", [typed(inner) for inner in value]]
    return [type(value).__name__, repr(value)]
