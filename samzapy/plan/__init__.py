"""Decisions: pure functions over plain values. Other rooms gather the facts and carry out the decisions."""
