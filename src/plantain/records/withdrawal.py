"""What a person asks to be taken out for good."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.records.images import SourceImage


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Groups (patients, studies) and single images, as a catalogue, a run or a release calls them."""

    groups: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Everything that was named."""
        return self.groups | self.images

    def marks(self) -> dict[str, str]:
        """By name, the text whose keyed hash stands for it once it is gone."""
        return {
            **{group: f"group {group}" for group in sorted(self.groups)},
            **{image: f"image {image}" for image in sorted(self.images)},
        }

    def naming(self, image: SourceImage, *groups: str | None) -> frozenset[str]:
        """The names under which an image is asked for; empty where it stays.

        An image that was drawn on another ("0_left+drusen") goes with that one.

        Args:
            image: its record.
            groups: further groups that it is known under.
        """
        return self.groups.intersection((image.group, *groups)) | self.images.intersection(
            (image.id, image.id.partition("+")[0])
        )
