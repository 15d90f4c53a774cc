"""Promises that no single module keeps alone."""
