"""The backend `cpu`: `rules`, kernels that numba compiles, and `run`, which calls them."""
