"""How large a batch job may become, how long one waits to fill, and how often the provider is asked for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchRules:
    """What a recipe may say in `[providers.NAME.batch]`.

    Attributes:
        images: most edits in a job. It bounds the answers: jobs whose answers came to more than a gigabyte were billed
            and could not be fetched.
        requests: most requests in a job.
        megabytes: most megabytes of a job's request file (one larger request still makes a job of its own).
        quiet_s: a job is formed when no request has come for this long: nothing moves without an answer then.
        wait_s: a job is formed when its first request has waited this long.
        poll_s: seconds between the first looks at a job; they become ten times as rare.
    """

    images: int = 100
    requests: int = 1_000
    megabytes: float = 100.0
    quiet_s: float = 10.0
    wait_s: float = 120.0
    poll_s: float = 30.0


USUAL = BatchRules()
