"""A prompt folder from a stranger: its templates fill in words, and run, read or exhaust nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.models.hosted.prompts import StrangersTemplates
from plantain.models.hosted.reports import checked_library
from plantain.records import InputError

HOSTILE = {
    "a command, by an undefined name": "{{ self.__init__.__globals__.__builtins__.exec('1') }}",
    "a command, by a value": "{{ finding.__class__.__init__.__globals__['sys'].modules['os'].system('touch X') }}",
    "a file, by include": "{% include '/etc/passwd' %}",
    "memory, by a product": "{{ 'a' * 10000000000 }}",
    "memory, by a filter": "{{ 'a' | center(10000000000) }}",
    "memory, by doubling": "{% set a = 'aaaaaaaaaaaaaaaa' %}" + "{% set a = a ~ a %}" * 60,
    "time, by letters": "{% set a = 'aaaaaaaaaa' %}"
    + "{% set a = a ~ a %}" * 8
    + "{% for b in a %}{% for c in a %}{% for d in a %}{% endfor %}{% endfor %}{% endfor %}",
    "a stack, by itself": "{% include 'system.md.j2' %}",
    "a stack, by brackets": "{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}",
    "a name that is not there": "{{ image.group }}",
    "a large file": "{#" + "x" * 300_000 + "#}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "system.md.j2").write_text("" + HOSTILE[name], encoding="utf-8")
    with pytest.raises(InputError, match=r"\Aprompt system\.md\.j2") as caught:
        library = checked_library(folder)
        _ = library._system
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prompts"]


def test_usual_template_syntax_works() -> None:
    source = (
        "{% set many = signs | length %}"
        "{% for sign in signs %}{{ loop.index * 2 }}/{{ loop.length }} {{ sign.upper() }}"
        "{{ ', ' if not loop.last }}{% else %}none{% endfor %}; {{ many ~ ' signs' }}, {{ 7 % 4 }}"
        "{% for name, value in facts.items() %} {{ name }}={{ value | default('?') }}{% endfor %}"
    )
    templates = StrangersTemplates({"a": source}, lambda value: value)
    text = templates.fill("a", {"signs": ["air", "line"], "facts": {"view": "PA"}})
    assert text == "2/2 AIR, 4/2 LINE; 2 signs, 3 view=PA"
    with pytest.raises(InputError, match="prompt a: 'signs' is undefined"):
        templates.fill("a", {})
