"""Which model really answered: providers change the model behind a name, and a run must notice."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from plantain.calls.stops import RunHalted
from plantain.journal import Journal

META = "served_models"
CHANGES_META = "model_changes"


class ModelDrift:
    """The served models that a run has accepted, by the name they were asked under; kept in the run's meta.

    Args:
        journal: of the run.
        accept_changes: a new one is accepted and recorded instead of stopping the run; None where nobody can be asked,
            because the command has no option for it.
    """

    def __init__(self, journal: Journal, *, accept_changes: bool | None = None) -> None:
        self._journal = journal
        self._accept = accept_changes
        self._known: dict[str, list[str]] = orjson.loads(journal.reader.meta(META) or "{}")

    async def check(self, model: str, served: str, *, replayed: bool = False) -> None:
        """Takes note of who answered.

        Args:
            model, served: the name asked for, and who answered; "" where that is unknown.
            replayed: the answer is one that an earlier process recorded. The process that is stopped by a change has
                recorded the first answers of the new model already: they were paid for.

        Raises:
            RunHalted: somebody else than before, and changes are not accepted.
        """
        known = self._known.setdefault(model, [])
        if not served or served in known:
            return
        if known and not self._accept:
            way = "" if self._accept is None else "go on with --accept-model-change (it is recorded), or "
            when = "was once" if replayed else "is now"
            raise RunHalted(
                f"{model} {when} served by {served}, and this run was made with {', '.join(known)}: the answers would "
                f"not be of one model; {way}start a new run folder"
            )
        before = list(known)
        known.append(served)
        await self._journal.set_meta(META, orjson.dumps(self._known).decode())
        if before:
            changes = orjson.loads(self._journal.reader.meta(CHANGES_META) or "[]")
            changes.append(
                {
                    "model": model,
                    "from": before,
                    "to": served,
                    "at": datetime.now(UTC).isoformat(timespec="seconds"),
                }
            )
            await self._journal.set_meta(CHANGES_META, orjson.dumps(changes).decode())
