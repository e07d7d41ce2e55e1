"""`plantain models`: the known models; weights on this machine are tried and converted."""

from __future__ import annotations

from plantain.cli.models.convert import convert_weights
from plantain.cli.models.listing import models
from plantain.cli.models.trying import try_model
from plantain.cli.terminal.groups import CommandWithOthers, application

app = application()
app.callback(cls=CommandWithOthers, invoke_without_command=True)(models)
app.command("try", short_help="one edit with weights as they are on disk, timed")(try_model)
app.command("convert", short_help="InstructDiffusion's checkpoint, for its preset")(convert_weights)
