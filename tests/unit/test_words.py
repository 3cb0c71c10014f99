"""Names and docstrings of `botchat`: nouns of the field, and a verb or noun first."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VAGUE = {"one", "said", "told", "made", "found", "given", "taken", "there", "what"}
FIRST = re.compile(
    r"(Of|As|By|With|Without|From|To|In|For|Those|That|The same|It|Its|Their|Likewise|What|Who"
    r"|Whose|Where|How|Why|Which)\b"
)


def test_names_say_what_they_are_and_docstrings_begin_with_a_verb_or_noun():
    """No variable, function or class has a vague name; no string by itself begins like a clause."""
    faults = []
    for path in sorted((ROOT / "botchat").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name, text = "", ""
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = node.name.lstrip("_")
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                text = str(node.value.value)
            if name in VAGUE or FIRST.match(text):
                faults.append(f"{path.name}:{node.lineno}: {name or text.splitlines()[0]}")
    assert faults == []
