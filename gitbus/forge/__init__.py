"""Where a human approves: branches on any git host, pull requests on a forge."""
