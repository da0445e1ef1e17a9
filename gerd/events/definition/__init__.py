"""The backend `torch`, which is the definition: the picture, the rules, the walk over them, its stages as arrays.

`others` puts pictures that another program has made in the place of the scene's own.
"""
