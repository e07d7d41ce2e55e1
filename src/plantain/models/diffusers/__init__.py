"""Open editors that run here with diffusers: `diffusers/<preset>`, `diffusers/<hub id>`, `diffusers/<folder>`."""
