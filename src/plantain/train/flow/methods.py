"""Which editors can be trained by flow matching."""

FLOW_METHODS = ("flux-kontext", "flux2-klein", "qwen-image-edit", "qwen-image-edit-plus")
"""Ways of editing that can be trained here by flow matching."""

WEIGHTINGS = ("none", "logit_normal", "sigma_sqrt", "cosmap")
"""How shares of noise are drawn and weighted (Esser et al. 2024, 3.1), by diffusers' names; its examples take none."""
