"""A small GitHub of our own: REST and git over loopback, for tests."""
