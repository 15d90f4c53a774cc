"""How far clocks may differ: a bound that every proof with a date in it uses.

Example: ``commit.committer.when > now + SKEW`` is a commit from the future.
"""

from __future__ import annotations

from datetime import timedelta

SKEW = timedelta(minutes=1)
"""How far another machine's clock may be ahead before its commits count as dated in the future."""
