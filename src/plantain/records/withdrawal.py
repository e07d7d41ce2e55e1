"""What a user asks to remove for good."""

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
        """Return for each name the text whose keyed hash is kept after its removal."""
        return {
            **{group: f"group {group}" for group in sorted(self.groups)},
            **{image: f"image {image}" for image in sorted(self.images)},
        }

    def naming(self, image: SourceImage, *groups: str | None) -> frozenset[str]:
        """Return the names by which an image is to be removed; empty if it is not.

        A rendering ("0_left+drusen") is removed with the image that it was drawn on.

        Args:
            image: its record.
            groups: further groups that it is known under.
        """
        return self.groups.intersection((image.group, *groups)) | self.images.intersection(
            (image.id, image.id.partition("+")[0])
        )
