"""`plantain models`: list known models; convert local weights."""

from __future__ import annotations

from plantain.cli import CommandWithOthers, application
from plantain.cli.models.convert import convert_weights
from plantain.cli.models.listing import models

app = application()
app.callback(cls=CommandWithOthers, invoke_without_command=True)(models)
app.command("convert", short_help="Convert InstructDiffusion's checkpoint for its preset")(convert_weights)
