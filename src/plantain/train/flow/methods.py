"""Which editors can be trained by flow matching."""

FLOW_METHODS = ("flux-kontext", "flux2-klein", "qwen-image-edit", "qwen-image-edit-plus")
"""Ways of editing that can be trained here by flow matching."""
