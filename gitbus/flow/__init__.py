"""The stages of the flow, in their order, each a pure function from a board to changes."""
