"""A small GitHub of our own: REST and git over loopback, for tests.

Where things are:

- ``state`` what it remembers; ``bare`` a repository in git; ``rights`` and ``rules`` who may do what.
- ``merging`` and ``signing`` the commits that GitHub makes; ``landing`` and ``moving`` what follows.
- ``api`` the frame of the calls and ``api_*`` the calls; ``shapes`` and ``shapes_issues`` the answers.
- ``rest``, ``githttp`` and ``server`` the wire; ``faults`` what goes wrong on demand.
- ``hub`` what a test holds; ``desk`` somebody with a clone; ``conftest`` the fixtures.
- ``openapi``, ``closing`` and ``validating`` compare all with GitHub's own description.
- ``emulator`` is another GitHub, which nobody here wrote; it is apart from all this.
"""
