"""`plantain models`: list known models; try and convert local weights."""

from __future__ import annotations

from plantain.cli.models.listing import models
from plantain.cli.models.local import convert_weights, try_model
from plantain.cli.terminal.groups import CommandWithOthers, application

app = application()
app.callback(cls=CommandWithOthers, invoke_without_command=True)(models)
app.command("try", short_help="Time one edit with local weights")(try_model)
app.command("convert", short_help="Convert InstructDiffusion's checkpoint for its preset")(convert_weights)
