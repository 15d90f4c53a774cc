"""The proof: what may be believed of a history that anybody may have written into.

Pure functions over a :class:`~gitbus.history.History`. Each returns a value that lists what was
verified and what is missing; whatever is not understood is missing.
"""
