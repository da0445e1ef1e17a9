"""The backend `torch`, which is the definition: `rules`, the walk over them, and every stage of it as arrays."""
