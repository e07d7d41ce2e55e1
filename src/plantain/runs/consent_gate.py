"""The consent gate of a run: decides by the bytes about to be sent and where they go, and records what it lets go."""

from __future__ import annotations

from collections.abc import Collection

import orjson

from plantain.journal import Journal, JournalReader
from plantain.journal.batches import current_call
from plantain.journal.sending import CONNECTIONS, SentPicture, connections, sources_of_picture
from plantain.privacy import lineage
from plantain.privacy.permission import agreements
from plantain.records import Destination, NotAllowed, Outgoing, SourceImage
from plantain.runs.settings.terms import Terms, permission_for


class ConsentGate:
    """Lets a picture out when the journal knows what it was made from and every source may go there.

    The records of the run's own journal decide, not those of a catalogue, and all that is let through is in it before
    it goes. Until a journal is there, nothing is.

    Args:
        terms: the owners' permission for the whole run, where one was stated.
    """

    def __init__(self, terms: Terms) -> None:
        self._section = terms.consent_section
        self._given = terms.consent
        self.journal: Journal | None = None
        self._connections: dict[str, list[str]] | None = None

    async def connected(self, to: Destination, ip: str) -> None:
        """Records an address that was connected to, once for each destination."""
        if self.journal is None:
            return
        if self._connections is None:
            self._connections = connections(self.journal.reader)
        known = self._connections.setdefault(to.address, [])
        if ip not in known:
            known.append(ip)
            await self.journal.set_meta(CONNECTIONS, orjson.dumps(self._connections).decode())

    async def clear(self, model: str, to: Destination, pictures: Collection[Outgoing]) -> None:
        """Returns when all may go and that is recorded. Raises NotAllowed."""
        if self.journal is None:
            raise NotAllowed(
                f"{model}: a picture was about to be sent to {to.address} before the run was opened"
            )
        here = current_call.get(None)
        rows: list[SentPicture] = []
        given = permission_for(self._given, to)
        for picture in sorted(pictures, key=lambda picture: (picture.call or 0, picture.sha256)):
            call = picture.call or here
            sources = _sources(self.journal.reader, picture.sha256, call)
            try:
                allowed = agreements(list(sources.values()), given, to)
            except NotAllowed as why:
                raise NotAllowed(refusal(str(why), model, to, self._section)) from None
            rows += [
                SentPicture(picture.sha256, image, model, to.address, to.reach, under, call)
                for image, under in allowed.items()
            ]
        await self.journal.add_sent(rows)


def _sources(reader: JournalReader, sha256: str, call: int | None) -> dict[str, SourceImage]:
    """Every source that shows in a picture, through all that it was made from; none where one of them is unknown."""
    found: dict[str, SourceImage] = {}
    seen: set[str] = set()
    waiting = {sha256}
    while waiting:
        one = waiting.pop()
        seen.add(one)
        known, parents = sources_of_picture(reader, one, call), lineage.sources_of(one)
        if not known and not parents:
            return {}
        found |= known
        waiting |= parents - seen
    return found


def refusal(why: str, model: str, to: Destination, section: str) -> str:
    """What a person reads where a picture may not go: which, why, where to, and what would change that."""
    provider = model.partition("/")[0]
    where = f"{to.address} ({to.why})" if to.why else to.address
    return (
        f"{why}, and {model} is a hosted model at {where}: its owner has not allowed a copy to leave this machine. "
        "Use a model that runs here; or, where the service is your institution's own, set "
        f"providers.{provider}.base_url and providers.{provider}.on_premises = true; or record the owner's permission: "
        f'[{section}] by = "who allowed it", agreement = "where that is written down"'
        + (f', tenant = "{to.tenant}"' if to.tenant else "")
    )
