"""An engine whose workers share nothing with this process but what they are sent: processes that count as machines."""

from __future__ import annotations

from plantain.engines.local import LocalEngine


class Elsewhere(LocalEngine):
    remote = True
