"""Decisions: pure functions over plain values. Facts are gathered elsewhere, and what is decided is carried out elsewhere."""
