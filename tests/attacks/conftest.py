"""The builder of bus repositories, for every test here."""

from tests.support.busrepo import bus, make_repo

__all__ = ["bus", "make_repo"]
