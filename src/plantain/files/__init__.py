"""What touches disks and strangers: no-follow opening, durable writing, the one CSV form, keys and their redaction."""
