"""Settings files, for commands that have no recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.records import InputError
from plantain.runs.settings_file import Limits
from plantain.runs.terms import load_terms


def settings(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold() -> None:
    terms = load_terms(None, ("offline/procedural", "offline/procedural"))
    assert terms.models == ("offline/procedural",)
    assert terms.limits == Limits()
    assert terms.sampling() == {}


def test_a_file_is_read_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    path = settings(
        tmp_path,
        '[limits]\nbudget_usd = 5\n[providers.gemini]\ntemperature = 0.5\nprompts = "own"\n'
        '[consent]\nby = "the owner"\nagreement = "letter of May"\n',
    )
    terms = load_terms(path, ("gemini/x",))
    assert terms.limits.budget_usd == 5
    assert terms.provider("gemini/x").prompts == tmp_path.resolve() / "own"
    assert terms.sampling() == {"gemini": {"temperature": 0.5}}
    assert terms.consent is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nbudget = 5\n", "unknown key 'limits.budget'; did you mean 'budget_usd'?"),
        ("[providers.gemni]\n", "providers.gemni: no such provider; did you mean 'gemini'?"),
        ("[limits]\nconcurrency = 0\nwave = 0\n", "limits.wave: input should be greater than or equal to 1"),
        ("nonsense", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_field(tmp_path: Path, text: str, said: str) -> None:
    path = settings(tmp_path, text)
    with pytest.raises(InputError) as problem:
        load_terms(path, ("gemini/x",))
    assert str(problem.value).startswith(str(path))
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such settings file"):
        load_terms(tmp_path / "absent.toml", ())


@pytest.mark.parametrize("name", ["../../x", "http://x/y", "openai/../../etc", "/etc/passwd", "openai/"])
def test_name_that_is_a_path_or_an_address_is_one_line(name: str) -> None:
    with pytest.raises(InputError, match="a path or an address; expected provider/model") as raised:
        load_terms(None, (name,))
    assert repr(name) in str(raised.value)


def test_folder_of_open_weights_is_a_name() -> None:
    names = ("diffusers//models/base", "diffusers/../base", "openai-compatible/org/model:tag")
    assert load_terms(None, names).models == names
