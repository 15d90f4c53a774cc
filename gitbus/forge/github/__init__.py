"""GitHub as a forge: pull requests are put up, kept in step, heard and asked; nothing is believed twice."""
