"""The backend `cuda`: `rules`, kernels in Triton, and `run`, which launches them."""
