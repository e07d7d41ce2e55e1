"""Learning with flow-matching editors: Kontext, FLUX.2 klein and Qwen-Image-Edit."""
