"""Ways out of the house: maildir, smtp, exec. One Protocol, three outcomes."""
