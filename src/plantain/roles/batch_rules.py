"""How large a batch job may become, how long one waits to fill, and how often the provider is asked for it."""

from __future__ import annotations

from pydantic import Field

from plantain.roles.options import Section


class BatchRules(Section):
    """`[providers.NAME.batch]`.

    Attributes:
        images: most edits in a job. It bounds the answers: jobs whose answers came to more than a gigabyte were billed
            and could not be fetched.
        requests: most requests in a job.
        megabytes: most megabytes of a job's request file (one larger request still makes a job of its own).
        quiet_s: a job is formed when no request has come for this long: nothing moves without an answer then.
        wait_s: a job is formed when its first request has waited this long.
        poll_s: seconds between the first looks at a job; they become ten times as rare.
    """

    images: int = Field(default=100, ge=1, le=10_000)
    requests: int = Field(default=1_000, ge=1, le=50_000)
    megabytes: float = Field(default=100.0, gt=0.0, le=200.0)
    quiet_s: float = Field(default=10.0, gt=0.0, le=3600.0)
    wait_s: float = Field(default=120.0, gt=0.0, le=86_400.0)
    poll_s: float = Field(default=30.0, gt=0.0, le=3600.0)
