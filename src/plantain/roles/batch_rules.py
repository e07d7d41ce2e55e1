"""The size of batch jobs, their waiting time, and the polling interval."""

from __future__ import annotations

from pydantic import Field

from plantain.roles.options import Section


class BatchRules(Section):
    """`[providers.NAME.batch]`.

    Attributes:
        images: most edits in a job, which bounds the answers: those of more than a gigabyte were billed but could not
            be fetched.
        requests: most requests in a job.
        megabytes: most megabytes of a job's request file (one larger request still makes a job of its own).
        quiet_s: a job is formed when no request has arrived for this long.
        wait_s: a job is formed when its first request has waited this long.
        poll_s: first polling interval in seconds; it grows up to ten times.
    """

    images: int = Field(default=100, ge=1, le=10_000)
    requests: int = Field(default=1_000, ge=1, le=50_000)
    megabytes: float = Field(default=100.0, gt=0.0, le=200.0)
    quiet_s: float = Field(default=10.0, gt=0.0, le=3600.0)
    wait_s: float = Field(default=120.0, gt=0.0, le=86_400.0)
    poll_s: float = Field(default=30.0, gt=0.0, le=3600.0)
